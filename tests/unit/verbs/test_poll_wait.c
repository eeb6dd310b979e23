// SPDX-License-Identifier: BSD-2-Clause
/* The system calls of a thread that polls in vain: it really waits for its daemon, and notices that the daemon is gone.
 * There is no daemon here, so each wait lasts VB_POLL_DEATH_NS. The decisions are tested in test_poll_state.c. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/datapath/wqe.h"
#include "system/time_slice.h"
#include "tests/unit/skip.h"

static struct vb_context context;
static struct vb_cq cq;
static struct pm_session_page page;
static int daemon_end;

static void setup(void)
{
    unsigned cpu = (unsigned)sched_getcpu();
    cpu_set_t set;
    int pair[2];

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    context.session.fd = pair[0];
    daemon_end = pair[1];
    context.page = &page;
    page.cpu = cpu; /* where a yield need not let the daemon run */
    cq.cq.context = &context.vctx.context;
}

TestSuite(poll_wait, .init = setup, .timeout = 60);

/* Forgets slow yields and late sleeps. They come from other programs of this machine, and would change what the thread
 * does next. */
static void forget(void)
{
    atomic_store(&context.crowd.slow_until, 0);
    atomic_store(&context.crowd.backoff_ns, 0);
    vb_poll_self.nap = (struct vb_poll_nap){0};
    vb_poll_self.brief = (struct vb_poll_brief){0};
}

/* Polls until the thread says in the page that it waits; that is taken back. */
static bool waits(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        forget();
        vb_poll_wait(&cq);
        if (atomic_exchange(&page.waiting, 0) != 0)
            return true;
    }
    return false;
}

Test(poll_wait, a_thread_waits_for_its_daemon)
{
    uint64_t before = vb_clock(CLOCK_MONOTONIC);

    cr_assert(waits(200));
    cr_expect_geq(vb_clock(CLOCK_MONOTONIC) - before, VB_POLL_DEATH_NS);
}

/* The thread has work: it may post its next request. */
Test(poll_wait, a_thread_that_has_just_posted_does_not_give_its_processor_away)
{
    static struct pm_qp_page queues;
    static struct vb_qp qp = {.page = &queues};

    cr_assert(waits(200), "without a request it waits");
    uint64_t turn_at = vb_poll_self.turn_at;
    for (uint32_t tail = 1; tail <= 200; tail++) {
        vb_send_publish(&context, &qp, tail);
        cr_assert_eq(atomic_load(&queues.sq_tail), tail);
        cr_assert_not(waits(1), "request %u", tail);
    }
    cr_expect_eq(vb_poll_self.turn_at, turn_at, "no yield and no sleep either");
    cr_expect(waits(200), "it waits again after its last request");
}

/* Nobody wakes it, so the wait ends long after the time that it asked for. */
Test(poll_wait, a_late_end_of_that_wait_shows_that_other_programs_compute)
{
    for (unsigned i = 0; i < 200 && atomic_load(&page.waiting) == 0; i++) {
        forget();
        vb_poll_wait(&cq);
    }
    cr_assert_neq(atomic_load(&page.waiting), 0);
    cr_expect_neq(vb_poll_self.brief.slow_at, 0);
}

/* No thread would end the wait. */
Test(poll_wait, a_thread_does_not_wait_for_a_daemon_that_is_gone)
{
    cr_assert(waits(200));
    close(daemon_end);
    for (unsigned i = 0; i < 10000 && !context.gone; i++)
        vb_poll_wait(&cq);
    cr_assert(context.gone);
    atomic_store(&page.waiting, 0);
    cr_expect(!waits(200));
}

/* --- crowded processors --------------------------------------------------------------------------- */

/* A slow yield was just now, and CROWDED lasts longer than the test. The daemon sleeps, so the thread can't wait for its
 * time. */
static void crowd(void)
{
    cr_assert(waits(200));
    forget();
    atomic_store(&page.sleeping, 1);
    atomic_store(&context.crowd.slow_until, UINT64_MAX);
}

/* Polls until the thread has had a turn. If the machine lets it pause between two polls, that is not at the first one. */
static void turn(void)
{
    uint64_t last = vb_poll_self.turn_at;

    for (unsigned i = 0; i < 10000 && vb_poll_self.turn_at == last; i++)
        vb_poll_wait(&cq);
    cr_assert_neq(vb_poll_self.turn_at, last);
}

Test(poll_wait, a_thread_among_many_waits_as_usual)
{
    crowd();
    vb_poll_self.brief.until = UINT64_MAX;
    turn();
    cr_expect_neq(vb_poll_self.brief.until, 0);
    atomic_store(&page.many, 1);
    turn();
    cr_expect_eq(vb_poll_self.brief.until, 0);
}

Test(poll_wait, it_hears_how_slow_the_machine_is)
{
    crowd();
    atomic_store(&page.yield_ns, 12000);
    turn();
    cr_expect_eq(vb_poll_self.brief.yield_ns, 12000);
    cr_expect_eq(context.crowd.yield_ns, 12000);
}

Test(poll_wait, a_thread_on_crowded_processors_sleeps_until_news)
{
    crowd();
    uint64_t before = vb_clock(CLOCK_MONOTONIC);
    turn();
    cr_expect_eq(page.waiting, PM_WAITS_FOR_NEWS);
    cr_expect_geq(vb_clock(CLOCK_MONOTONIC) - before, VB_POLL_NAP_NS);
}

/* Otherwise the daemon would not wake the other one in time. */
Test(poll_wait, it_leaves_the_wait_of_another_thread_alone)
{
    crowd();
    atomic_store(&page.waiting, 20);
    turn();
    cr_expect_eq(page.waiting, 20);
}

static void *publish(void *arg)
{
    while (atomic_load(&page.waiting) == 0)
        usleep(100);
    atomic_fetch_add(&page.published, PM_PUBLISHED);
    return arg;
}

Test(poll_wait, news_while_it_falls_asleep_count)
{
    pthread_t thread;

    crowd();
    cr_assert_eq(pthread_create(&thread, NULL, publish, NULL), 0);
    for (int i = 0; i < 200 && vb_poll_self.nap.good == 0; i++) { /* the other thread may get no processor in time */
        vb_poll_self.nap = (struct vb_poll_nap){0};
        turn();
    }
    pthread_join(thread, NULL);
    cr_expect_eq(vb_poll_self.nap.good, 1);
    cr_expect_eq(vb_poll_self.nap.pause, 0);
}

/* The daemon has woken the thread, which gets a processor only when its limit is over. Nothing else shows that other
 * programs compute: the thread does not yield, and its sleep is not longer than its limit. */
Test(poll_wait, late_wakeups_show_that_other_programs_compute)
{
    crowd();
    for (unsigned i = 0; i < 200 && vb_poll_self.brief.slow_at == 0; i++) { /* it may begin later than woken_at */
        vb_poll_self.nap = (struct vb_poll_nap){0};
        atomic_store(&page.woken_at, vb_clock(CLOCK_MONOTONIC) + VB_POLL_SLOW_YIELD_NS);
        turn();
        atomic_store(&page.waiting, 0);
    }
    cr_expect_neq(vb_poll_self.brief.slow_at, 0);
}

static atomic_bool seen_short, stop;
static pid_t poller;

static void *watch_slice(void *arg)
{
    struct time_slice_attr a = {.size = sizeof(a)};

    while (!atomic_load(&stop) && !atomic_load(&seen_short)) {
        syscall(SYS_sched_getattr, poller, &a, sizeof(a), 0);
        atomic_store(&seen_short, a.runtime == TIME_SLICE_SHORT_NS);
        usleep(100);
    }
    return arg;
}

/* Set before the wait, and back after it. */
Test(poll_wait, a_thread_waits_with_a_short_slice)
{
    struct time_slice_attr a;

    crowd();
    if (!time_slice_read(&a))
        SKIP_TEST("short slices", "this kernel does not have them");
    uint64_t usual = a.runtime;
    poller = gettid();
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, watch_slice, NULL), 0);
    for (int i = 0; i < 1000 && !atomic_load(&seen_short); i++) {
        vb_poll_self.brief.until = UINT64_MAX; /* slow waits may set it */
        vb_poll_wait(&cq);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    cr_expect(seen_short);
    cr_assert(time_slice_read(&a));
    cr_expect_eq(a.runtime, usual);
}
