// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/poll_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/verbs/base/clock.h"

/* A yield that takes longer means that others compute: more than the turns of many ranks that poll and yield, less than a
 * time slice. */
#define SLOW_YIELD_NS UINT64_C(1000000)
/* Then sleep instead, for so long: it may have been a chance, so only for long after several in a row. */
#define SLOW_PERIOD_MIN_NS UINT64_C(1000000)
#define SLOW_PERIOD_MAX_NS UINT64_C(20000000)
/* Many processes that sleep for less at a time starve others for seconds, as Linux 6.18 schedules. */
#define BACKOFF_MIN_NS UINT64_C(100000)
#define LATE_NS UINT64_C(500000) /* a nap that ends so much later than it should means that many wait for a processor */
#define BACKOFF_MAX_NS UINT64_C(4000000)
#define CHECK_NS UINT64_C(50000000) /* between two looks at the session's socket */
/* Who polls for the first time in so long is no busy poller yet, and is not for its first polls. */
#define BUSY_GAP_NS UINT64_C(1000000)
#define BUSY_POLLS 8
#define OTHERS_MAX 16 /* queues that a thread polls in turn, and more */
#define ALONE_POLLS (2 * OTHERS_MAX) /* after so many of one context alone, the thread polls no other */
/* How long at least several threads that poll the same queue do so before one of them waits: more than a time slice. */
#define SHARED_NS UINT64_C(5000000)
#define SHARED_PERIOD_NS UINT64_C(10000000000) /* a queue is thought to be shared for so long after it was seen */
/* How long the daemon is to let a thread sleep, doubled whenever nothing had come: who polls other things, too, loses no more
 * than it has waited already. */
#define WAIT_MIN_US 20
#define WAIT_MAX_US 320
#define YIELDS 32 /* that have brought nothing */
#define YIELDS_SAME 8 /* … on the daemon's processor */
/* Sleeps end after this if the daemon dies; longer than a tick of the kernel's, before which a timer costs 5 us. */
#define DEATH_NS 20000000

/* What the calling thread polls. (initial-exec: a look at it never allocates.) */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint64_t last; /* ns: end of the last empty poll */
    unsigned polls; /* empty ones, none of them long after the one before; stops at BUSY_POLLS */
    const struct vb_cq *waited; /* after polling this one; only compared */
    unsigned others; /* empty polls of others since */
    uint64_t waited_at; /* ns: end of the last wait */
    const struct vb_context *polled; /* last; only compared */
    unsigned alone; /* empty polls in a row of this context's queues; stops at ALONE_POLLS */
    struct pm_session_page *page; /* of the context that was waited for last; only compared */
    uint32_t published; /* there, at the end of the last wait: what came before was polled since */
    uint32_t wait_us; /* us */
    unsigned yields; /* since something was published */
    bool slow; /* and others want the processor meanwhile */
    long switches; /* involuntary ones, at the last look */
} poller;

/* Sleeps until something is published, or so many ns (below a second). */
static void futex_wait(struct pm_session_page *page, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    syscall(SYS_futex, &page->published, FUTEX_WAIT, poller.published, &t, NULL, 0);
}

/* Something was published, or the thread polls for something else now: it waits anew. */
static void wait_anew(void)
{
    poller.wait_us = WAIT_MIN_US;
    poller.yields = 0;
    poller.slow = false;
}

/* Notes which context an empty poll was of. */
static void note_context(struct vb_context *c)
{
    if (poller.polled != c) {
        poller.polled = c;
        poller.alone = 0;
        wait_anew();
    } else if (poller.alone < ALONE_POLLS) {
        poller.alone++;
    }
}

/* A thread that polls queues of several contexts in turn can't sleep for one of them. Nor without knowing what was published
 * before it polled, nor for a daemon that is gone. */
static bool is_only_context(struct vb_context *c)
{
    return poller.alone == ALONE_POLLS && poller.page == c->page &&
           !atomic_load_explicit(&c->gone, memory_order_relaxed);
}

/* Whether others have run on this processor since the last such look. */
static bool is_crowded(void)
{
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    long last = poller.switches;
    poller.switches = r.ru_nivcsw; /* sched_yield counts as one that was not voluntary */
    return poller.switches != last;
}

/* Whether to sleep until the daemon, which is awake, has something. Yields are quicker than being woken; but when many have
 * brought nothing, whatever comes takes its time, and those that also want this processor can have it. Sooner so if the
 * daemon is one of them: a yield does not always give the processor away, above all not to a daemon in another session,
 * since Linux shares it between sessions first (autogroup). */
static bool is_worth_a_wait(struct vb_context *c)
{
    struct pm_session_page *page = c->page;
    if (atomic_load_explicit(&page->sleeping, memory_order_relaxed)) /* nobody would wake it */
        return false;
    if (poller.slow)
        return true;
    bool same = atomic_load_explicit(&page->cpu, memory_order_relaxed) == (uint32_t)sched_getcpu();
    if (++poller.yields % (same ? YIELDS_SAME : YIELDS) == 0)
        poller.slow = same || is_crowded();
    return poller.slow;
}

static void wait_for_daemon(struct vb_context *c)
{
    atomic_store(&c->page->waiting, poller.wait_us);
    if (!atomic_load(&c->page->sleeping)) /* else it would not look at that */
        futex_wait(c->page, DEATH_NS);
    if (poller.wait_us < WAIT_MAX_US)
        poller.wait_us *= 2;
}

/* Sleeps; if it is the only context that the thread polls, no longer than until something is published. If the processors
 * are so crowded that the last nap came back late, as with many ranks of a job on each core, this one is as long as that
 * was late: who only polls then leaves the processors to those who work, and to the daemon, and waits hardly longer than it
 * would have anyway. Returns the time. */
static uint64_t backoff(struct vb_context *c, uint64_t before, bool only)
{
    uint64_t length = atomic_load_explicit(&c->backoff_ns, memory_order_relaxed);
    if (length < BACKOFF_MIN_NS)
        length = BACKOFF_MIN_NS;
    struct timespec backoff_ns = {.tv_nsec = (long)length};
    if (only) {
        atomic_store(&c->page->waiting, (uint32_t)(length / 1000));
        futex_wait(c->page, length);
    } else {
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &backoff_ns, NULL);
    }
    uint64_t took = vb_clock(CLOCK_MONOTONIC) - before;
    uint64_t late = took > length ? took - length : 0;
    if (late <= LATE_NS)
        late = length / 2 > LATE_NS ? length / 2 : 0;
    atomic_store_explicit(&c->backoff_ns, late < BACKOFF_MAX_NS ? late : BACKOFF_MAX_NS, memory_order_relaxed);
    if (late) /* still crowded */
        atomic_store_explicit(&c->slow_until, before + took + SLOW_PERIOD_MAX_NS, memory_order_relaxed);
    return before + took;
}

/* Whether other threads poll this queue, too: then their callers have a lock around it, as UCX does for
 * MPI_THREAD_MULTIPLE, and it is held during this poll. A spin lock whose holder always gives the processor away inside and
 * never outside starves whoever wants to send. So such a queue is hardly ever waited for: a thread that is interrupted
 * at any time has not always the lock. */
static bool is_shared(struct vb_cq *cq, uint64_t now)
{
    const void *last = atomic_load_explicit(&cq->poller, memory_order_relaxed);
    if (last != &poller) {
        atomic_store_explicit(&cq->poller, &poller, memory_order_relaxed);
        if (last)
            atomic_store_explicit(&cq->shared_until, now + SHARED_PERIOD_NS, memory_order_relaxed);
    }
    return now < atomic_load_explicit(&cq->shared_until, memory_order_relaxed);
}

/* Whether a thread that has found nothing in cq is to wait now. One that only has a look now and then must not: UCX's
 * helper thread looks into its queues every few milliseconds, with a spin lock held, for which the thread that works
 * burns its time slices meanwhile. And one that polls several queues in turn waits once in each round. */
static bool is_turn(struct vb_cq *cq, uint64_t now)
{
    if (now - poller.last > BUSY_GAP_NS)
        poller.polls = 0;
    poller.last = now;
    if (poller.polls < BUSY_POLLS) {
        poller.polls++;
        return false;
    }
    if (is_shared(cq, now) && now - poller.waited_at < SHARED_NS)
        return false;
    if (cq != poller.waited && poller.others < OTHERS_MAX) {
        poller.others++;
        return false;
    }
    poller.waited = cq;
    poller.others = 0;
    return true;
}

/* Gives the processor away, and notes whether it came back late. Returns the time. */
static uint64_t yield(struct vb_context *c, uint64_t before)
{
    sched_yield();
    uint64_t after = vb_clock(CLOCK_MONOTONIC);
    if (after - before > SLOW_YIELD_NS) {
        uint64_t until = atomic_load_explicit(&c->slow_until, memory_order_relaxed);
        uint64_t last = atomic_load_explicit(&c->slow_for, memory_order_relaxed);
        if (before >= until + 2 * last)
            last = SLOW_PERIOD_MIN_NS;
        else
            last = last < SLOW_PERIOD_MAX_NS / 2 ? 2 * last : SLOW_PERIOD_MAX_NS;
        atomic_store_explicit(&c->slow_for, last, memory_order_relaxed);
        atomic_store_explicit(&c->slow_until, after + last, memory_order_relaxed);
    }
    return after;
}

static void give_way(struct vb_context *c, uint64_t before)
{
    bool only = is_only_context(c);
    uint64_t after;
    if (only && is_worth_a_wait(c)) {
        wait_for_daemon(c);
        after = vb_clock(CLOCK_MONOTONIC);
    } else if (before < atomic_load_explicit(&c->slow_until, memory_order_relaxed)) {
        after = backoff(c, before, only);
    } else {
        after = yield(c, before);
    }
    poller.last = poller.waited_at = after;
    uint32_t published = atomic_load(&c->page->published);
    if (published / PM_PUBLISHED != poller.published / PM_PUBLISHED)
        wait_anew();
    poller.published = published;
    poller.page = c->page;
}

void vb_poll_wait(struct vb_cq *cq)
{
    struct vb_context *c = vb_ctx(cq->cq.context);
    uint64_t before = vb_clock(CLOCK_MONOTONIC);
    note_context(c);
    if (is_turn(cq, before))
        give_way(c, before);
    uint64_t last = atomic_load_explicit(&c->checked_at, memory_order_relaxed);
    if (before - last > CHECK_NS && atomic_compare_exchange_strong_explicit(&c->checked_at, &last, before,
                                                                            memory_order_relaxed, memory_order_relaxed))
        vb_context_check(c);
}
