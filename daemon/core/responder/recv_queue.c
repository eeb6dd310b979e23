// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/recv_queue.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/responder/srq.h"
#include "wire/syndrome.h"

struct recv_wqe *resp_fetch_recv(struct qp *qp)
{
    struct queue *rq = &qp->resp->rq;
    if (queue_used(rq) == 0) {
        struct srq *srq = srq_find(qp->e, qp->resp->srqn);
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
    if (qp->resp->srqn == 0)
        return qp->pd;
    const struct srq *srq = srq_find(qp->e, qp->resp->srqn);
    return srq ? srq->pd : qp->pd;
}

void resp_recv_iter(const struct qp *qp, struct sge_iter *s, const struct recv_wqe *w, uint32_t off, uint32_t len)
{
    sge_iter_sgl(s, &qp->e->keys, recv_pd(qp), w->sge, off, len, ACCESS_LOCAL_WRITE);
}

struct completion *resp_complete(struct qp *qp, uint8_t status, uint64_t now)
{
    struct queue *rq = &qp->resp->rq;
    const struct recv_wqe *w = queue_at(rq, rq->head++);
    struct completion *c = completion_add(qp, true, status, now);
    c->wr_id = w->wr.wr_id;
    c->slot = w->wr.slot;
    c->opcode = WC_RECV;
    if (status != WC_SUCCESS)
        qp_count_op(qp, CNTR_RECV, false, 0);
    if (qp->resp->srqn)
        srq_completed(qp, c);
    return c;
}

bool resp_flush(struct qp *qp, uint64_t now)
{
    /* With an SRQ, flush only the request that this QP has taken: the others serve other QPs. */
    while (qp_has_rq(qp) ? resp_fetch_recv(qp) != NULL : queue_used(&qp->resp->rq) > 0) {
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
    if (qp->resp->message != OP_IS_SEND || completion_room(qp->e) == 0)
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
    struct queue *rq = &qp->resp->rq;
    qp_wake(qp);
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
    resp_recv_posted(qp);
    QP_CHECK(qp);
    return 0;
}

uint32_t qp_recv_room(const struct qp *qp)
{
    if (!qp_has_rq(qp))
        return 0;
    return qp->awake ? qp->resp->rq.depth - queue_used(&qp->resp->rq) : qp->caps.max_recv_wr;
}

/* --- end-to-end credits ----------------------------------------------------------------------- */

#define CREDITS_ENOUGH 256u /* the owner is not asked for more receive requests to count them */
#define CREDIT_REPEAT_NS 1000000u /* until the ACK is repeated; the next times twice as long */
#define CREDIT_REPEATS 3u

uint8_t resp_give_credits(struct qp *qp)
{
    struct queue *rq = &qp->resp->rq;
    const struct owner_calls *owner = &qp->e->owner;
    if (!qp->e->cfg.e2e_credits || qp->type != QPT_RC || !qp_has_rq(qp))
        return AETH_NO_CREDITS;
    qp->resp->told_none = false; /* the packet to be sent tells of the requests that are posted now */
    for (uint32_t before = rq->tail - 1; owner->ops->refill && before != rq->tail && queue_used(rq) < CREDITS_ENOUGH;) {
        before = rq->tail;
        owner->ops->refill(owner->ctx, qp->owner);
    }
    /* The request that a message under way has taken is still in the queue. The peer counts that message, too. */
    uint8_t code = aeth_credit_code(queue_used(rq));
    qp->resp->told_none = code == 0;
    return code;
}

void resp_recv_posted(struct qp *qp)
{
    if (!qp->resp->told_none || qp->attr.state < QPS_RTR || qp->attr.state == QPS_ERR)
        return;
    qp->resp->ack_pending = true;
    qp_schedule(qp);
}

void resp_credit_ack_sent(struct qp *qp, bool news, uint64_t now)
{
    struct responder *r = qp->resp;
    if (news)
        r->credit_repeats = CREDIT_REPEATS;
    else if (r->credit_repeats == 0)
        return;
    else
        r->credit_repeats--;
    COUNT(qp, credit_acks_sent);
    if (r->credit_repeats)
        r->ack_deadline = now + ((uint64_t)CREDIT_REPEAT_NS << (CREDIT_REPEATS - r->credit_repeats));
}
