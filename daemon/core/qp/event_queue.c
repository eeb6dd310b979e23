// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/event_queue.h"

#include <string.h>

#include "daemon/core/qp/qp.h"

uint32_t completion_room(const struct engine *e)
{
    return e->done_mask + 1 - (e->done_tail - e->done_head);
}

struct completion *completion_add(struct qp *qp, bool is_recv, uint8_t status, uint64_t now)
{
    struct engine *e = qp->e;
    struct completion *c = &e->done[e->done_tail++ & e->done_mask];
    memset(c, 0, offsetof(struct completion, data));
    c->cq = is_recv ? qp->recv_cq : qp->send_cq;
    c->qp_owner = qp->owner;
    c->qpn = qp->qpn;
    c->src_qp = is_recv ? qp->attr.dest_qpn : 0;
    c->timestamp = now;
    c->is_recv = is_recv;
    c->status = status;
    c->solicited = status != WC_SUCCESS;
    return c;
}

struct completion *completion_add_srq(struct srq *srq, uint8_t status, uint64_t now)
{
    struct engine *e = srq->e;
    struct completion *c = &e->done[e->done_tail++ & e->done_mask];
    memset(c, 0, offsetof(struct completion, data));
    c->cq = srq->cq;
    c->srq_owner = srq->owner;
    c->timestamp = now;
    c->is_recv = true;
    c->status = status;
    c->solicited = status != WC_SUCCESS;
    return c;
}

/* Completions of a destroyed QP or SRQ stay in the ring with cq NULL. They are skipped here. */
static void skip_forgotten(struct engine *e)
{
    while (e->done_head != e->done_tail && e->done[e->done_head & e->done_mask].cq == NULL)
        e->done_head++;
}

/* Drops the events of a QP, or of an SRQ if qpn is 0. */
static void forget_events(struct engine *e, uint32_t qpn, const void *srq_owner)
{
    uint32_t kept = e->event_head;
    for (uint32_t i = e->event_head; i != e->event_tail; i++) {
        struct event ev = e->events[i & e->event_mask];
        if (ev.qpn != qpn || ev.srq_owner != srq_owner)
            e->events[kept++ & e->event_mask] = ev;
    }
    e->event_tail = kept;
}

void completion_forget(struct qp *qp)
{
    struct engine *e = qp->e;
    for (uint32_t i = e->done_head; i != e->done_tail; i++) {
        struct completion *c = &e->done[i & e->done_mask];
        if (c->qpn != qp->qpn)
            continue;
        /* The completions of an XRC target stay: they belong to the owner of the SRQ, which may be another session.
         * Those of an SRQ that matches tags stay, too, because its entries and counts depend on them. */
        if (qp->type == QPT_XRC_RECV || c->of != OF_REQUEST)
            c->qp_owner = NULL;
        else
            c->cq = NULL;
    }
    forget_events(e, qp->qpn, NULL);
    skip_forgotten(e);
}

void completion_forget_srq(const struct srq *srq)
{
    struct engine *e = srq->e;
    for (uint32_t i = e->done_head; i != e->done_tail; i++) {
        struct completion *c = &e->done[i & e->done_mask];
        if (c->srq_owner == srq->owner)
            c->cq = NULL;
    }
    forget_events(e, 0, srq->owner);
    skip_forgotten(e);
}

const struct completion *engine_peek_completion(struct engine *e)
{
    skip_forgotten(e);
    return e->done_head == e->done_tail ? NULL : &e->done[e->done_head & e->done_mask];
}

/* An empty ring starts again at its first slot. So a few completions at a time use few cache lines and pages. */
void engine_drop_completion(struct engine *e)
{
    if (e->done_head != e->done_tail && ++e->done_head == e->done_tail)
        e->done_head = e->done_tail = 0;
}

bool event_room(const struct engine *e)
{
    return e->event_tail - e->event_head <= e->event_mask;
}

/* Events that can wait for room do so (event_room). The others are dropped without room. That takes many QPs that fail
 * in one call, because the owner takes events after each call. */
static void add(struct engine *e, const struct event *ev)
{
    if (!event_room(e)) {
        e->counters.events_dropped++;
        return;
    }
    e->events[e->event_tail++ & e->event_mask] = *ev;
}

void event_add(struct qp *qp, uint8_t type)
{
    add(qp->e, &(struct event){.qp_owner = qp->owner, .qpn = qp->qpn, .type = type});
}

void event_add_srq(const struct srq *srq, uint8_t type)
{
    add(srq->e, &(struct event){.srq_owner = srq->owner, .type = type});
}

bool engine_pop_event(struct engine *e, struct event *ev)
{
    if (e->event_head == e->event_tail)
        return false;
    *ev = e->events[e->event_head++ & e->event_mask];
    return true;
}
