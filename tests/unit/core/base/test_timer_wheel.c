// SPDX-License-Identifier: BSD-2-Clause
/* Compares the timer wheel with a plain array of deadlines. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/core/base/timer_wheel.h"

#define GUESTS 4096

static struct timer_wheel timer_wheel;
static struct timer timers[GUESTS];

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t model_earliest(void)
{
    uint64_t best = NEVER;
    for (int i = 0; i < GUESTS; i++)
        if (timers[i].when < best)
            best = timers[i].when;
    return best;
}

static void setup(void)
{
    timer_wheel_init(&timer_wheel);
    for (int i = 0; i < GUESTS; i++)
        timer_init(&timers[i]);
}

Test(timer_wheel, an_empty_wheel_has_no_deadline, .init = setup)
{
    cr_assert_eq(timer_wheel_earliest(&timer_wheel), NEVER);
    cr_assert_null(timer_wheel_pop(&timer_wheel, 1ull << 60));
}

Test(timer_wheel, every_timer_expires_once_and_not_early, .init = setup)
{
    uint64_t seed = 1, now = 12345;
    for (int step = 0; step < 3000; step++) {
        for (int n = 0; n < 8; n++) {
            struct timer *g = &timers[next_random(&seed) % GUESTS];
            /* from overdue to several laps of the wheel */
            uint64_t span = 1ull << (next_random(&seed) % 32);
            timer_wheel_set(&timer_wheel, g, next_random(&seed) % 8 == 0 ? NEVER : now + next_random(&seed) % span);
        }
        cr_assert_leq(timer_wheel_earliest(&timer_wheel), model_earliest(), "step %d", step);
        now += next_random(&seed) % (1ull << (next_random(&seed) % 28));
        struct timer *g;
        static bool out[GUESTS];
        for (int i = 0; i < GUESTS; i++)
            out[i] = timers[i].when <= now;
        while ((g = timer_wheel_pop(&timer_wheel, now)) != NULL) {
            cr_assert(out[g - timers], "step %d: guest left early", step);
            out[g - timers] = false;
            cr_assert_eq(g->when, NEVER);
        }
        for (int i = 0; i < GUESTS; i++)
            cr_assert_not(out[i], "step %d: guest %d overslept", step, i);
    }
}

Test(timer_wheel, every_slot_can_be_used, .init = setup)
{
    for (uint64_t i = 0; i < TIMER_WHEEL_SLOTS; i++)
        timer_wheel_set(&timer_wheel, &timers[i], i << TIMER_WHEEL_TICK_SHIFT);
    for (uint64_t i = 0; i < TIMER_WHEEL_SLOTS; i++) {
        cr_assert_eq(timer_wheel_earliest(&timer_wheel), i << TIMER_WHEEL_TICK_SHIFT);
        cr_assert_eq(timer_wheel_pop(&timer_wheel, i << TIMER_WHEEL_TICK_SHIFT), &timers[i]);
        cr_assert_null(timer_wheel_pop(&timer_wheel, i << TIMER_WHEEL_TICK_SHIFT));
    }
    cr_assert_eq(timer_wheel_earliest(&timer_wheel), NEVER);
}

Test(timer_wheel, a_timer_can_be_moved_and_cancelled, .init = setup)
{
    timer_wheel_set(&timer_wheel, &timers[0], 1000000);
    timer_wheel_set(&timer_wheel, &timers[0], 500000000); /* later than one lap */
    cr_assert_null(timer_wheel_pop(&timer_wheel, 400000000));
    timer_wheel_set(&timer_wheel, &timers[0], NEVER);
    cr_assert_null(timer_wheel_pop(&timer_wheel, 1ull << 40));
    cr_assert_eq(timer_wheel_earliest(&timer_wheel), NEVER);
}
