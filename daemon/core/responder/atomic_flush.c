// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/atomic_flush.h"

#include "daemon/core/qp/resource.h"

/* The rights that a FLUSH needs from the QP and from the key. */
static uint32_t flush_access(const struct pkt *p)
{
    return (p->feth.placement & FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0u) |
           (p->feth.placement & FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0u);
}

enum rx_verdict memext_granted(const struct qp *qp, const struct pkt *p)
{
    uint32_t need = 0;
    switch (p->opcode & OP_OPERATION_MASK) {
    case OP_ATOMIC_WRITE:
        need = ACCESS_REMOTE_WRITE;
        break;
    case OP_FLUSH:
        need = flush_access(p);
        if (need == 0 || p->feth.placement & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT))
            return V_INVALID;
        break;
    default:
        return V_INVALID; /* neither of the two */
    }
    return (qp->attr.access & need) == need ? V_OK : V_INVALID;
}

static struct resource *keep(struct qp *qp, const struct pkt *p)
{
    struct resource *res = resp_new_resource(qp);
    if (res)
        *res = (struct resource){.operation = p->opcode & OP_OPERATION_MASK,
                                 .first_psn = qp->resp->epsn,
                                 .npkts = 1,
                                 .msn = psn_add(qp->resp->msn, 1)};
    return res;
}

static void order_writes(const struct qp *qp)
{
    if (qp->e->mem.ops->order)
        qp->e->mem.ops->order(qp->e->mem.ctx);
}

static enum rx_verdict do_atomic_write(struct qp *qp, const struct pkt *p)
{
    struct sge_iter where;
    struct mem_segment segment[2];
    if (p->reth.length != 8)
        return V_INVALID;
    resp_remote_iter(qp, &where, qp->resp->pd, p->reth.rkey, p->reth.va, 8, ACCESS_REMOTE_WRITE);
    if (sge_iter_segments(&where, segment, 2) != 1) /* not allowed, or not in one piece */
        return V_ACCESS;
    if ((where.layout ? segment[0].va : p->reth.va | segment[0].va) & 7)
        return V_INVALID;
    struct resource *res = keep(qp, p);
    if (!res)
        return V_DROP;
    order_writes(qp);
    if (qp->e->mem.ops->write(qp->e->mem.ctx, qp->qpn, segment, 1, p->payload, 8))
        return V_OPERATION;
    resp_answer_later(qp, res, 0, 1, false);
    return V_OK;
}

static enum rx_verdict do_flush(struct qp *qp, const struct pkt *p)
{
    bool range = p->feth.selectivity == FLUSH_RANGE;
    if (p->feth.selectivity > FLUSH_REGION || (range && p->reth.length > ENGINE_MAX_MSG))
        return V_INVALID;
    uint32_t need = flush_access(p), qpn = qp_window_qpn(qp);
    if (range ? !key_open(&qp->e->keys, qp->resp->pd, true, qpn, p->reth.rkey, p->reth.va, p->reth.length, need)
              : !key_grants_remote(&qp->e->keys, qp->resp->pd, qpn, p->reth.rkey, need))
        return V_ACCESS;
    struct resource *res = keep(qp, p);
    if (!res)
        return V_DROP;
    order_writes(qp);
    resp_answer_later(qp, res, 0, 1, false);
    return V_OK;
}

enum rx_verdict memext_execute(struct qp *qp, const struct pkt *p)
{
    return (p->opcode & OP_OPERATION_MASK) == OP_FLUSH ? do_flush(qp, p) : do_atomic_write(qp, p);
}
