// SPDX-License-Identifier: BSD-2-Clause
/* Tests when a thread that polls waits with a short time slice (src/verbs/base/poll_brief.h). The times are made up. */
#include "src/verbs/base/poll_brief.h"

#include <criterion/criterion.h>

#include "src/verbs/base/poll_crowd.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static struct vb_poll_brief b;
static uint64_t now = 1000 * MS;

static void yield(uint64_t took)
{
    now += took;
    vb_poll_brief_yielded(&b, now - took, now);
}

static bool brief(void)
{
    return vb_poll_is_brief(&b, now);
}

Test(poll_brief, fast_yields_change_nothing)
{
    for (int i = 0; i < 1000; i++) {
        yield(VB_POLL_SLOW_YIELD_NS);
        cr_assert_not(brief());
    }
}

Test(poll_brief, one_slow_yield_may_be_an_accident)
{
    for (int i = 0; i < 10; i++) {
        yield(2 * MS);
        cr_expect_not(brief());
        now += VB_POLL_BRIEF_AGAIN_NS;
    }
}

Test(poll_brief, the_second_one_begins_a_time_with_short_slices)
{
    yield(2 * MS);
    now += VB_POLL_BRIEF_AGAIN_NS - 1;
    yield(2 * MS);
    cr_expect(brief());
    now += VB_POLL_BRIEF_MIN_NS - 1;
    cr_expect(brief());
    now++;
    cr_expect_not(brief());
}

/* Half a processor, for two threads on two processors. */
Test(poll_brief, a_quota_is_no_reason)
{
    for (int i = 0; i < 20; i++) {
        yield(75 * MS);
        for (uint64_t end = now + 25 * MS; now < end;)
            yield(5 * US);
        cr_assert_not(brief());
    }
}

Test(poll_brief, such_times_get_longer)
{
    uint64_t expected[] = {20 * MS, 40 * MS, 80 * MS, 160 * MS, 200 * MS, 200 * MS};

    yield(2 * MS);
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        yield(2 * MS);
        cr_expect_eq(b.until, now + expected[i], "%u: %lu", i, (unsigned long)(b.until - now));
        now = b.until + 10 * MS; /* calm for a short time */
    }
    now += VB_POLL_BRIEF_AGAIN_NS;
    yield(2 * MS);
    cr_expect_not(brief(), "after a longer calm time it takes two");
    yield(2 * MS);
    cr_expect_eq(b.until, now + VB_POLL_BRIEF_MIN_NS);
}

Test(poll_brief, fast_yields_end_it)
{
    yield(2 * MS);
    yield(2 * MS);
    now += 1 * MS;
    for (unsigned i = 0; i < VB_POLL_BRIEF_YIELDS - 2; i++)
        yield(10 * US);
    cr_expect(brief());
    yield(10 * US);
    cr_expect_not(brief());
    yield(2 * MS);
    cr_expect_eq(b.until, now + 2 * VB_POLL_BRIEF_MIN_NS, "it was an error");
}

Test(poll_brief, yields_to_threads_that_compute_do_not_end_it)
{
    b.until = now + 10000 * MS;
    for (unsigned i = 0; i < 10 * VB_POLL_BRIEF_YIELDS; i++)
        yield(i % 4 ? 10 * US : 200 * US);
    cr_expect_eq(b.until, 11000 * MS);
}

/* The ranks of a large job wait for each other. */
Test(poll_brief, many_programs_wait_as_usual)
{
    yield(2 * MS);
    yield(2 * MS);
    cr_expect(brief());
    vb_poll_brief_many(&b, true);
    cr_expect_not(brief());
    for (int i = 0; i < 10; i++) {
        yield(2 * MS);
        cr_expect_not(brief());
    }
    vb_poll_brief_many(&b, false);
    yield(2 * MS);
    yield(2 * MS);
    cr_expect(brief());
}

Test(poll_brief, late_wakeups_count)
{
    vb_poll_brief_waited(&b, now, now + VB_POLL_SLOW_YIELD_NS);
    vb_poll_brief_waited(&b, now, now + VB_POLL_SLOW_YIELD_NS);
    vb_poll_brief_waited(&b, now + 5 * MS, now); /* it ended early */
    cr_expect_not(brief());
    vb_poll_brief_waited(&b, now, now + 2 * MS);
    vb_poll_brief_waited(&b, now + 2 * MS, now + 4 * MS);
    cr_expect_eq(b.until, now + 4 * MS + VB_POLL_BRIEF_MIN_NS);
}

Test(poll_brief, on_a_slow_machine_yields_may_take_longer)
{
    b.yield_ns = 2000;
    for (int i = 0; i < 10; i++) {
        yield(2 * MS);
        vb_poll_brief_waited(&b, now, now + 2 * MS);
        cr_expect_not(brief());
    }
    yield(2 * MS + 1);
    yield(2 * MS + 1);
    cr_expect(brief());
}
