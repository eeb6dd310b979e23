// SPDX-License-Identifier: BSD-2-Clause
/* When yields return late, a device's thread sleeps early, and then asks for a short time slice. */
#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/device/cpu_yield.h"
#include "tests/unit/skip.h"

#define SLOW (2 * NS_PER_MS)

/* A slow yield at *now. Sets *now to its end. Returns whether a short slice is asked for. */
static bool slow(struct cpu_yield *t, uint64_t *now)
{
    *now += SLOW;
    return cpu_yield_took(t, *now - SLOW, *now);
}

Test(cpu_yield, quick_yields_change_nothing)
{
    struct cpu_yield t = {0};

    for (uint64_t now = NS_PER_S; now < NS_PER_S + 100 * NS_PER_MS; now += NS_PER_MS / 2) {
        cr_assert(!cpu_yield_took(&t, now, now + NS_PER_MS / 2));
        cr_assert(!cpu_yield_hogged(&t, now + NS_PER_MS / 2));
    }
}

Test(cpu_yield, one_slow_yield_means_a_millisecond_of_sleep)
{
    struct cpu_yield t = {0};
    uint64_t now = NS_PER_S;

    cr_assert(!slow(&t, &now));
    cr_assert(cpu_yield_hogged(&t, now));
    cr_assert(cpu_yield_hogged(&t, now + NS_PER_MS - 1));
    cr_assert(!cpu_yield_hogged(&t, now + NS_PER_MS));
}

Test(cpu_yield, several_slow_yields_in_a_row_mean_longer_sleep)
{
    static const unsigned ms[] = {1, 2, 4, 8, 16, 20, 20};
    struct cpu_yield t = {0};
    uint64_t now = NS_PER_S;

    for (unsigned i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
        bool brief = slow(&t, &now);

        cr_assert_eq(t.hog_until, now + ms[i] * NS_PER_MS, "the %u. time", i + 1);
        cr_assert_eq(brief, i >= 4, "the %u. time", i + 1);
        now = t.hog_until; /* yields again */
    }
}

Test(cpu_yield, occasional_slow_yields_do_not_add_up)
{
    struct cpu_yield t = {0};
    uint64_t now = NS_PER_S;

    for (unsigned i = 0; i < 20; i++) {
        cr_assert(!slow(&t, &now));
        cr_assert_eq(t.hog_until, now + NS_PER_MS);
        now += 10 * NS_PER_MS;
    }
}

Test(cpu_yield, a_short_slice_ends_after_a_time_without_slow_yields)
{
    struct cpu_yield t = {0};
    uint64_t now = NS_PER_S;

    for (unsigned i = 0; i < 5; i++) {
        slow(&t, &now);
        now = t.hog_until;
    }
    cr_assert(cpu_yield_took(&t, now, now + NS_PER_US));
    now = t.brief_until;
    cr_assert(cpu_yield_took(&t, now - NS_PER_US, now - 1));
    cr_assert(!cpu_yield_took(&t, now - NS_PER_US, now));
}

/* Returns the time slice of this thread in ns, which Linux reports since 6.12; 0: not known. */
static uint64_t slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        uint32_t nice, priority;
        uint64_t runtime, deadline, period;
    } a = {0};

    return syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == 0 ? a.runtime : 0;
}

/* Makes t ask for a short slice by a yield. Its end is then far in the future. */
static void make_brief(struct cpu_yield *t)
{
    t->brief_until = clock_ns() + 100 * NS_PER_S;
    cpu_yield_now(t);
    cr_assert(t->slice.brief);
}

Test(cpu_yield, a_yield_sets_a_short_slice_and_restores_the_usual_one)
{
    struct cpu_yield t = {0};
    uint64_t usual = slice();

    cpu_yield_now(&t);
    cr_assert_eq(slice(), usual);
    make_brief(&t);
    if (usual) /* otherwise Linux does not report it */
        cr_assert_eq(slice(), 100 * NS_PER_US);
    t.brief_until = 0;
    cpu_yield_now(&t);
    if (t.brief_until) /* this yield was slow, and the last of five */
        SKIP_TEST("the end of a brief slice", "this machine is too busy");
    cr_assert(!t.slice.brief);
    cr_assert_eq(slice(), usual);
}

/* This happens under load. */
Test(cpu_yield, a_short_slice_ends_without_a_yield)
{
    struct cpu_yield t = {0};
    uint64_t usual = slice();

    make_brief(&t);
    cpu_yield_check(&t, t.brief_until - 1);
    cr_assert(t.slice.brief);
    cpu_yield_check(&t, t.brief_until);
    cr_assert(!t.slice.brief);
    cr_assert_eq(slice(), usual);
}

Test(cpu_yield, on_a_slow_machine_yields_may_take_longer)
{
    struct cpu_yield t = {0};
    uint64_t now = NS_PER_S;

    for (unsigned i = 0; i < YIELD_COST_ENOUGH; i++)
        cpu_yield_took(&t, now, now + 2 * NS_PER_US);
    slow(&t, &now);
    cr_expect_not(cpu_yield_hogged(&t, now), "1,000 yields");
    now += SLOW + 1;
    cpu_yield_took(&t, now - SLOW - 1, now);
    cr_expect(cpu_yield_hogged(&t, now));
}
