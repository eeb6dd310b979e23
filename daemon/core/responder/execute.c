// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/execute.h"

#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/responder/atomic_flush.h"
#include "daemon/core/responder/message.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/tm_receive.h"
#include "daemon/core/responder/xrc.h"

/* --- checks ----------------------------------------------------------------------------------- */

#define OP_HAS_KIND                                                                                                    \
    (OP_IS_SEND | OP_IS_WRITE | OP_IS_READ | OP_IS_ATOMIC) /* other requests are ATOMIC WRITE and FLUSH */

/* Does the packet continue the message under way (IBA 9.7.4.1.2)? */
static enum rx_verdict check_sequence(const struct qp *qp, uint16_t props)
{
    uint16_t kind = props & (OP_IS_SEND | OP_IS_WRITE);
    bool begins = !(props & (OP_IS_MIDDLE | OP_IS_LAST));
    if (begins)
        return qp->resp->message ? V_INVALID : V_OK;
    return qp->resp->message == kind ? V_OK : V_INVALID;
}

/* Do the QP's attributes allow such requests at all (IBA 9.7.4.1.4)? */
static enum rx_verdict check_granted(const struct qp *qp, const struct pkt *p)
{
    uint16_t props = op_table[p->opcode].properties;
    uint32_t need = 0;
    if (!(props & OP_HAS_KIND))
        return memext_granted(qp, p);
    if (props & OP_IS_WRITE)
        need = ACCESS_REMOTE_WRITE;
    else if (props & OP_IS_READ)
        need = ACCESS_REMOTE_READ;
    else if (props & OP_IS_ATOMIC)
        need = ACCESS_REMOTE_ATOMIC;
    return (qp->attr.access & need) == need ? V_OK : V_INVALID;
}

/* Does the peer have more requests outstanding than it may (IBA 9.7.4.1.4)? With a limit of 0, every such request is
 * too many. Repeated answers do not count, since the first one may have arrived. */
static enum rx_verdict check_outstanding(const struct qp *qp, const struct pkt *p)
{
    uint32_t outstanding = qp->resp->res_pending - qp->resp->res_again;
    bool one_more = resp_is_answered(p->opcode & OP_OPERATION_MASK);
    return one_more && outstanding >= qp->attr.max_dest_rd_atomic ? V_INVALID : V_OK;
}

/* Is the length of the payload legal for the opcode (IBA 9.7.4.1.5)? */
static enum rx_verdict check_length(const struct qp *qp, const struct pkt *p, uint8_t payload)
{
    switch (payload) {
    case OP_PAYLOAD_FULL:
        return p->payload_len == qp->mtu ? V_OK : V_INVALID;
    case OP_PAYLOAD_LAST:
        return p->payload_len >= 1 && p->payload_len <= qp->mtu ? V_OK : V_INVALID;
    case OP_PAYLOAD_ONLY:
        return p->payload_len <= qp->mtu ? V_OK : V_INVALID;
    default:
        return V_OK; /* fixed lengths were checked by the decoder */
    }
}

/* Messages that end with a completion need a receive request: a SEND from its first packet on, a WRITE with immediate
 * data at its last packet. */
static enum rx_verdict check_recv(struct qp *qp, const struct pkt *p)
{
    if (!(op_table[p->opcode].properties & OP_NEEDS_RECV))
        return V_OK;
    if (completion_room(qp->e) == 0)
        return V_DROP;
    if (resp_fetch_recv(qp))
        return V_OK;
    const struct srq *srq = srq_find(qp->e, qp->resp->srqn);
    return srq && srq->failed ? V_OPERATION : V_RNR;
}

/* --- execution -------------------------------------------------------------------------------- */

/* Does the payload fit the length in the RETH? */
static enum rx_verdict check_write_length(const struct qp *qp, const struct pkt *p, uint16_t props)
{
    if (props & (OP_IS_LAST | OP_IS_ONLY))
        return p->payload_len == qp->resp->remaining ? V_OK : V_INVALID;
    return p->payload_len < qp->resp->remaining ? V_OK : V_INVALID;
}

static enum rx_verdict do_write(struct qp *qp, const struct pkt *p, uint16_t props, uint64_t now)
{
    struct responder *r = qp->resp;
    struct sge_iter to;
    if (props & (OP_IS_FIRST | OP_IS_ONLY)) {
        r->va = p->reth.va;
        r->rkey = p->reth.rkey;
        r->remaining = p->reth.length;
        r->received = 0;
        if (r->remaining > ENGINE_MAX_MSG)
            return V_INVALID;
        resp_remote_iter(qp, &to, r->pd, r->rkey, r->va, r->remaining, ACCESS_REMOTE_WRITE);
        if (!sge_iter_allowed(&to))
            return V_ACCESS;
    }
    enum rx_verdict v = check_write_length(qp, p, props);
    if (v != V_OK)
        return v;
    if (p->payload_len) {
        resp_remote_iter(qp, &to, r->pd, r->rkey, r->va, p->payload_len, ACCESS_REMOTE_WRITE);
        enum copied result = sge_iter_write(&to, &qp->e->mem, qp->qpn, p->payload, p->payload_len);
        if (result != COPIED) /* refused: the region was deregistered or invalidated since the first packet */
            return result == COPY_REFUSED ? V_ACCESS : V_OPERATION;
    }
    r->va += p->payload_len;
    r->remaining -= p->payload_len;
    r->received += p->payload_len;
    r->message = OP_IS_WRITE;
    if (props & (OP_IS_LAST | OP_IS_ONLY)) {
        r->message = 0;
        qp_count_op(qp, CNTR_REMOTE_WRITE, true, r->received);
        if (props & OP_NEEDS_RECV)
            resp_deliver(qp, p, WC_RECV_RDMA_WITH_IMM, NULL, now);
    }
    return V_OK;
}

static enum rx_verdict do_read(struct qp *qp, const struct pkt *p)
{
    struct responder *r = qp->resp;
    struct sge_iter from;
    if (p->reth.length > ENGINE_MAX_MSG)
        return V_INVALID;
    resp_remote_iter(qp, &from, r->pd, p->reth.rkey, p->reth.va, p->reth.length, ACCESS_REMOTE_READ);
    if (!sge_iter_allowed(&from))
        return V_ACCESS;
    struct resource *res = resp_new_resource(qp);
    if (!res)
        return V_DROP;
    *res = (struct resource){.operation = OP_READ_REQUEST,
                             .first_psn = r->epsn,
                             .npkts = psn_count(p->reth.length, qp->mtu),
                             .va = p->reth.va,
                             .rkey = p->reth.rkey,
                             .pd = r->pd,
                             .length = p->reth.length,
                             .msn = psn_add(r->msn, 1)};
    resp_answer_later(qp, res, 0, res->npkts, false);
    if (res->npkts > r->longest_read)
        r->longest_read = res->npkts;
    r->epsn = psn_add(r->epsn, res->npkts - 1); /* resp_rx adds the last 1 */
    return V_OK;
}

static enum rx_verdict do_atomic(struct qp *qp, const struct pkt *p)
{
    struct responder *r = qp->resp;
    struct sge_iter where;
    struct mem_segment segment[2];
    resp_remote_iter(qp, &where, r->pd, p->atomic.rkey, p->atomic.va, 8, ACCESS_REMOTE_ATOMIC);
    if (sge_iter_segments(&where, segment, 2) != 1) /* not allowed, or not in one piece */
        return V_ACCESS;
    if ((where.layout ? segment[0].va : p->atomic.va | segment[0].va) & 7)
        return V_INVALID;
    struct resource *res = resp_new_resource(qp);
    if (!res)
        return V_DROP;
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    bool cas = operation == OP_CMP_SWAP;
    *res = (struct resource){.operation = operation, .first_psn = r->epsn, .npkts = 1, .msn = psn_add(r->msn, 1)};
    int err =
        qp->e->mem.ops->atomic(qp->e->mem.ctx, segment, cas ? MEM_CMP_SWAP : MEM_FETCH_ADD,
                               cas ? p->atomic.compare : p->atomic.swap_add, p->atomic.swap_add, &res->atomic_orig);
    if (err < 0)
        return V_OPERATION;
    if (err == MEM_UNMAPPED)
        COUNT(qp, mem_unmapped);
    resp_answer_later(qp, res, 0, 1, false);
    return V_OK;
}

/* Does the owner keep the receive request for this packet back? */
static bool is_withheld(const struct qp *qp, const struct pkt *p)
{
    const struct owner_calls *owner = &qp->e->owner;

    if (!(op_table[p->opcode].properties & OP_NEEDS_RECV))
        return false;
    return !owner->ops->withholds || owner->ops->withholds(owner->ctx, p);
}

static enum rx_verdict execute(struct qp *qp, const struct pkt *p, uint64_t now)
{
    const struct op_info *op = &op_table[p->opcode];
    uint16_t props = op->properties;
    enum rx_verdict v;
    if ((v = check_sequence(qp, props)) != V_OK || (v = check_granted(qp, p)) != V_OK ||
        (v = check_outstanding(qp, p)) != V_OK || (v = check_length(qp, p, op->payload)) != V_OK)
        return v;
    if (qp->type == QPT_XRC_RECV && (v = xrc_check(qp, p)) != V_OK) {
        if (v == V_ACCESS)
            COUNT(qp, xrc_refused);
        return v;
    }
    if (__builtin_expect(qp->e->recv_withheld, 0) && is_withheld(qp, p))
        return V_RNR;
    if (props & OP_IS_SEND && qp->tm)
        return tm_receive(qp, p, now);
    if ((v = check_recv(qp, p)) != V_OK)
        return v;
    if (!(props & OP_HAS_KIND))
        return memext_execute(qp, p);
    if (props & OP_IS_SEND)
        return resp_send(qp, p, props, now);
    if (props & OP_IS_WRITE)
        return do_write(qp, p, props, now);
    return props & OP_IS_READ ? do_read(qp, p) : do_atomic(qp, p);
}

enum rx_verdict resp_execute(struct qp *qp, const struct pkt *p, uint64_t now)
{
    enum rx_verdict v = execute(qp, p, now);
    if (__builtin_expect(v > V_RNR, 0)) { /* refused */
        uint16_t props = op_table[p->opcode].properties;
        if (props & OP_IS_WRITE)
            qp_count_op(qp, CNTR_REMOTE_WRITE, false, 0);
        else if (props & OP_IS_READ)
            qp_count_op(qp, CNTR_REMOTE_READ, false, 0);
    }
    return v;
}

/* --- runs --------------------------------------------------------------------------------------- */

/* Has each packet of the run a length that is legal for its opcode (IBA 9.7.4.1.5)? Only the last one may be shorter. */
static bool run_lengths_fit(const struct qp *qp, const struct pkt_run *r)
{
    uint32_t last = pkt_run_payload_len(r, r->n - 1);
    bool full = op_table[r->last.opcode].payload == OP_PAYLOAD_FULL;
    return r->mtu == qp->mtu && (full ? last == qp->mtu : last >= 1);
}

/* All packets of the run as one: from the headers of the first packet to the end of the last. Returns the properties of
 * both. */
static uint16_t join(const struct pkt_run *r, struct pkt *all)
{
    *all = r->last;
    all->psn = r->first.psn;
    all->reth = r->first.reth;
    all->payload = r->payload;
    all->payload_len = r->payload_len;
    return op_table[r->last.opcode].properties | (op_table[r->first.opcode].properties & OP_IS_FIRST);
}

bool resp_execute_run(struct qp *qp, const struct pkt_run *r, uint64_t now)
{
    struct pkt all;
    uint16_t props = join(r, &all);
    bool plain = props & (OP_IS_SEND | OP_IS_WRITE) && !qp->tm && !qp->e->recv_withheld;
    if (!plain || check_sequence(qp, op_table[r->first.opcode].properties) != V_OK ||
        check_granted(qp, &r->first) != V_OK || !run_lengths_fit(qp, r) ||
        (qp->type == QPT_XRC_RECV && xrc_check(qp, &r->first) != V_OK) || check_recv(qp, &all) != V_OK)
        return false;
    return (props & OP_IS_SEND ? resp_send(qp, &all, props, now) : do_write(qp, &all, props, now)) == V_OK;
}
