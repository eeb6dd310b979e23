// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/cpu_yield.h"

#include <sched.h>

#include "daemon/base/clock.h"

/* A yield longer than this was slow. The limit is less than a time slice. It is more than the ranks of a job on a
 * crowded processor need, if each polls and yields once. On a machine where yields cost more than usual it is longer, up
 * to the maximum. That is less than a time slice of a kernel whose ticks are 4 ms apart. */
#define SLOW_YIELD_NS NS_PER_MS
#define SLOW_YIELD_MAX_NS (5 * NS_PER_MS / 2)
/* After a slow yield the thread sleeps early for this long. One slow yield may be chance, so the time grows to the
 * maximum only after several in a row. */
#define HOG_MIN_NS NS_PER_MS
#define HOG_MAX_NS (20 * NS_PER_MS)
/* After five slow yields in a row the thread gets a short time slice. It loses the slice BRIEF_NS after the last slow
 * yield. With a short slice yields are fast, so the thread can't see then whether the hog is still there. */
#define BRIEF_FROM_NS (16 * NS_PER_MS)
#define BRIEF_NS (200 * NS_PER_MS)

static uint64_t slow_ns(const struct cpu_yield *y)
{
    return yield_cost_scaled(yield_cost_ns(&y->cost), SLOW_YIELD_NS, SLOW_YIELD_MAX_NS);
}

bool cpu_yield_took(struct cpu_yield *y, uint64_t before, uint64_t after)
{
    yield_cost_note(&y->cost, after - before);
    if (after - before > slow_ns(y)) {
        bool again = before < y->hog_until + 2 * y->hog_ns;

        y->hog_ns = !again ? HOG_MIN_NS : y->hog_ns < HOG_MAX_NS / 2 ? 2 * y->hog_ns : HOG_MAX_NS;
        y->hog_until = after + y->hog_ns;
        if (y->hog_ns >= BRIEF_FROM_NS)
            y->brief_until = after + BRIEF_NS;
    }
    return after < y->brief_until;
}

bool cpu_yield_now(struct cpu_yield *y)
{
    uint64_t before = clock_ns(), after;

    sched_yield();
    after = clock_ns();
    time_slice_set(&y->slice, cpu_yield_took(y, before, after));
    return after - before <= slow_ns(y);
}

void cpu_yield_check(struct cpu_yield *y, uint64_t now)
{
    if (now >= y->brief_until)
        time_slice_set(&y->slice, false);
}
