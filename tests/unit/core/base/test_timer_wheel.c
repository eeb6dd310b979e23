// SPDX-License-Identifier: BSD-2-Clause
/* The timer wheel against a plain array of deadlines. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/core/base/timer_wheel.h"

#define GUESTS 4096

static struct hotel hotel;
static struct guest guests[GUESTS];

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
        if (guests[i].when < best)
            best = guests[i].when;
    return best;
}

static void setup(void)
{
    hotel_init(&hotel);
    for (int i = 0; i < GUESTS; i++)
        guest_init(&guests[i]);
}

Test(hotel, empty_never_wakes, .init = setup)
{
    cr_assert_eq(hotel_earliest(&hotel), NEVER);
    cr_assert_null(hotel_check_out(&hotel, 1ull << 60));
}

Test(hotel, nobody_leaves_early_and_nobody_is_forgotten, .init = setup)
{
    uint64_t seed = 1, now = 12345;
    for (int step = 0; step < 3000; step++) {
        for (int n = 0; n < 8; n++) {
            struct guest *g = &guests[next_random(&seed) % GUESTS];
            /* from overdue to several laps of the wheel */
            uint64_t span = 1ull << (next_random(&seed) % 32);
            hotel_check_in(&hotel, g, next_random(&seed) % 8 == 0 ? NEVER : now + next_random(&seed) % span);
        }
        cr_assert_leq(hotel_earliest(&hotel), model_earliest(), "step %d", step);
        now += next_random(&seed) % (1ull << (next_random(&seed) % 28));
        struct guest *g;
        static bool out[GUESTS];
        for (int i = 0; i < GUESTS; i++)
            out[i] = guests[i].when <= now;
        while ((g = hotel_check_out(&hotel, now)) != NULL) {
            cr_assert(out[g - guests], "step %d: guest left early", step);
            out[g - guests] = false;
            cr_assert_eq(g->when, NEVER);
        }
        for (int i = 0; i < GUESTS; i++)
            cr_assert_not(out[i], "step %d: guest %d overslept", step, i);
    }
}

Test(hotel, every_room_can_be_taken, .init = setup)
{
    for (uint64_t i = 0; i < HOTEL_ROOMS; i++)
        hotel_check_in(&hotel, &guests[i], i << HOTEL_TICK_SHIFT);
    for (uint64_t i = 0; i < HOTEL_ROOMS; i++) {
        cr_assert_eq(hotel_earliest(&hotel), i << HOTEL_TICK_SHIFT);
        cr_assert_eq(hotel_check_out(&hotel, i << HOTEL_TICK_SHIFT), &guests[i]);
        cr_assert_null(hotel_check_out(&hotel, i << HOTEL_TICK_SHIFT));
    }
    cr_assert_eq(hotel_earliest(&hotel), NEVER);
}

Test(hotel, moving_out_before_time, .init = setup)
{
    hotel_check_in(&hotel, &guests[0], 1000000);
    hotel_check_in(&hotel, &guests[0], 500000000); /* later than one lap */
    cr_assert_null(hotel_check_out(&hotel, 400000000));
    hotel_check_in(&hotel, &guests[0], NEVER);
    cr_assert_null(hotel_check_out(&hotel, 1ull << 40));
    cr_assert_eq(hotel_earliest(&hotel), NEVER);
}
