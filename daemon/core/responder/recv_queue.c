// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/recv_queue.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/responder/srq.h"

struct recv_wqe *resp_fetch_recv(struct qp *qp)
{
    struct queue *rq = &qp->resp.rq;
    if (queue_used(rq) == 0) {
        struct srq *srq = srq_find(qp->e, qp->resp.srqn);
        if (srq)
            srq_take(srq, qp);
        else if (qp->e->owner.ops->refill && qp_has_rq(qp))
            qp->e->owner.ops->refill(qp->e->owner.ctx, qp->owner);
    }
    return queue_used(rq) ? queue_at(rq, rq->head) : NULL;
}

/* The protection domain for the keys of a receive request: that of the SRQ that it was posted to, or of the QP (IBA
 * 10.2.9.2). */
static uint32_t recv_pd(const struct qp *qp)
{
    if (qp->resp.srqn == 0)
        return qp->pd;
    const struct srq *srq = srq_find(qp->e, qp->resp.srqn);
    return srq ? srq->pd : qp->pd;
}

void resp_recv_iter(const struct qp *qp, struct sge_iter *s, const struct recv_wqe *w, uint32_t off, uint32_t len)
{
    sge_iter_sgl(s, &qp->e->keys, recv_pd(qp), w->sge, off, len, ACCESS_LOCAL_WRITE);
}

struct completion *resp_complete(struct qp *qp, uint8_t status, uint64_t now)
{
    struct queue *rq = &qp->resp.rq;
    const struct recv_wqe *w = queue_at(rq, rq->head++);
    struct completion *c = completion_add(qp, true, status, now);
    c->wr_id = w->wr.wr_id;
    c->slot = w->wr.slot;
    c->opcode = WC_RECV;
    if (status != WC_SUCCESS)
        qp_count_op(qp, CNTR_RECV, false, 0);
    if (qp->resp.srqn)
        srq_completed(qp, c);
    return c;
}

bool resp_flush(struct qp *qp, uint64_t now)
{
    /* With an SRQ, flush only the request that this QP has taken: the others serve other QPs. */
    while (qp_has_rq(qp) ? resp_fetch_recv(qp) != NULL : queue_used(&qp->resp.rq) > 0) {
        if (completion_room(qp->e) == 0)
            return true;
        resp_complete(qp, WC_WR_FLUSH_ERR, now);
    }
    if (qp->srqn && !qp->last_wqe_reported) {
        if (!event_room(qp->e))
            return true;
        qp->last_wqe_reported = true;
        event_add(qp, EVENT_QP_LAST_WQE_REACHED); /* IBA 11.6.3: now the QP can be destroyed without losing a request */
    }
    return false;
}

bool resp_recv_fault(struct qp *qp, uint64_t now)
{
    if (qp->resp.message != OP_IS_SEND || completion_room(qp->e) == 0)
        return false;
    if (!tm_fail_message(qp, WC_LOC_PROT_ERR, now))
        resp_complete(qp, WC_LOC_PROT_ERR, now);
    return true;
}

uint32_t resp_capacity(const struct recv_wqe *w)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < w->wr.num_sge; i++)
        total += w->sge[i].length;
    return total > ENGINE_MAX_MSG ? ENGINE_MAX_MSG : (uint32_t)total;
}

int qp_post_recv(struct qp *qp, const struct recv_wr *wr, const struct sge *sge)
{
    struct queue *rq = &qp->resp.rq;
    if (qp->attr.state == QPS_RESET || !qp_has_rq(qp) || wr->num_sge > qp->caps.max_recv_sge)
        return -EINVAL;
    if (queue_used(rq) >= rq->depth)
        return -ENOMEM;
    struct recv_wqe *w = queue_at(rq, rq->tail);
    w->wr = *wr;
    if (wr->num_sge)
        memcpy(w->sge, sge, wr->num_sge * sizeof(*sge));
    rq->tail++;
    if (qp->attr.state == QPS_ERR)
        qp_schedule(qp);
    QP_CHECK(qp);
    return 0;
}

uint32_t qp_recv_room(const struct qp *qp)
{
    return !qp_has_rq(qp) ? 0 : qp->resp.rq.depth - queue_used(&qp->resp.rq);
}
