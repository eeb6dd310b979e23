// SPDX-License-Identifier: BSD-2-Clause
/* Tests how threads that poll in vain react to slow yields and late sleeps (src/verbs/base/poll_crowd.h). The times are
 * made up: nothing here sleeps. */
#include "src/verbs/base/poll_crowd.h"

#include <criterion/criterion.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t now = 1000 * MS;
static struct vb_poll_crowd crowd;
static struct vb_poll_nap nap;

/* --- yields and sleeps --------------------------------------------------------------------------- */

Test(poll_crowd, slow_yields_in_a_row_count_for_more)
{
    uint64_t expected[] = {1 * MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS, 20 * MS, 20 * MS};

    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        vb_poll_yielded(&crowd, now, now + 2 * MS);
        now += 2 * MS;
        cr_expect_eq(crowd.slow_for, expected[i], "%u: %lu", i, (unsigned long)crowd.slow_for);
        cr_expect_eq(crowd.slow_until, now + expected[i]);
        now = crowd.slow_until;
    }
    now += 2 * crowd.slow_for;
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    cr_expect_eq(crowd.slow_for, VB_POLL_SLOW_PERIOD_MIN_NS, "after a calm time it starts anew");
}

Test(poll_crowd, a_sleep_is_as_long_as_the_last_one_was_late)
{
    cr_expect_eq(vb_poll_backoff(&crowd), VB_POLL_BACKOFF_MIN_NS);
    vb_poll_slept(&crowd, 100 * US, now, now + 100 * US + 2 * MS);
    cr_expect_eq(vb_poll_backoff(&crowd), 2 * MS);
    cr_expect_eq(crowd.slow_until, now + 100 * US + 2 * MS + VB_POLL_SLOW_PERIOD_MAX_NS, "still crowded");
    vb_poll_slept(&crowd, 2 * MS, now, now + 100 * MS);
    cr_expect_eq(vb_poll_backoff(&crowd), VB_POLL_BACKOFF_MAX_NS);
}

Test(poll_crowd, sleeps_that_are_not_late_get_shorter)
{
    crowd.backoff_ns = 4 * MS;
    for (uint64_t length = 4 * MS; length / 2 > VB_POLL_LATE_NS; length /= 2) {
        cr_expect_eq(vb_poll_backoff(&crowd), length);
        vb_poll_slept(&crowd, length, now, now + length + VB_POLL_LATE_NS);
    }
    uint64_t until = crowd.slow_until;
    vb_poll_slept(&crowd, vb_poll_backoff(&crowd), now, now + vb_poll_backoff(&crowd));
    cr_expect_eq(vb_poll_backoff(&crowd), VB_POLL_BACKOFF_MIN_NS);
    cr_expect_eq(crowd.slow_until, until, "not crowded any more");
}

/* --- slow machines --------------------------------------------------------------------------------- */

Test(poll_crowd, on_a_slow_machine_yields_may_take_longer)
{
    vb_poll_crowd_yield_costs(&crowd, 2000);
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    cr_expect_eq(crowd.slow_for, 0, "twice as slow");
    vb_poll_yielded(&crowd, now, now + 2 * MS + 1);
    cr_expect_eq(crowd.slow_for, VB_POLL_SLOW_PERIOD_MIN_NS);
}

Test(poll_crowd, a_time_slice_is_long_on_any_machine)
{
    vb_poll_crowd_yield_costs(&crowd, 100000);
    vb_poll_yielded(&crowd, now, now + VB_POLL_SLOW_YIELD_MAX_NS);
    cr_expect_eq(crowd.slow_for, 0);
    vb_poll_yielded(&crowd, now, now + VB_POLL_SLOW_YIELD_MAX_NS + 1);
    cr_expect_eq(crowd.slow_for, VB_POLL_SLOW_PERIOD_MIN_NS);
}

Test(poll_crowd, on_a_slow_machine_sleeps_may_end_later)
{
    vb_poll_crowd_yield_costs(&crowd, 3000);
    vb_poll_slept(&crowd, 100 * US, now, now + 100 * US + 3 * VB_POLL_LATE_NS);
    cr_expect_eq(crowd.slow_until, 0);
    vb_poll_slept(&crowd, 100 * US, now, now + 100 * US + 3 * VB_POLL_LATE_NS + 1);
    cr_expect_gt(crowd.slow_until, now);
}

/* --- sleeps until news ---------------------------------------------------------------------------- */

/* A sleep until news that lasts for that long. Returns its limit. */
static uint64_t sleep_for(uint64_t took, bool news)
{
    uint64_t limit = vb_poll_nap_limit(&nap, &crowd, now);

    vb_poll_napped(&nap, &crowd, limit, now, now + took, news);
    now += took;
    return limit;
}

Test(poll_crowd, sleeps_that_news_end_need_no_short_timer)
{
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(sleep_for(20 * US, true), VB_POLL_NAP_NS);
    cr_assert_eq(sleep_for(20 * US, false), VB_POLL_NAP_NS, "the daemon ended it for another thread");
    cr_assert_eq(sleep_for(VB_POLL_NAP_NS, true), VB_POLL_NAP_NS, "there were news at the last moment");
    cr_expect_eq(vb_poll_nap_limit(&nap, &crowd, now), VB_POLL_NAP_NS);
    cr_expect_eq(crowd.slow_until, 0);
}

/* The thread may also poll something else, such as memory that it shares with another process. */
Test(poll_crowd, after_a_long_sleep_without_news_sleeps_are_short_for_a_time)
{
    uint64_t pause = VB_POLL_NAP_PAUSE_MIN_NS;

    for (int i = 0; i < 10; i++) {
        cr_expect_eq(sleep_for(VB_POLL_NAP_NS, false), VB_POLL_NAP_NS);
        uint64_t end = now + pause;
        cr_expect_eq(sleep_for(100 * US, false), VB_POLL_BACKOFF_MIN_NS);
        now = end - 1;
        cr_expect_eq(sleep_for(1, true), VB_POLL_BACKOFF_MIN_NS);
        pause = pause < VB_POLL_NAP_PAUSE_MAX_NS ? 2 * pause : pause;
    }
    cr_expect_eq(pause, VB_POLL_NAP_PAUSE_MAX_NS);
}

Test(poll_crowd, many_news_make_the_next_pause_short)
{
    for (int i = 0; i < 10; i++) {
        sleep_for(VB_POLL_NAP_NS, false);
        now = nap.pause_until;
    }
    for (int i = 0; i < VB_POLL_NAPS_GOOD - 1; i++)
        sleep_for(20 * US, true);
    sleep_for(VB_POLL_NAP_NS, false);
    cr_expect_eq(nap.pause, VB_POLL_NAP_PAUSE_MAX_NS, "too few");
    now = nap.pause_until;
    for (int i = 0; i < VB_POLL_NAPS_GOOD; i++)
        sleep_for(20 * US, true);
    sleep_for(VB_POLL_NAP_NS, false);
    cr_expect_eq(nap.pause, VB_POLL_NAP_PAUSE_MIN_NS);
}

Test(poll_crowd, short_sleeps_are_as_long_as_the_last_one_was_late)
{
    sleep_for(VB_POLL_NAP_NS, false);
    sleep_for(100 * US + 2 * MS, false);
    cr_expect_eq(vb_poll_nap_limit(&nap, &crowd, now), 2 * MS);
}
