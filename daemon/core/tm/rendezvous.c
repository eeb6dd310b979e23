// SPDX-License-Identifier: BSD-2-Clause
/* The rendezvous of tag matching: the offload fetches the data by an RDMA READ of its own, and tells the sender by a FIN.
 *
 * Its requests stand in the QP's send queue among the program's, in the order in which they came up, and have slots of
 * their own there (TM_SEND_SLOTS): so neither starves, and a QP without any send requests of the program's will do. The FIN
 * is queued when the READ is done, so that READs follow each other as closely as max_rd_atomic allows, and FINs leave in the
 * order in which the READs were done. Rendezvous that find no slots wait in their entries. */
#include <string.h>

#include "daemon/core/engine_priv.h"

static struct send_wqe *append(struct qp *qp, uint8_t own, uint8_t opcode)
{
    struct requester *r = &qp->req;
    struct send_wqe *w = queue_at(&r->sq, r->sq.tail++);
    memset(w, 0, offsetof(struct send_wqe, u));
    w->own = own;
    w->wr.opcode = opcode;
    r->own_queued++;
    if (qp->attr.state == QPS_ERR)
        r->flush_end = r->sq.tail;
    engine_ready(qp);
    return w;
}

static void queue_read(struct qp *qp, struct tm_entry *e)
{
    struct send_wqe *w = append(qp, OWN_READ, WR_RDMA_READ);
    w->wr.remote_addr = e->rx.rvh.va;
    w->wr.rkey = e->rx.rvh.rkey;
    w->wr.num_sge = e->num_sge;
    w->length = e->rx.rvh.len;
    w->pd = srq_find(qp->e, qp->srqn)->pd;
    w->entry = e;
    memcpy(w->u.sge, e->sge, e->num_sge * sizeof(*e->sge));
    qp->req.own_reads++;
}

/* A copy of the request's headers, apart from the operation (0.2). */
static void queue_fin(struct qp *qp, const struct tm_rx *rx)
{
    struct send_wqe *w = append(qp, OWN_FIN, WR_SEND);
    struct tmh tmh = rx->tmh;
    tmh.opcode = TMH_FIN;
    w->wr.flags = SEND_INLINE;
    w->wr.inline_len = w->length = TM_FIN_LEN;
    tmh_encode(&tmh, w->u.data);
    rvh_encode(&rx->rvh, w->u.data + TMH_LEN);
}

/* A READ takes two slots: it will be followed by its FIN. */
static bool has_slots(const struct qp *qp, const struct tm_rx *rx)
{
    uint32_t want = rx->action == TM_ACT_READ ? 2 : 1;
    return qp->req.own_queued + qp->req.own_reads + want <= TM_SEND_SLOTS;
}

bool rndv_start(struct qp *qp, uint64_t now)
{
    while (!list_empty(&qp->req.rndv)) {
        struct tm_entry *e = list_entry(qp->req.rndv.next, struct tm_entry, job);
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
    if (rx->action == TM_ACT_FIN && list_empty(&qp->req.rndv) && has_slots(qp, rx)) {
        queue_fin(qp, rx);
        tm_done(qp->tm, rx, now);
        return true;
    }
    struct tm_entry *e = rx->entry;
    e->rx = *rx;
    e->solicited = solicited;
    *rx = (struct tm_rx){0};
    list_append(&qp->req.rndv, &e->job);
    rndv_start(qp, now);
    return false;
}

bool rndv_retire(struct qp *qp, const struct send_wqe *w, uint64_t now)
{
    struct requester *r = &qp->req;
    if (w->own == OWN_READ) {
        if (completion_room(qp->e) == 0)
            return false;
        struct tm_rx rx = w->entry->rx;
        struct completion *c = tm_complete(qp, &rx, WC_SUCCESS, tm_wc_table[TM_ACT_READ].last, now);
        c->byte_len = w->length;
        c->solicited = w->entry->solicited;
        r->own_reads--;
        queue_fin(qp, &rx);
        tm_done(qp->tm, &rx, now);
    }
    r->own_queued--;
    return true;
}

void rndv_flush_request(struct qp *qp, const struct send_wqe *w, uint8_t status, uint64_t now)
{
    struct requester *r = &qp->req;
    r->own_queued--;
    if (w->own == OWN_READ) {
        struct tm_rx rx = w->entry->rx;
        r->own_reads--;
        tm_complete_entry(qp, &rx, status, now);
    } else if (status != WC_WR_FLUSH_ERR) {
        event_add(qp, EVENT_QP_FATAL); /* no completion can tell that a FIN did not arrive */
    }
}
