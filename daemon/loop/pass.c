// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/pass.h"

#include "daemon/base/clock.h"
#include "daemon/loop/completion_delay.h"
#include "daemon/loop/fault_watch.h"
#include "daemon/loop/mads.h"
#include "daemon/loop/rx.h"
#include "daemon/loop/tx.h"
#include "daemon/monitor/error_log.h"
#include "daemon/monitor/ping.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/qp/comp_cntr.h"
#include "daemon/objects/qp/failed_queues.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_ring.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/srq/tm_srq.h"
#include "daemon/session/client_wakeup.h"
#include "daemon/session/session.h"

/* ACKs wait for the next pass if at most this many packets were received in this one. */
#define HOLD_ACKS_MAX 4u
/* A pass sends at most so many batches, and no further one after so many bytes, before it goes on to receive. A QP whose
 * window is full waits for an ACK meanwhile. With long passes it gets less than its share while another user's QPs send
 * large messages: with 16 batches of 256 KiB it got a quarter. */
#define ROUNDS_MAX 16u
#define ROUNDS_BYTES (256u << 10)

/* --- results of the engine --------------------------------------------------------------------- */

/* A QP that lost a completion fails, as on a NIC. An XRC target QP does not fail: the CQ that overran belongs to an
 * SRQ of one session, and other sessions use the target QP too. That SRQ fails, because it would otherwise take more
 * messages without completions. */
static void fail_overrun(const struct completion *c)
{
    struct client_qp *q = c->qp_owner;
    struct client_srq *srq = c->srq_owner;

    if (srq && srq->xrcd)
        srq_fail(srq->srq);
    if (!q || !q->session)
        return;
    q->overran = true;
    client_qp_mark_failed(q);
}

static void publish_completion(struct device *d, const struct completion *c)
{
    const struct client_srq *srq = c->srq_owner;
    const struct cq *cq = c->cq;

    if (__builtin_expect(d->memory.late != NULL, 0))
        mem_backend_settle(&d->memory, cq->session->cred.pid);
    if (!cq_publish(c->cq, c, srq ? srq->handle : 0))
        fail_overrun(c);
    if (c->qp_owner && c->status != WC_SUCCESS && c->status != WC_TM_RNDV_INCOMPLETE)
        client_qp_mark_failed(c->qp_owner);
}

static unsigned publish_due(struct device *d, uint64_t now)
{
    const struct completion *c;
    unsigned n = 0;

    for (; (c = completion_delay_pop(d->completion_delay, now)) != NULL; n++)
        publish_completion(d, c);
    return n;
}

/* An unkind device delays its completions. */
static unsigned publish_late(struct device *d, uint64_t now)
{
    const struct completion *c;
    unsigned n = 0;

    for (; (c = engine_peek_completion(d->engine)) != NULL; n++) {
        if (!completion_delay_push(d->completion_delay, c, now)) {
            publish_due(d, NEVER);
            completion_delay_push(d->completion_delay, c, now);
        }
        engine_drop_completion(d->engine);
    }
    return n + publish_due(d, now);
}

static unsigned publish_completions(struct device *d, uint64_t now)
{
    const struct completion *c;
    unsigned n = 0;

    if (__builtin_expect(d->completion_delay != NULL, 0))
        return publish_late(d, now);
    for (; (c = engine_peek_completion(d->engine)) != NULL; n++) {
        publish_completion(d, c);
        engine_drop_completion(d->engine);
    }
    return n;
}

static unsigned publish_events(struct device *d)
{
    struct event ev;
    unsigned n = 0;

    while (engine_pop_event(d->engine, &ev)) {
        /* The program may poll after the event for what came before it. */
        if (d->completion_delay)
            publish_due(d, NEVER);
        mem_backend_settle(&d->memory, 0);
        struct client_srq *srq = ev.srq_owner;
        struct client_qp *q = ev.qp_owner;

        if (srq)
            session_event(srq->session, ev.type, srq->handle);
        if (q) {
            client_qp_event(q, ev.type);
            client_qp_mark_failed(q); /* most events mean a change of state */
        }
        n++;
    }
    return n;
}

static void notify(struct device *d, uint64_t now)
{
    struct cq *cq;

    while ((cq = TAILQ_FIRST(&d->dirty_cqs)) != NULL) {
        TAILQ_REMOVE(&d->dirty_cqs, cq, dirty_link);
        cq->dirty = false;
        client_wakeup_published(cq->session);
        cq_notify(cq, now);
    }
}

/* First carries out the deferred writes, then publishes the completions and events that report them. Then handles the
 * queues that failed, which makes more writes and completions. */
static unsigned publish(struct device *d, uint64_t now)
{
    struct mem_fault fault;
    unsigned n = 0, m;

    do {
        mem_backend_place(&d->memory, now);
        while (mem_backend_pop_fault(&d->memory, &fault)) {
            if (fault.unmapped)
                engine_mem_unmapped(d->engine, fault.qpn, fault.n);
            else
                engine_mem_fault(d->engine, fault.qpn, now);
        }
        ping_take(d, now);
        mads_receive(d);
        error_log_take(d); /* while the QPs of the reports still exist */
        m = publish_completions(d, now) + publish_events(d) + failed_queues_settle(d);
        n += m;
    } while (m);
    comp_cntrs_publish(d);
    notify(d, now);
    return n;
}

void device_settle(struct device *d)
{
    mem_backend_settle(&d->memory, 0);
    if (!d->completion_delay)
        return;
    publish_due(d, NEVER);
    notify(d, d->now);
}

/* --- a pass ------------------------------------------------------------------------------------ */

static unsigned drain_backlog(struct device *d)
{
    struct client_qp_list list = TAILQ_HEAD_INITIALIZER(list);
    struct client_qp *q;
    unsigned n = 0;

    /* A QP with more requests enters the backlog again, behind the others. */
    TAILQ_CONCAT(&list, &d->backlog, backlog_link);
    while ((q = TAILQ_FIRST(&list)) != NULL) {
        TAILQ_REMOVE(&list, q, backlog_link);
        q->in_backlog = false;
        n += client_qp_drain_send(q);
    }
    return n;
}

static unsigned send_all(struct device *d, uint64_t now)
{
    unsigned work = 0, sent;
    size_t bytes = 0;

    for (unsigned i = 0; i < ROUNDS_MAX && bytes < ROUNDS_BYTES && (sent = device_tx(d, now)) != 0; i++) {
        bytes += d->tx.used;
        work += sent + publish(d, now);
    }
    return work + publish(d, now); /* taking packets out of the engine can also make completions */
}

bool device_pass(struct device *d, uint64_t now)
{
    struct session *s;
    unsigned work = 0, received = 0;
    bool held = d->tx.held;

    d->now = now;
    if (fault_watch_due(d, now))
        fault_watch(d, now);
    d->tx.hold_acks = d->tx.held = false;
    TAILQ_FOREACH (s, &d->sessions, link)
        work += doorbells_scan(&s->doorbells, now);
    if (!TAILQ_EMPTY(&d->backlog))
        work += drain_backlog(d);
    if (!TAILQ_EMPTY(&d->waiting_tm_srqs))
        work += tm_srq_drain_waiting(d, now);
    work += mads_send(d);
    /* Posted requests are sent before the socket is read. Reading costs as much as sending a small message. */
    if (work || held)
        work += send_all(d, now);
    if (udp_is_open(&d->udp))
        received = device_rx(d, now);
    if (!TAILQ_EMPTY(&d->groups))
        received += device_rx_groups(d, now);
    if (engine_deadline(d->engine) <= now)
        engine_expire(d->engine, now);
    if (d->held_due <= now)
        work += cq_release_held(d, now);
    unsigned published = publish(d, now);
    work += received + published;
    /* After a few packets, probably one or two messages were delivered. If the program answers at
     * once, the answer and the ACKs leave by one system call. */
    d->tx.hold_acks = received && received <= HOLD_ACKS_MAX;
    d->delivered_few = d->tx.hold_acks && published;
    work += send_all(d, now);
    if (__builtin_expect(segment_guard_losses() != d->segment_losses, 0))
        session_end_lost(d);
    return work != 0;
}

void device_send_posted(struct device *d, struct client_qp *q)
{
    int64_t left = ring_waiting(&q->sq); /* requests posted later are not counted */
    unsigned n;

    /* Whole passes, so that the packets of other QPs don't wait for one long queue. */
    do {
        n = client_qp_drain_send(q);
        device_pass(d, clock_ns()); /* also sends requests that were read from the ring earlier */
        left -= n;
    } while (n && left > 0);
}

uint64_t device_deadline(const struct device *d)
{
    uint64_t due = engine_deadline(d->engine);

    if (delay_queue_deadline(&d->delay_queue) < due)
        due = delay_queue_deadline(&d->delay_queue);
    if (fault_deadline(&d->fault) < due)
        due = fault_deadline(&d->fault);
    if (d->held_due < due)
        due = d->held_due;
    if (d->completion_delay && completion_delay_deadline(d->completion_delay) < due)
        due = completion_delay_deadline(d->completion_delay);
    if (mem_backend_deadline(&d->memory) < due)
        due = mem_backend_deadline(&d->memory);
    return due;
}
