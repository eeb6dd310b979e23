// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/rendezvous.h"

#include <string.h>

#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/tm/tag_list.h"

static struct send_wqe *append(struct qp *qp, uint8_t offload, uint8_t opcode)
{
    struct requester *r = qp->req;
    struct send_wqe *w = queue_at(&r->sq, r->sq.tail++);
    memset(w, 0, offsetof(struct send_wqe, u));
    w->offload = offload;
    w->wr.opcode = opcode;
    r->offload_queued++;
    if (qp->attr.state == QPS_ERR)
        r->flush_end = r->sq.tail;
    qp_schedule(qp);
    return w;
}

static void queue_read(struct qp *qp, struct tm_entry *e)
{
    struct send_wqe *w = append(qp, OFFLOAD_READ, WR_RDMA_READ);
    w->wr.remote_addr = e->rx.rvh.va;
    w->wr.rkey = e->rx.rvh.rkey;
    w->wr.num_sge = e->num_sge;
    w->length = e->rx.rvh.len;
    w->pd = srq_find(qp->e, qp->srqn)->pd;
    w->entry = e;
    memcpy(w->u.sge, e->sge, e->num_sge * sizeof(*e->sge));
    qp->req->offload_reads++;
}

/* Queues a FIN: a copy of the request's headers with another operation. */
static void queue_fin(struct qp *qp, const struct tm_rx *rx)
{
    struct send_wqe *w = append(qp, OFFLOAD_FIN, WR_SEND);
    struct tmh tmh = rx->tmh;
    tmh.opcode = TMH_FIN;
    w->wr.flags = SEND_INLINE;
    w->wr.inline_len = w->length = TM_FIN_LEN;
    tmh_encode(&tmh, w->u.data);
    rvh_encode(&rx->rvh, w->u.data + TMH_LEN);
}

/* A READ takes two slots, because its FIN will follow. */
static bool has_slots(const struct qp *qp, const struct tm_rx *rx)
{
    uint32_t want = rx->action == TM_ACT_READ ? 2 : 1;
    return qp->req->offload_queued + qp->req->offload_reads + want <= TM_SEND_SLOTS;
}

bool rndv_start(struct qp *qp, uint64_t now)
{
    while (!list_empty(&qp->req->rndv)) {
        struct tm_entry *e = list_entry(qp->req->rndv.next, struct tm_entry, job);
        if (!has_slots(qp, &e->rx))
            break;
        if (e->rx.action == TM_ACT_READ) {
            list_remove(&e->job);
            queue_read(qp, e);
            continue;
        }
        if (completion_room(qp->e) == 0)
            return false;
        struct tm_rx rx = e->rx;
        list_remove(&e->job);
        queue_fin(qp, &rx);
        tm_complete(qp, &rx, WC_SUCCESS, WC_TM_DATA_VALID, now)->solicited = e->solicited;
        tm_done(qp->tm, &rx, now);
    }
    return true;
}

bool rndv_begin(struct qp *qp, struct tm_rx *rx, bool solicited, uint64_t now)
{
    if (rx->action == TM_ACT_FIN && list_empty(&qp->req->rndv) && has_slots(qp, rx)) {
        queue_fin(qp, rx);
        tm_done(qp->tm, rx, now);
        return true;
    }
    struct tm_entry *e = rx->entry;
    e->rx = *rx;
    e->solicited = solicited;
    *rx = (struct tm_rx){0};
    list_append(&qp->req->rndv, &e->job);
    rndv_start(qp, now);
    return false;
}

bool rndv_retire(struct qp *qp, const struct send_wqe *w, uint64_t now)
{
    struct requester *r = qp->req;
    if (w->offload == OFFLOAD_READ) {
        if (completion_room(qp->e) == 0)
            return false;
        struct tm_rx rx = w->entry->rx;
        struct completion *c = tm_complete(qp, &rx, WC_SUCCESS, tm_wc_table[TM_ACT_READ].last, now);
        c->byte_len = w->length;
        c->solicited = w->entry->solicited;
        r->offload_reads--;
        queue_fin(qp, &rx);
        tm_done(qp->tm, &rx, now);
    }
    r->offload_queued--;
    return true;
}

void rndv_flush_request(struct qp *qp, const struct send_wqe *w, uint8_t status, uint64_t now)
{
    struct requester *r = qp->req;
    r->offload_queued--;
    if (w->offload == OFFLOAD_READ) {
        struct tm_rx rx = w->entry->rx;
        r->offload_reads--;
        tm_complete_entry(qp, &rx, status, now);
    } else if (status != WC_WR_FLUSH_ERR) {
        event_add(qp, EVENT_QP_FATAL); /* no completion can report that a FIN did not arrive */
    }
}
