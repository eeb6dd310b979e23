// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/srq.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/tm/tag_list.h"

#define SRQ_BYTES ((sizeof(struct srq) + 63) & ~(size_t)63)
#define LAST_SRQN 0xffffffu

/* --- life ------------------------------------------------------------------------------------- */

size_t srq_size(uint32_t max_wr, uint32_t max_sge)
{
    if (max_wr == 0 || max_wr > QUEUE_MAX_WR || max_sge > ENGINE_MAX_SGE)
        return 0;
    return SRQ_BYTES + queue_bytes(max_wr, recv_stride(max_sge));
}

/* Gives the SRQ a number whose slot in the table is free, as QPs get theirs. */
static int assign_number(struct engine *e, struct srq *srq)
{
    if (e->srq_count == e->cfg.max_srq)
        return -ENOMEM;
    for (;;) {
        uint32_t n = e->next_srqn;
        e->next_srqn = n >= LAST_SRQN ? 1 : n + 1;
        struct srq **slot = &e->srqs[n & e->srq_mask];
        if (*slot)
            continue;
        *slot = srq;
        srq->number = n;
        e->srq_count++;
        return 0;
    }
}

int srq_create(struct engine *e, const struct srq_init *init, void *mem, struct srq **out)
{
    if (init->pd == 0 || !init->owner || ((init->xrcd || init->tm) && !init->cq) || (init->xrcd && init->tm) ||
        srq_size(init->max_wr, init->max_sge) == 0)
        return -EINVAL;
    struct srq *srq = mem;
    int err = assign_number(e, srq);
    if (err)
        return err;
    srq->e = e;
    srq->owner = init->owner;
    srq->cq = init->cq;
    srq->pd = init->pd;
    srq->xrcd = init->xrcd;
    srq->max_sge = init->max_sge;
    srq->tm = init->tm;
    list_init(&srq->takers);
    queue_init(&srq->rq, (uint8_t *)mem + SRQ_BYTES, init->max_wr, recv_stride(init->max_sge));
    *out = srq;
    return 0;
}

/* The QP no longer holds a request of the SRQ. */
static void release(struct srq *srq, struct qp *qp)
{
    list_remove(&qp->taker);
    srq->taken--;
}

int srq_destroy(struct srq *srq)
{
    struct engine *e = srq->e;
    if (srq->users)
        return -EBUSY;
    while (!list_empty(&srq->takers)) {
        struct qp *qp = list_entry(srq->takers.next, struct qp, taker);
        qp->resp->rq.head = qp->resp->rq.tail;
        release(srq, qp);
    }
    tm_forget_detached(srq);
    completion_forget_srq(srq);
    e->srqs[srq->number & e->srq_mask] = NULL;
    e->srq_count--;
    return 0;
}

int srq_resize(struct srq *srq, uint32_t max_wr, void *mem, struct srq **out)
{
    struct srq *to = mem;
    uint32_t used = queue_used(&srq->rq);
    if (srq_size(max_wr, srq->max_sge) == 0 || max_wr < used + srq->taken)
        return -EINVAL;
    *to = *srq;
    queue_init(&to->rq, (uint8_t *)mem + SRQ_BYTES, max_wr, srq->rq.stride);
    for (uint32_t i = 0; i < used; i++)
        memcpy(queue_at(&to->rq, to->rq.tail++), queue_at(&srq->rq, srq->rq.head + i), srq->rq.stride);
    list_init(&to->takers);
    while (!list_empty(&srq->takers)) {
        struct list_node *taker = srq->takers.next;
        list_remove(taker);
        list_append(&to->takers, taker);
    }
    to->e->srqs[to->number & to->e->srq_mask] = to; /* QPs know it by its number */
    *out = to;
    return 0;
}

void srq_fail(struct srq *srq)
{
    if (srq->failed)
        return;
    srq->failed = true;
    event_add_srq(srq, EVENT_SRQ_ERR);
}

uint32_t srq_number(const struct srq *srq)
{
    return srq->number;
}

/* --- requests --------------------------------------------------------------------------------- */

int srq_post_recv(struct srq *srq, const struct recv_wr *wr, const struct sge *sge)
{
    if (wr->num_sge > srq->max_sge)
        return -EINVAL;
    if (srq_room(srq) == 0)
        return -ENOMEM;
    struct recv_wqe *w = queue_at(&srq->rq, srq->rq.tail);
    w->wr = *wr;
    if (wr->num_sge)
        memcpy(w->sge, sge, wr->num_sge * sizeof(*sge));
    srq->rq.tail++;
    if (srq->tm)
        tm_buffers_posted(srq->tm, 1);
    return 0;
}

uint32_t srq_room(const struct srq *srq)
{
    return srq->rq.depth - queue_used(&srq->rq) - srq->taken;
}

uint32_t srq_posted(const struct srq *srq)
{
    return queue_used(&srq->rq);
}

void srq_ask_owner(struct srq *srq)
{
    const struct engine *e = srq->e;
    if (e->owner.ops->refill_srq && !srq->failed)
        e->owner.ops->refill_srq(e->owner.ctx, srq->owner);
}

/* Gives the limit event if too few requests are left. The owner may have requests that the queue does not hold yet, so
 * the engine asks it first. */
static void check_limit(struct srq *srq)
{
    if (queue_used(&srq->rq) >= srq->limit)
        return;
    srq_ask_owner(srq);
    if (queue_used(&srq->rq) >= srq->limit)
        return;
    if (!event_room(srq->e)) /* the limit stays armed */
        return;
    srq->limit = 0;
    event_add_srq(srq, EVENT_SRQ_LIMIT_REACHED);
}

static void copy(struct queue *to, uint32_t at, const struct recv_wqe *w)
{
    memcpy(queue_at(to, at), w, sizeof(*w) + w->wr.num_sge * sizeof(w->sge[0]));
}

bool srq_take(struct srq *srq, struct qp *qp)
{
    struct queue *own = &qp->resp->rq;
    if (queue_used(&srq->rq) == 0)
        srq_ask_owner(srq);
    if (srq->failed)
        return false;
    bool found = queue_used(&srq->rq) > 0;
    if (found) {
        copy(own, own->tail++, queue_at(&srq->rq, srq->rq.head++));
        list_append(&srq->takers, &qp->taker);
        srq->taken++;
    }
    check_limit(srq);
    return found;
}

void srq_put_back(struct qp *qp)
{
    struct queue *own = &qp->resp->rq;
    if (list_empty(&qp->taker))
        return;
    struct srq *srq = srq_find(qp->e, qp->resp->srqn);
    release(srq, qp);
    copy(&srq->rq, --srq->rq.head, queue_at(own, own->head++));
}

void srq_completed(struct qp *qp, struct completion *c)
{
    if (list_empty(&qp->taker))
        return;
    struct srq *srq = srq_find(qp->e, qp->resp->srqn);
    release(srq, qp);
    c->srq_owner = srq->owner;
    c->of = srq->tm ? OF_TM_BUFFER : OF_REQUEST;
    if (srq->cq)
        c->cq = srq->cq;
}

int srq_post_op(struct srq *srq, const struct tm_op *op, uint64_t now)
{
    struct tm_op_result r;
    return srq_carry_out(srq, op, &r, now);
}

int srq_carry_out(struct srq *srq, const struct tm_op *op, struct tm_op_result *result, uint64_t now)
{
    if (!srq->tm)
        return -EINVAL;
    if (completion_room(srq->e) == 0)
        return -EAGAIN;
    tm_op(srq->tm, op, result, now);
    if (!result->complete)
        return 0;
    struct completion *c = completion_add_srq(srq, result->status, now);
    c->of = OF_TM_OP;
    c->wr_id = op->wr_id;
    c->slot = op->slot;
    c->opcode = result->opcode;
    c->flags = result->flags;
    c->vendor_err = result->why;
    return 0;
}

/* --- the limit -------------------------------------------------------------------------------- */

void srq_set_limit(struct srq *srq, uint32_t limit)
{
    srq->limit = limit;
}

uint32_t srq_limit(const struct srq *srq)
{
    return srq->limit;
}
