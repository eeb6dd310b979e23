// SPDX-License-Identifier: BSD-2-Clause
/* ibv_post_send and ibv_post_recv: one lock, one store of the tail and one doorbell per call, however long the list. */
#include "post.h"

#include <errno.h>

#include "cq.h"
#include "fork.h"
#include "ops.h"

enum op_kind { OP_NONE, OP_SEND, OP_RDMA, OP_ATOMIC };

/* clang-format off */
/* What a reliable connection may send, by enum ibv_wr_opcode. */
static const struct {
    uint8_t kind;    /* enum op_kind: which fields of the request count; OP_NONE: not allowed */
    bool can_inline; /* the request carries data away */
    bool imm;        /* immediate data, or a key that the peer shall invalidate */
    uint8_t wc;      /* enum ibv_wc_opcode of its completion */
} ops[] = {
    [IBV_WR_RDMA_WRITE]           = {OP_RDMA,       true,  false, IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_WRITE_WITH_IMM]  = {OP_RDMA,       true,  true,  IBV_WC_RDMA_WRITE},
    [IBV_WR_SEND]                 = {OP_SEND,       true,  false, IBV_WC_SEND},
    [IBV_WR_SEND_WITH_IMM]        = {OP_SEND,       true,  true,  IBV_WC_SEND},
    [IBV_WR_RDMA_READ]            = {OP_RDMA,       false, false, IBV_WC_RDMA_READ},
    [IBV_WR_ATOMIC_CMP_AND_SWP]   = {OP_ATOMIC,     false, false, IBV_WC_COMP_SWAP},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {OP_ATOMIC,     false, false, IBV_WC_FETCH_ADD},
    [IBV_WR_LOCAL_INV]            = {OP_NONE,       false, false, IBV_WC_LOCAL_INV}, /* there are no memory windows yet */
    [IBV_WR_BIND_MW]              = {OP_NONE,       false, false, IBV_WC_BIND_MW},
    [IBV_WR_SEND_WITH_INV]        = {OP_SEND,       true,  true,  IBV_WC_SEND},
};
/* clang-format on */
#define NUM_OPS (sizeof(ops) / sizeof(ops[0]))

uint8_t vb_wc_opcode(uint8_t wr_opcode)
{
    return wr_opcode < NUM_OPS ? ops[wr_opcode].wc : (uint8_t)IBV_WC_SEND;
}

bool vb_length_ok(uint8_t wr_opcode, const struct ibv_sge *sge, size_t num)
{
    uint64_t total = 0;
    for (size_t i = 0; i < num; i++)
        total += sge[i].length;
    return total <= VB_MAX_MSG && (ops[wr_opcode].kind != OP_ATOMIC || total >= 8);
}

static int put_inline(struct vb_qp *qp, struct pm_send_wqe *w, const struct ibv_send_wr *wr)
{
    uint8_t *to = (uint8_t *)(w + 1);
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    if (total > qp->cap.max_inline_data)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++) {
        if (wr->sg_list[i].length)
            memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
    w->inline_len = (uint32_t)total;
    return 0;
}

/* Writes one request at index next; 0 or errno value. */
static int put_send(struct vb_qp *qp, uint32_t next, const struct ibv_send_wr *wr)
{
    unsigned op = wr->opcode;
    if (op >= NUM_OPS)
        return EINVAL;
    if (ops[op].kind == OP_NONE)
        return EOPNOTSUPP;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge ||
        ((wr->send_flags & IBV_SEND_INLINE) && !ops[op].can_inline))
        return EINVAL;
    if (!vb_queue_room(&qp->sq, next))
        return ENOMEM;
    struct pm_send_wqe *w = vb_wqe_start(qp, next, wr->wr_id, (uint8_t)op, wr->send_flags);
    if (ops[op].imm)
        w->imm = wr->imm_data;
    if (ops[op].kind == OP_RDMA) {
        w->remote_addr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    } else if (ops[op].kind == OP_ATOMIC) {
        w->remote_addr = wr->wr.atomic.remote_addr;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
        w->rkey = wr->wr.atomic.rkey;
    }
    if (wr->send_flags & IBV_SEND_INLINE)
        return put_inline(qp, w, wr);
    if (!vb_length_ok((uint8_t)op, wr->sg_list, (size_t)wr->num_sge))
        return EINVAL;
    w->num_sge = (uint8_t)wr->num_sge;
    if (wr->num_sge)
        memcpy(w + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
    return 0;
}

int vb_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    int rc = !vb_owned(c) ? EIO : !vb_can_send(qp) ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&qp->sq.lock);
        uint32_t next = qp->sq.tail;
        while (wr && (rc = put_send(qp, next, wr)) == 0) {
            next++;
            wr = wr->next;
        }
        if (next != qp->sq.tail)
            vb_send_publish(c, qp, next);
        pthread_mutex_unlock(&qp->sq.lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}

static int put_recv(struct vb_qp *qp, uint32_t next, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
        return EINVAL;
    if (!vb_queue_room(&qp->rq, next))
        return ENOMEM;
    struct pm_recv_wqe *w = ring_slot(qp->rq.ring, qp->rq.stride, qp->rq.mask, next);
    w->wr_id = wr->wr_id;
    w->num_sge = (uint32_t)wr->num_sge;
    w->cookie = 0;
    if (wr->num_sge)
        memcpy(w + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
    return 0;
}

int vb_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    enum ibv_qp_state state = __atomic_load_n(&ibqp->state, __ATOMIC_ACQUIRE);
    int rc = !vb_owned(c) ? EIO : state == IBV_QPS_RESET || state > IBV_QPS_ERR ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&qp->rq.lock);
        uint32_t next = qp->rq.tail;
        while (wr && (rc = put_recv(qp, next, wr)) == 0) {
            next++;
            wr = wr->next;
        }
        if (next != qp->rq.tail) {
            qp->rq.tail = next;
            if (ring_publish_recv(qp->page, next) && ring_doorbell(c->page, qp->doorbell))
                vb_wake(c);
        }
        pthread_mutex_unlock(&qp->rq.lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}
