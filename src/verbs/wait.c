// SPDX-License-Identifier: BSD-2-Clause
#include "wait.h"

#include <poll.h>
#include <sched.h>
#include <time.h>

/* A yield that takes longer means that others compute: more than the turns of many ranks that poll and yield, less than a
 * time slice. */
#define SLOW_YIELD_NS UINT64_C(1000000)
/* Then sleep instead, for so long: it may have been a chance, so only for long after several in a row. */
#define SLOW_PERIOD_MIN_NS UINT64_C(1000000)
#define SLOW_PERIOD_MAX_NS UINT64_C(20000000)
/* Many processes that sleep for less at a time starve others for seconds, as Linux 6.18 schedules. */
#define NAP_MIN_NS UINT64_C(100000)
#define LATE_NS UINT64_C(500000) /* a nap that ends so much later than it should means that many wait for a processor */
#define NAP_MAX_NS UINT64_C(4000000)
#define CHECK_NS UINT64_C(50000000) /* between two looks at the session's socket */
/* Who polls for the first time in so long is no busy poller yet, and is not for its first polls. */
#define BUSY_GAP_NS UINT64_C(1000000)
#define BUSY_POLLS 8
#define OTHERS_MAX 16 /* queues that a thread polls in turn, and more */
/* How long at least several threads that poll the same queue do so before one of them waits: more than a time slice. */
#define SHARED_NS UINT64_C(5000000)
#define SHARED_PERIOD_NS UINT64_C(10000000000) /* a queue is thought to be shared for so long after it was seen */

uint64_t vb_clock(int clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void vb_wait_check(struct vb_context *c)
{
    int fd = atomic_load(&c->session.fd);
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    if (fd < 0 || (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))))
        atomic_store(&c->gone, true);
}

/* Sleeps. If the processors are so crowded that the last nap came back late, as with many ranks of a job on each core,
 * this one is as long as that was late: who only polls then leaves the processors to those who work, and to the daemon,
 * and waits hardly longer than it would have anyway. Returns the time. */
static uint64_t take_nap(struct vb_context *c, uint64_t before)
{
    uint64_t length = atomic_load_explicit(&c->nap, memory_order_relaxed);
    if (length < NAP_MIN_NS)
        length = NAP_MIN_NS;
    struct timespec nap = {.tv_nsec = (long)length};
    nanosleep(&nap, NULL);
    uint64_t took = vb_clock(CLOCK_MONOTONIC) - before;
    uint64_t late = took > length ? took - length : 0;
    if (late <= LATE_NS)
        late = length / 2 > LATE_NS ? length / 2 : 0;
    atomic_store_explicit(&c->nap, late < NAP_MAX_NS ? late : NAP_MAX_NS, memory_order_relaxed);
    if (late) /* still crowded */
        atomic_store_explicit(&c->slow_until, before + took + SLOW_PERIOD_MAX_NS, memory_order_relaxed);
    return before + took;
}

/* What the calling thread polls. (initial-exec: a look at it never allocates.) */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint64_t last; /* ns: end of the last empty poll */
    unsigned polls; /* empty ones, none of them long after the one before; stops at BUSY_POLLS */
    const struct vb_cq *waited; /* after polling this one; only compared */
    unsigned others; /* empty polls of others since */
    uint64_t waited_at; /* ns: end of the last wait */
} poller;

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

void vb_wait_idle(struct vb_cq *cq)
{
    struct vb_context *c = vb_ctx(cq->cq.context);
    uint64_t before = vb_clock(CLOCK_MONOTONIC);
    if (!is_turn(cq, before)) {
        /* none */
    } else if (before < atomic_load_explicit(&c->slow_until, memory_order_relaxed)) {
        poller.last = poller.waited_at = take_nap(c, before);
    } else {
        poller.last = poller.waited_at = yield(c, before);
    }
    uint64_t last = atomic_load_explicit(&c->checked_at, memory_order_relaxed);
    if (before - last > CHECK_NS && atomic_compare_exchange_strong_explicit(&c->checked_at, &last, before,
                                                                            memory_order_relaxed, memory_order_relaxed))
        vb_wait_check(c);
}
