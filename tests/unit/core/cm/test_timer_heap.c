// SPDX-License-Identifier: BSD-2-Clause
/* Timers of connection management, beside a plain list of them. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/core/base/types.h"
#include "daemon/core/cm/timer_heap.h"

#define TIMERS 50

static struct heap_timer *place[TIMERS], t[TIMERS];
static struct timer_heap heap = {.timer = place};

static uint64_t earliest(void)
{
    uint64_t best = NEVER;
    for (int i = 0; i < TIMERS; i++)
        best = t[i].when < best ? t[i].when : best;
    return best;
}

Test(timer_heap, random_history)
{
    unsigned seed = 1, popped = 0;
    uint64_t now = 0;
    for (int i = 0; i < TIMERS; i++)
        heap_timer_init(&t[i]);
    cr_assert_eq(timer_heap_earliest(&heap), NEVER);
    for (int step = 0; step < 20000; step++) {
        int i = rand_r(&seed) % TIMERS;
        if (rand_r(&seed) % 4 == 0)
            timer_heap_set(&heap, &t[i], NEVER);
        else
            timer_heap_set(&heap, &t[i], now + (unsigned)rand_r(&seed) % 1000);
        cr_assert_eq(timer_heap_earliest(&heap), earliest());
        if (step % 7 == 0)
            now += (unsigned)rand_r(&seed) % 100;
        uint64_t due = earliest();
        struct heap_timer *fired = timer_heap_pop(&heap, now);
        cr_assert_eq(fired != NULL, due <= now);
        if (fired) {
            cr_assert_eq(fired->when, NEVER);
            popped++;
        }
    }
    cr_assert_gt(popped, 1000);
}
