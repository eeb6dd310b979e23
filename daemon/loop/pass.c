// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/pass.h"

#include "daemon/base/clock.h"
#include "daemon/device/client_wakeup.h"
#include "daemon/monitor/error_log.h"
#include "daemon/monitor/ping.h"
#include "daemon/session/objects.h"
#include "daemon/session/session.h"
#include "daemon/session/tm_srq.h"

#define HOLD_ACKS_MAX 4u /* packets received in a pass up to which their ACKs wait for the next one */
#define ROUNDS_MAX 16 /* batches sent in one pass, before receiving gets its turn */

/* --- what the engine tells
 * ---------------------------------------------------------------------------------------------- */

/* A queue pair that lost a completion fails, as on a NIC. Not an XRC target: the overrun queue is an SRQ's, of one of
 * its openers, and others use the target, too. That SRQ fails: else it would go on to take messages that nobody sees. */
static void fail_overrun(const struct completion *c)
{
    struct qpair *q = c->qp_owner;
    struct srqueue *srq = c->srq_owner;

    if (srq && srq->xrcd)
        srq_fail(srq->srq);
    if (!q || !q->session)
        return;
    q->overran = true;
    qpair_mark_failed(q);
}

static unsigned publish_completions(struct device *d)
{
    const struct completion *c;
    unsigned n = 0;

    while ((c = engine_peek_completion(d->engine)) != NULL) {
        if (!cq_publish(c->cq, c))
            fail_overrun(c);
        if (c->qp_owner && c->status != WC_SUCCESS && c->status != WC_TM_RNDV_INCOMPLETE) {
            qpair_mark_failed(c->qp_owner);
        }
        engine_drop_completion(d->engine);
        n++;
    }
    return n;
}

static unsigned publish_events(struct device *d)
{
    struct event ev;
    unsigned n = 0;

    while (engine_pop_event(d->engine, &ev)) {
        struct srqueue *srq = ev.srq_owner;
        struct qpair *q = ev.qp_owner;

        if (srq)
            session_event(srq->session, ev.type, srq->handle);
        if (q) {
            qpair_event(q, ev.type);
            qpair_mark_failed(q); /* most events mean that the state changed */
        }
        n++;
    }
    return n;
}

static unsigned settle_failed(struct device *d, uint64_t now)
{
    struct srqueue *srq;
    struct qpair *q;
    unsigned n = 0;

    while ((srq = TAILQ_FIRST(&d->failed_srqs)) != NULL) {
        TAILQ_REMOVE(&d->failed_srqs, srq, failed_link);
        srq->in_failed = false;
        srqueue_settle(srq, now);
        n++;
    }
    while ((q = TAILQ_FIRST(&d->failed)) != NULL) {
        TAILQ_REMOVE(&d->failed, q, failed_link);
        q->in_failed = false;
        qpair_settle(q, now);
        n++;
    }
    return n;
}

/* Writes first, then what reports them; then the queues that failed, which makes more of both. */
static unsigned publish(struct device *d, uint64_t now)
{
    struct cq *cq;
    uint32_t qpn;
    unsigned n = 0, m;

    do {
        memory_flush(&d->memory);
        while (memory_pop_fault(&d->memory, &qpn))
            engine_mem_fault(d->engine, qpn, now);
        checks_take(d, now);
        reports_log(d); /* while the queue pairs that they are about are there */
        m = publish_completions(d) + publish_events(d) + settle_failed(d, now);
        n += m;
    } while (m);
    while ((cq = TAILQ_FIRST(&d->dirty_cqs)) != NULL) {
        TAILQ_REMOVE(&d->dirty_cqs, cq, dirty_link);
        cq->dirty = false;
        waiter_tell(cq->session);
        cq_notify(cq, now);
    }
    return n;
}

/* --- a pass
 * -------------------------------------------------------------------------------------------------------------- */

static unsigned drain_backlog(struct device *d, uint64_t now)
{
    struct qpair_list list = TAILQ_HEAD_INITIALIZER(list);
    struct qpair *q;
    unsigned n = 0;

    TAILQ_CONCAT(&list, &d->backlog,
                 backlog_link); /* those that are not done enter the list again, behind the others */
    while ((q = TAILQ_FIRST(&list)) != NULL) {
        TAILQ_REMOVE(&list, q, backlog_link);
        q->in_backlog = false;
        n += qpair_drain_send(q, now);
    }
    return n;
}

static unsigned send_all(struct device *d, uint64_t now)
{
    unsigned work = 0, sent;

    for (unsigned round = 0; round < ROUNDS_MAX && (sent = txpath_send(d, now)) != 0; round++)
        work += sent + publish(d, now);
    return work + publish(d, now); /* taking packets out can make completions, too */
}

bool datapath_pass(struct device *d, uint64_t now)
{
    struct session *s;
    unsigned work = 0, received = 0;
    bool held = d->tx.held;

    d->now = now;
    d->tx.hold_acks = d->tx.held = false;
    TAILQ_FOREACH(s, &d->sessions, link)
    work += session_scan(s, now);
    if (!TAILQ_EMPTY(&d->backlog))
        work += drain_backlog(d, now);
    if (!TAILQ_EMPTY(&d->waiting_lists))
        work += taglist_drain_waiting(d, now);
    if (work || held) /* what was posted leaves before the socket is asked, which costs as much as a small message */
        work += send_all(d, now);
    if (d->udp.fd >= 0)
        received = rxpath_receive(d, now);
    if (!TAILQ_EMPTY(&d->groups))
        received += rxpath_receive_groups(d, now);
    if (engine_deadline(d->engine) <= now)
        engine_expire(d->engine, now);
    if (d->held_due <= now)
        work += cq_release_held(d, now);
    work += received + publish(d, now);
    /* A message or two have just been handed over: the answer, if there is one, leaves first, and the ACKs with it. */
    d->tx.hold_acks = received && received <= HOLD_ACKS_MAX;
    work += send_all(d, now);
    return work != 0;
}

void datapath_send_posted(struct device *d, struct qpair *q)
{
    int64_t left = ring_waiting(&q->sq); /* what is posted from now on is too late */
    unsigned n;

    do { /* in whole passes, so that nobody's packets wait for a long queue of another's */
        uint64_t now = clock_ns();

        n = qpair_drain_send(q, now);
        datapath_pass(d, now); /* also what is out of the ring already, and has not left */
        left -= n;
    } while (n && left > 0);
}

uint64_t datapath_deadline(const struct device *d)
{
    uint64_t due = engine_deadline(d->engine);

    if (faultq_deadline(&d->faultq) < due)
        due = faultq_deadline(&d->faultq);
    return d->held_due < due ? d->held_due : due;
}
