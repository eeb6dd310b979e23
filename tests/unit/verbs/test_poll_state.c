// SPDX-License-Identifier: BSD-2-Clause
/* The state machines of a thread that polls in vain (src/verbs/base/poll_state.h), with made-up times: nothing here
 * sleeps. */
#include "src/verbs/base/poll_state.h"

#include <criterion/criterion.h>

#include "pumice/abi_rings.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t now;
static struct vb_poll_thread thread, other;
static struct vb_poll_queue queue[2];
static struct vb_poll_crowd crowd;
static uint32_t published; /* by the daemon */
/* Stand for contexts and session pages; only their addresses count. */
static char context[2], page[2];

/* The state of the daemon as the thread sees it. */
static bool gone, daemon_sleeps, same_cpu, apart, away;
static long switches;

static void setup(void)
{
    now = 1000 * MS;
    same_cpu = true;
}

TestSuite(poll_state, .init = setup, .timeout = 60);

/* A poll of a queue of context i that found nothing, 1 us after the last event. -1: not the turn of the thread. */
static int poll_once(struct vb_poll_thread *t, unsigned i, struct vb_poll_queue *q)
{
    now += US;
    if (!vb_poll_turn(t, &context[i], q, now))
        return -1;
    struct vb_poll_view view = {.now = now, .alone = vb_poll_is_alone(t, &page[i], gone)};
    view.daemon_sleeps = daemon_sleeps;
    view.same_cpu = view.alone && same_cpu;
    enum vb_poll_action action = vb_poll_choose(t, &crowd, &view);
    if (action == VB_POLL_COUNT_SWITCHES)
        action = vb_poll_choose_counted(t, &crowd, &view, switches);
    now += US;
    vb_poll_turn_done(t, &page[i], published, now);
    return (int)action;
}

/* Polls at most that often until it comes to an action. Returns the number of polls, or 0. */
static unsigned polls_until(enum vb_poll_action action, unsigned most)
{
    for (unsigned i = 1; i <= most; i++)
        if (poll_once(&thread, 0, &queue[0]) == (int)action)
            return i;
    return 0;
}

/* --- whose turn it is -------------------------------------------------------------------------- */

Test(poll_state, occasional_polls_return_at_once)
{
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < VB_POLL_BUSY_POLLS; i++)
            cr_assert_eq(poll_once(&thread, 0, &queue[0]), -1);
        cr_expect_eq(thread.rhythm, VB_POLL_BUSY);
        now += VB_POLL_BUSY_GAP_NS;
    }
    poll_once(&thread, 0, &queue[0]);
    cr_expect_eq(thread.rhythm, VB_POLL_OCCASIONAL);
}

Test(poll_state, on_a_slow_machine_busy_polls_may_be_farther_apart)
{
    thread.brief.yield_ns = 2000;
    for (int i = 0; i < VB_POLL_BUSY_POLLS; i++)
        poll_once(&thread, 0, &queue[0]);
    now += 2 * VB_POLL_BUSY_GAP_NS - US;
    poll_once(&thread, 0, &queue[0]);
    cr_expect_eq(thread.rhythm, VB_POLL_BUSY);
    now += 2 * VB_POLL_BUSY_GAP_NS;
    poll_once(&thread, 0, &queue[0]);
    cr_expect_eq(thread.rhythm, VB_POLL_OCCASIONAL);
}

Test(poll_state, a_busy_thread_has_a_turn_at_each_poll_of_one_queue)
{
    /* At first every queue is another one than that of the last turn. */
    cr_expect_eq(polls_until(VB_POLL_YIELD, 100), VB_POLL_BUSY_POLLS + VB_POLL_OTHERS_MAX + 1);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_YIELD);
}

Test(poll_state, a_thread_that_posts_before_each_poll_has_no_turn)
{
    polls_until(VB_POLL_YIELD, 100);
    for (int i = 0; i < 1000; i++) {
        thread.posted = true;
        cr_assert_eq(poll_once(&thread, 0, &queue[0]), -1);
    }
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_YIELD, "it posts no more");
}

Test(poll_state, a_thread_that_polls_two_queues_has_one_turn_in_each_round)
{
    unsigned turns[2] = {0, 0};

    for (unsigned i = 0; i < 200; i++)
        turns[i % 2] += poll_once(&thread, 0, &queue[i % 2]) != -1;
    cr_expect_gt(turns[0] + turns[1], 80);
    cr_expect(turns[0] == 0 || turns[1] == 0, "%u and %u", turns[0], turns[1]);
}

Test(poll_state, another_queue_has_its_turn_when_the_first_is_not_polled_any_more)
{
    polls_until(VB_POLL_YIELD, 100);
    for (int i = 0; i < VB_POLL_OTHERS_MAX; i++)
        cr_assert_eq(poll_once(&thread, 0, &queue[1]), -1);
    cr_expect_neq(poll_once(&thread, 0, &queue[1]), -1);
}

Test(poll_state, threads_that_share_a_queue_hardly_ever_have_a_turn)
{
    unsigned turns = 0;

    for (int i = 0; i < 5000; i++) { /* 20 ms */
        turns += poll_once(&thread, 0, &queue[0]) != -1;
        turns += poll_once(&other, 0, &queue[0]) != -1;
        now += 2 * US;
    }
    cr_expect_leq(turns, 2 * (20 * MS / VB_POLL_SHARED_NS + 1));
    cr_expect_gt(turns, 0);
    poll_once(&thread, 0, &queue[0]); /* the last time that the queue has another poller */
    now += VB_POLL_SHARED_PERIOD_NS;
    polls_until(VB_POLL_YIELD, 100);
    cr_expect_neq(poll_once(&thread, 0, &queue[0]), -1);
}

/* --- waiting for the daemon -------------------------------------------------------------------- */

Test(poll_state, a_thread_on_the_daemons_processor_waits_after_a_few_yields)
{
    cr_expect_eq(polls_until(VB_POLL_WAIT, 200), VB_POLL_ALONE + VB_POLL_YIELDS_SAME);
    cr_expect_eq(thread.phase, VB_POLL_WAITING);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_WAIT, "and goes on waiting");
}

Test(poll_state, a_thread_on_another_processor_waits_only_if_others_run_there)
{
    same_cpu = false;
    cr_expect_eq(polls_until(VB_POLL_WAIT, 500), 0);
    switches = 1;
    cr_expect_leq(polls_until(VB_POLL_WAIT, 500), VB_POLL_YIELDS);
    cr_expect_eq(thread.phase, VB_POLL_WAITING);
}

Test(poll_state, waits_get_longer_up_to_a_limit)
{
    polls_until(VB_POLL_WAIT, 200);
    for (uint32_t us = VB_POLL_WAIT_MIN_US; us <= VB_POLL_WAIT_MAX_US; us *= 2)
        cr_expect_eq(vb_poll_next_wait_us(&thread), us);
    cr_expect_eq(vb_poll_next_wait_us(&thread), VB_POLL_WAIT_MAX_US);
}

Test(poll_state, news_end_the_waiting)
{
    polls_until(VB_POLL_WAIT, 200);
    vb_poll_next_wait_us(&thread);
    published += PM_PUBLISHED;
    poll_once(&thread, 0, &queue[0]);
    cr_expect_eq(thread.phase, VB_POLL_YIELDING);
    cr_expect_eq(thread.wait_us, VB_POLL_WAIT_MIN_US);
    cr_expect_eq(polls_until(VB_POLL_WAIT, 200), VB_POLL_YIELDS_SAME);
}

/* The daemon also ends a sleep that got too long. Then nothing was published. */
Test(poll_state, a_wakeup_without_news_does_not)
{
    polls_until(VB_POLL_WAIT, 200);
    published += PM_WAKE;
    poll_once(&thread, 0, &queue[0]);
    cr_expect_eq(thread.phase, VB_POLL_WAITING);
}

/* A completion of one context would lie there while the thread sleeps for the other. */
Test(poll_state, a_thread_that_polls_two_contexts_waits_for_neither)
{
    for (unsigned i = 0; i < 500; i++)
        for (unsigned k = 0; k <= 1 + i % 3; k++)
            cr_assert_neq(poll_once(&thread, k == 0, &queue[k == 0]), VB_POLL_WAIT);
    cr_expect_neq(polls_until(VB_POLL_WAIT, 200), 0, "but once it polls one of them alone");
}

Test(poll_state, another_context_ends_the_waiting)
{
    polls_until(VB_POLL_WAIT, 200);
    poll_once(&thread, 1, &queue[1]);
    cr_expect_eq(thread.phase, VB_POLL_YIELDING);
}

Test(poll_state, no_thread_waits_for_a_daemon_that_sleeps)
{
    daemon_sleeps = true;
    cr_expect_eq(polls_until(VB_POLL_WAIT, 500), 0);
    daemon_sleeps = false;
    polls_until(VB_POLL_WAIT, 500);
    daemon_sleeps = true;
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_YIELD, "nor one that waited before");
}

Test(poll_state, no_thread_waits_for_a_daemon_that_is_gone)
{
    polls_until(VB_POLL_WAIT, 500);
    gone = true;
    cr_expect_eq(polls_until(VB_POLL_WAIT, 500), 0);
}

/* --- crowded processors ------------------------------------------------------------------------ */

Test(poll_state, a_slow_yield_makes_the_next_turns_sleep)
{
    polls_until(VB_POLL_YIELD, 100);
    vb_poll_yielded(&crowd, now - VB_POLL_SLOW_YIELD_NS, now);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_YIELD, "it was not slower than the limit");
    vb_poll_yielded(&crowd, now - VB_POLL_SLOW_YIELD_NS - 1, now);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_SLEEP);
    now += VB_POLL_SLOW_PERIOD_MIN_NS;
    polls_until(VB_POLL_YIELD, VB_POLL_BUSY_POLLS);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_YIELD, "the period is over");
}

Test(poll_state, a_thread_that_polls_one_context_sleeps_until_news)
{
    daemon_sleeps = true; /* so that it does not wait for it */
    for (int i = 0; i < 2 * VB_POLL_ALONE; i++)
        poll_once(&thread, 0, &queue[0]);
    vb_poll_yielded(&crowd, now - 2 * MS, now);
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_SLEEP_OR_NEWS);
}

Test(poll_state, a_thread_with_short_slices_sleeps)
{
    polls_until(VB_POLL_YIELD, 100);
    thread.brief.until = now + 2 * MS;
    cr_expect_eq(poll_once(&thread, 0, &queue[0]), VB_POLL_SLEEP);
    cr_expect_eq(vb_poll_crowded(&crowd, now), false, "that is its own affair");
}

/* --- leaving the processor of the daemon -------------------------------------------------------- */

/* Turns until the thread should leave, 1 us apart; 0: not within most turns. */
static unsigned turns_until_leave(unsigned most)
{
    for (unsigned i = 1; i <= most; i++) {
        const struct vb_poll_view view = {
            .now = now += US, .alone = true, .same_cpu = same_cpu, .apart = apart, .away = away};

        if (vb_poll_should_leave(&thread, &crowd, &view))
            return i;
    }
    return 0;
}

Test(poll_state, a_thread_leaves_a_daemon_that_wants_to_be_apart)
{
    cr_expect_eq(turns_until_leave(10000), 0, "the daemon does not want it");
    apart = true;
    cr_expect_eq(turns_until_leave(10000), VB_POLL_MOVE_TURNS);
    same_cpu = false;
    cr_expect_eq(turns_until_leave(10000), 0, "it is on another processor");
}

Test(poll_state, a_scheduler_that_brings_a_thread_back_is_left_alone_for_longer_each_time)
{
    apart = true;
    turns_until_leave(VB_POLL_MOVE_TURNS);
    cr_expect_eq(turns_until_leave(100000), VB_POLL_MOVE_MIN_NS / US);
    cr_expect_eq(turns_until_leave(100000), 2 * VB_POLL_MOVE_MIN_NS / US);
    for (int i = 0; i < 10; i++)
        turns_until_leave(100000);
    cr_expect_eq(turns_until_leave(100000), VB_POLL_MOVE_MAX_NS / US);
    now += 100 * VB_POLL_MOVE_MAX_NS;
    cr_expect_eq(turns_until_leave(100000), VB_POLL_MOVE_TURNS, "after a long time");
    cr_expect_eq(turns_until_leave(100000), VB_POLL_MOVE_MIN_NS / US);
}

Test(poll_state, a_thread_stays_where_processors_are_crowded)
{
    apart = true;
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    now += 2 * MS;
    cr_expect_eq(turns_until_leave(999), 0, "a yield was slow");
    cr_expect_eq(turns_until_leave(1000), VB_POLL_MOVE_TURNS, "a millisecond later");
}

/* An empty poll, so long after the last event. */
static void poll_after(uint64_t ns)
{
    now += ns - US;
    poll_once(&thread, 0, &queue[0]);
}

/* A program that waits for bytes in memory does not poll meanwhile. */
Test(poll_state, a_thread_that_pauses_between_its_polls_stays)
{
    apart = true;
    poll_after(10 * MS);
    cr_expect_eq(turns_until_leave(999), VB_POLL_MOVE_TURNS, "it begins to poll");
    now += VB_POLL_PAUSES_NEAR_NS;
    poll_after(2 * MS);
    cr_expect_eq(turns_until_leave(999), VB_POLL_MOVE_TURNS, "a single pause");
    now += VB_POLL_MOVE_MIN_NS;
    poll_after(2 * MS);
    cr_expect_eq(turns_until_leave(VB_POLL_PAUSES_PERIOD_NS / US - 1), 0, "another one soon");
    cr_expect_eq(turns_until_leave(999), VB_POLL_MOVE_TURNS, "after a long time without a pause");
}

Test(poll_state, a_thread_that_pauses_leaves_a_busy_daemon)
{
    apart = away = true;
    for (unsigned i = 0; i < 3; i++)
        poll_after(2 * MS);
    cr_expect_eq(turns_until_leave(999), VB_POLL_MOVE_TURNS);
}

/* A daemon that is busy all the time makes the yields slow itself. */
Test(poll_state, a_thread_leaves_a_busy_daemon_even_where_processors_are_crowded)
{
    apart = away = true;
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    now += 2 * MS;
    cr_expect_eq(turns_until_leave(999), VB_POLL_MOVE_TURNS);
}

/* --- joining the daemon on its processor --------------------------------------------------------- */

/* Turns on another processor until the thread should join the daemon, 1 us apart; 0: not within most turns. In each turn,
 * so many other threads ran on the processor of the thread. */
static unsigned turns_until_join(unsigned most, unsigned others, bool beside)
{
    for (unsigned i = 1; i <= most; i++) {
        const struct vb_poll_view view = {.now = now += US, .alone = true, .same_cpu = same_cpu, .beside = beside};

        switches += others;
        if (vb_poll_counts_away(&thread, &crowd, &view) && vb_poll_should_join(&thread, &view, switches))
            return i;
    }
    return 0;
}

Test(poll_state, a_thread_that_shares_its_processor_joins_the_daemon)
{
    same_cpu = false;
    switches = 12345;
    cr_expect_eq(turns_until_join(10000, 1, false), 0, "the daemon does not want it");
    cr_expect_eq(turns_until_join(10000, 0, true), 0, "it has a processor for itself");
    cr_expect_leq(turns_until_join(10000, 1, true), 2 * VB_POLL_MOVE_TURNS);
    cr_expect_eq(turns_until_join(10000, 1, true), VB_POLL_MOVE_MIN_NS / US + VB_POLL_MOVE_TURNS,
                 "it was brought back");
    same_cpu = true;
    cr_expect_eq(turns_until_join(10000, 1, true), 0, "it is there");
}

Test(poll_state, a_thread_does_not_join_the_daemon_where_processors_are_crowded)
{
    same_cpu = false;
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    now += 2 * MS;
    cr_expect_eq(turns_until_join(999, 1, true), 0, "a yield was slow");
    cr_expect_neq(turns_until_join(1000, 1, true), 0, "a millisecond later");
}

Test(poll_state, a_thread_leaves_a_crowded_processor_for_a_daemon_that_receives)
{
    struct vb_poll_view view = {.now = now, .alone = true, .beside_crowded = true};

    cr_expect_not(vb_poll_should_leave_crowd(&thread, &crowd, &view), "its processor is not crowded");
    vb_poll_yielded(&crowd, now, now + 2 * MS);
    view.now += 2 * MS;
    view.same_cpu = true;
    cr_expect_not(vb_poll_should_leave_crowd(&thread, &crowd, &view), "it is there");
    view.same_cpu = view.beside_crowded = false;
    cr_expect_not(vb_poll_should_leave_crowd(&thread, &crowd, &view), "the daemon does not want it");
    view.beside_crowded = true;
    cr_expect(vb_poll_should_leave_crowd(&thread, &crowd, &view));
    view.now += VB_POLL_MOVE_MIN_NS / 2;
    cr_expect_not(vb_poll_should_leave_crowd(&thread, &crowd, &view), "it was brought back soon");
}
