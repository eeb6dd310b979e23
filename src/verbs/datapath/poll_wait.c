// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/poll_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/base/move_cpu.h"

/* --- system calls ----------------------------------------------------------------------------- */
/* The sleeps go through syscall(), so that they are no cancellation points: see cancel.h. */

/* Sleeps until the daemon publishes something, or for ns (less than a second). */
static void futex_wait(struct pm_session_page *page, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    syscall(SYS_futex, &page->published, FUTEX_WAIT, vb_poll_self.published, &t, NULL, 0);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static long involuntary_switches(void)
{
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return r.ru_nivcsw;
}

/* --- actions ---------------------------------------------------------------------------------- */

/* A wait that began at before, and should have ended at due at the latest, ended at after. If the daemon woke the thread
 * meanwhile, the wait should have ended then. The daemon's clock may be of another time namespace. */
static void note_wait(const struct vb_context *c, uint64_t before, uint64_t due, uint64_t after)
{
    uint64_t woken = atomic_load_explicit(&c->page->woken_at, memory_order_relaxed);
    vb_poll_brief_waited(&vb_poll_self.brief, woken > before && woken < due ? woken : due, after);
}

/* Waits until the daemon wakes this thread: with a completion, or after as many us as the thread asked for. The timer
 * of the futex ends the wait only if the daemon dies. A short timer of the client would cost more than the wait itself
 * in a virtual machine. */
static uint64_t wait_for_daemon(struct vb_context *c, uint64_t before)
{
    uint32_t us = vb_poll_next_wait_us(&vb_poll_self);
    atomic_store(&c->page->waiting, us);
    if (!atomic_load(&c->page->sleeping)) /* a daemon that sleeps by now does not look at `waiting` */
        futex_wait(c->page, VB_POLL_DEATH_NS);
    uint64_t after = vb_clock(CLOCK_MONOTONIC);
    note_wait(c, before, before + us * UINT64_C(1000), after);
    return after;
}

static bool has_news(const struct vb_context *c)
{
    return atomic_load(&c->page->published) / PM_PUBLISHED != vb_poll_self.published / PM_PUBLISHED;
}

/* Sleeps until the daemon publishes something, or for the limit. The daemon may sleep meanwhile. If another thread of
 * the client waits, the daemon ends both waits. */
static uint64_t sleep_until_news(struct vb_context *c, uint64_t before)
{
    uint32_t nobody = 0;
    uint64_t limit = vb_poll_nap_limit(&vb_poll_self.nap, &c->crowd, before);
    atomic_compare_exchange_strong(&c->page->waiting, &nobody, PM_WAITS_FOR_NEWS);
    futex_wait(c->page, limit);
    uint64_t after = vb_clock(CLOCK_MONOTONIC);
    note_wait(c, before, before + limit, after);
    vb_poll_napped(&vb_poll_self.nap, &c->crowd, limit, before, after, has_news(c));
    return after;
}

static uint64_t sleep_for_backoff(struct vb_context *c, uint64_t before)
{
    uint64_t length = vb_poll_backoff(&c->crowd);
    sleep_ns(length);
    uint64_t after = vb_clock(CLOCK_MONOTONIC);
    vb_poll_slept(&c->crowd, length, before, after);
    return after;
}

static uint64_t yield(struct vb_context *c, uint64_t before)
{
    uint64_t after = vb_yield(before);
    vb_poll_yielded(&c->crowd, before, after);
    return after;
}

/* Goes to the processor where the daemon wants this thread to be, if it is time for that. */
static void move(struct vb_context *c, struct vb_poll_view *view)
{
    const struct pm_session_page *page = c->page;
    uint32_t cpu = atomic_load_explicit(&page->cpu, memory_order_relaxed);
    uint32_t apart = atomic_load_explicit(&page->apart, memory_order_relaxed);
    uint32_t beside = atomic_load_explicit(&page->beside, memory_order_relaxed);
    view->same_cpu = cpu == (uint32_t)sched_getcpu();
    view->apart = apart != 0;
    view->away = apart == PM_AWAY;
    view->beside = beside == PM_BESIDE;
    view->beside_crowded = beside == PM_BESIDE_CROWDED;
    if (vb_poll_should_leave(&vb_poll_self, &c->crowd, view))
        vb_leave_cpu(cpu);
    else if (vb_poll_should_leave_crowd(&vb_poll_self, &c->crowd, view))
        vb_join_cpu(cpu);
    else if (vb_poll_counts_away(&vb_poll_self, &c->crowd, view) &&
             vb_poll_should_join(&vb_poll_self, view, involuntary_switches()))
        vb_join_cpu(cpu);
}

static enum vb_poll_action choose(struct vb_context *c, uint64_t now)
{
    const struct pm_session_page *page = c->page;
    struct vb_poll_view view = {
        .now = now,
        .alone = vb_poll_is_alone(&vb_poll_self, page, atomic_load_explicit(&c->gone, memory_order_relaxed)),
        .daemon_sleeps = atomic_load_explicit(&page->sleeping, memory_order_relaxed),
    };
    if (view.alone)
        move(c, &view);
    enum vb_poll_action action = vb_poll_choose(&vb_poll_self, &c->crowd, &view);
    if (action == VB_POLL_COUNT_SWITCHES)
        action = vb_poll_choose_counted(&vb_poll_self, &c->crowd, &view, involuntary_switches());
    return action;
}

static void hear_daemon(struct vb_context *c)
{
    const struct pm_session_page *page = c->page;
    uint32_t yield_ns = atomic_load_explicit(&page->yield_ns, memory_order_relaxed);
    vb_poll_brief_many(&vb_poll_self.brief, atomic_load_explicit(&page->many, memory_order_relaxed));
    vb_poll_self.brief.yield_ns = yield_ns;
    vb_poll_crowd_yield_costs(&c->crowd, yield_ns);
}

static void take_turn(struct vb_context *c, uint64_t before)
{
    static uint64_t (*const act[])(struct vb_context *, uint64_t) = {
        [VB_POLL_YIELD] = yield,
        [VB_POLL_SLEEP] = sleep_for_backoff,
        [VB_POLL_SLEEP_OR_NEWS] = sleep_until_news,
        [VB_POLL_WAIT] = wait_for_daemon,
    };
    hear_daemon(c);
    enum vb_poll_action action = choose(c, before);
    vb_slice_begin(before);
    uint64_t after = act[action](c, before);
    vb_slice_end();
    vb_poll_turn_done(&vb_poll_self, c->page, atomic_load(&c->page->published), after);
}

void vb_poll_wait_at(struct vb_context *c, struct vb_poll_queue *queue)
{
    uint64_t before = vb_clock(CLOCK_MONOTONIC);
    if (vb_poll_turn(&vb_poll_self, c, queue, before))
        take_turn(c, before);
    uint64_t last = atomic_load_explicit(&c->checked_at, memory_order_relaxed);
    if (before - last > VB_POLL_CHECK_NS &&
        atomic_compare_exchange_strong_explicit(&c->checked_at, &last, before, memory_order_relaxed,
                                                memory_order_relaxed))
        vb_context_check(c);
}

void vb_poll_wait(struct vb_cq *cq)
{
    vb_poll_wait_at(vb_ctx(cq->cq.context), &cq->polled);
}
