// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/tm_entry.h"

#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/tm/tag_list.h"

static struct srq *srq_of(const struct qp *qp)
{
    return srq_find(qp->e, qp->srqn);
}

struct completion *tm_complete(struct qp *qp, const struct tm_rx *rx, uint8_t status, uint8_t flags, uint64_t now)
{
    const struct srq *srq = srq_of(qp);
    struct completion *c = completion_add(qp, true, status, now);
    c->cq = srq->cq;
    c->srq_owner = srq->owner;
    c->of = OF_TM_ENTRY;
    c->slot = TM_SLOT(rx->entry->handle);
    c->wr_id = rx->entry->recv_wr_id;
    c->opcode = WC_TM_RECV;
    c->flags = flags;
    if (flags & WC_TM_MATCH) {
        c->tm_tag = rx->tmh.tag;
        c->tm_priv = rx->tmh.app_ctx;
    }
    return c;
}

void tm_complete_entry(struct qp *qp, struct tm_rx *rx, uint8_t status, uint64_t now)
{
    tm_complete(qp, rx, status, 0, now);
    tm_drop(qp->tm, rx, now);
}

void tm_delivered(struct qp *qp, struct completion *c, uint64_t now)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    if (c->opcode != WC_RECV)
        return; /* the completion belongs to an RDMA WRITE with immediate data */
    c->opcode = tm_wc_opcode(TM_ACT_BUFFER, rx->kind);
    if (c->opcode == WC_TM_RECV)
        c->of = OF_TM_UNEXPECTED;
    c->flags |= tm_done(qp->tm, rx, now);
}

bool tm_fail_message(struct qp *qp, uint8_t status, uint64_t now)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    if (!rx->entry)
        return false;
    tm_complete_entry(qp, rx, status, now);
    return true;
}

bool tm_fault(struct qp *qp, const struct completion *c, uint64_t now)
{
    if (c->of == OF_TM_ENTRY)
        return c->flags & WC_TM_DATA_VALID; /* a match alone reports no data */
    if (c->of == OF_TM_UNEXPECTED)
        tm_uncount(qp->tm, now);
    return true;
}

/* --- the end of a QP -------------------------------------------------------------------------- */

bool tm_flush(struct qp *qp, uint64_t now)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    if (!rx->entry)
        tm_drop(qp->tm, rx, now); /* an unexpected message is not counted, so it no longer keeps entries pending */
    else if (completion_room(qp->e) == 0)
        return true;
    else
        tm_complete_entry(qp, rx, WC_WR_FLUSH_ERR, now);
    while (!list_empty(&qp->req->rndv)) {
        struct tm_entry *e = list_entry(qp->req->rndv.next, struct tm_entry, job);
        if (completion_room(qp->e) == 0)
            return true;
        list_remove(&e->job);
        struct tm_rx waiting = e->rx;
        tm_complete_entry(qp, &waiting, WC_WR_FLUSH_ERR, now);
    }
    return false;
}

static void detach_entry(struct qp *qp, struct tm_entry *e)
{
    e->srqn = qp->srqn;
    list_append(&qp->e->detached, &e->job);
}

void tm_detach(struct qp *qp)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    struct requester *r = qp->req;
    if (!qp->tm)
        return;
    for (uint32_t i = r->sq.head; i != r->sq.tail; i++)
        if (req_wqe(qp->req, i)->offload == OFFLOAD_READ)
            detach_entry(qp, req_wqe(qp->req, i)->entry);
    while (!list_empty(&r->rndv)) {
        struct tm_entry *e = list_entry(r->rndv.next, struct tm_entry, job);
        list_remove(&e->job);
        detach_entry(qp, e);
    }
    if (rx->entry) {
        rx->entry->rx = *rx;
        detach_entry(qp, rx->entry);
        *rx = (struct tm_rx){0};
    } else {
        tm_drop(qp->tm, rx, 0);
    }
    r->offload_queued = r->offload_reads = 0;
}

void tm_flush_detached(struct engine *e, uint64_t now)
{
    while (!list_empty(&e->detached) && completion_room(e) > 0) {
        struct tm_entry *entry = list_entry(e->detached.next, struct tm_entry, job);
        struct srq *srq = srq_find(e, entry->srqn);
        struct completion *c = completion_add_srq(srq, WC_WR_FLUSH_ERR, now);
        struct tm_rx rx = entry->rx;
        list_remove(&entry->job);
        c->of = OF_TM_ENTRY;
        c->slot = TM_SLOT(entry->handle);
        c->wr_id = entry->recv_wr_id;
        c->opcode = WC_TM_RECV;
        c->qpn = rx.qpn;
        tm_drop(srq->tm, &rx, now);
    }
}

void tm_forget_detached(const struct srq *srq)
{
    struct list_node *at = srq->e->detached.next;
    while (at != &srq->e->detached) {
        struct tm_entry *entry = list_entry(at, struct tm_entry, job);
        at = at->next;
        if (entry->srqn == srq->number)
            list_remove(&entry->job);
    }
}
