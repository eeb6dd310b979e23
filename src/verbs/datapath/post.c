// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/post.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/base/sge.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/datapath/small_data.h"
#include "src/verbs/datapath/wqe.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/session/context.h"
#include "src/verbs/unkind/recv_buffers.h"

/* Copies the data of the request to a place of max bytes. Returns the number of bytes, or -1 if they don't fit. */
static int64_t gather(uint8_t *to, uint32_t max, const struct ibv_send_wr *wr)
{
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        uint32_t len = wr->sg_list[i].length;
        if (len > max - total)
            return -1;
        if (len)
            memcpy(to + total, (const void *)(uintptr_t)wr->sg_list[i].addr, len);
        total += len;
    }
    return (int64_t)total;
}

/* Writes the payload: inline data or SGEs. Returns 0 or EINVAL. */
static int put_data(struct vb_qp *qp, struct pm_send_wqe *w, const struct ibv_send_wr *wr)
{
    uint8_t *body = vb_wqe_body(qp, w);
    if (wr->send_flags & IBV_SEND_INLINE) {
        int64_t len = gather(body, qp->cap.max_inline_data, wr);
        if (len < 0)
            return EINVAL;
        w->inline_len = (uint32_t)len;
        return 0;
    }
    if (!vb_length_ok(w->opcode, wr->sg_list, (size_t)wr->num_sge))
        return EINVAL;
    if (vb_small_data(qp, w, wr->sg_list, (size_t)wr->num_sge))
        return 0;
    w->num_sge = (uint8_t)wr->num_sge;
    if (wr->num_sge)
        memcpy(body, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
    return 0;
}

/* The payload of an ATOMIC WRITE is eight bytes. If they are inline, they are in the header of the request. */
static int put_atomic_write(struct vb_qp *qp, struct pm_send_wqe *w, const struct ibv_send_wr *wr)
{
    uint8_t data[8];
    uint64_t total = 0;
    w->remote_addr = wr->wr.rdma.remote_addr;
    w->rkey = wr->wr.rdma.rkey;
    if (!(wr->send_flags & IBV_SEND_INLINE)) {
        for (int i = 0; i < wr->num_sge; i++)
            total += wr->sg_list[i].length;
        return total == sizeof(data) ? put_data(qp, w, wr) : EINVAL;
    }
    if (gather(data, sizeof(data), wr) != (int64_t)sizeof(data))
        return EINVAL;
    memcpy(&w->compare_add, data, sizeof(data));
    w->flags &= (uint8_t)~PM_SEND_INLINE;
    return 0;
}

/* Writes one request at index next. Returns 0 or an errno value. */
static int put_send(struct vb_qp *qp, uint32_t next, const struct ibv_send_wr *wr)
{
    const struct vb_wr_opcode *opcode = vb_wr_opcode(wr->opcode);
    if (!(opcode->types & qp->type_bit) || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge ||
        ((wr->send_flags & IBV_SEND_INLINE) && !opcode->can_inline))
        return EINVAL;
    if (!vb_queue_room(&qp->sq, next))
        return ENOMEM;
    struct pm_send_wqe *w = vb_wqe_start(qp, next, wr->wr_id, (uint8_t)wr->opcode, wr->send_flags);
    int rc = 0;
    if (opcode->imm)
        w->imm = wr->imm_data;
    if (qp->qp.qp_type == IBV_QPT_XRC_SEND)
        w->srqn = wr->qp_type.xrc.remote_srqn;
    switch (opcode->kind) {
    case VB_WR_KIND_RDMA:
        w->remote_addr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
        break;
    case VB_WR_KIND_ATOMIC:
        w->remote_addr = wr->wr.atomic.remote_addr;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
        w->rkey = wr->wr.atomic.rkey;
        break;
    case VB_WR_KIND_ATOMIC_WRITE:
        return put_atomic_write(qp, w, wr);
    case VB_WR_KIND_FLUSH: /* ibv_send_wr has no fields for it: ibv_wr_flush posts it */
        return EINVAL;
    case VB_WR_KIND_INV:
        return 0;
    case VB_WR_KIND_BIND: /* ibv_bind_mw binds windows of type 1 */
        return wr->bind_mw.mw->type == IBV_MW_TYPE_2
                   ? vb_wqe_bind(w, qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info)
                   : EINVAL;
    default:
        if (qp->qp.qp_type == IBV_QPT_UD)
            rc = vb_wqe_ud(w, qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
        break;
    }
    return rc ? rc : put_data(qp, w, wr);
}

int vb_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    int rc = !vb_owned(c) ? EIO : !vb_can_send(qp) || qp->no_sends ? EINVAL : 0;
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

/* Writes one receive request at index next. Returns 0 or an errno value. */
static int put_recv(struct vb_qp *qp, uint32_t next, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
        return EINVAL;
    if (!vb_queue_room(&qp->rq, next))
        return ENOMEM;
    struct pm_recv_wqe *w = ring_slot(qp->rq.ring, qp->rq.stride, qp->rq.mask, next);
    w->wr_id = wr->wr_id;
    w->num_sge = (uint32_t)wr->num_sge;
    w->wqe_index = 0; /* completions come in order, so the index of the slot is enough */
    if (wr->num_sge)
        memcpy(w + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
    if (__builtin_expect(qp->unkind, 0))
        vb_unkind_posted(qp, w, next);
    return 0;
}

int vb_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    enum ibv_qp_state state = __atomic_load_n(&ibqp->state, __ATOMIC_ACQUIRE);
    int rc = !vb_owned(c) ? EIO : !qp->has_rq || state == IBV_QPS_RESET || state > IBV_QPS_ERR ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&qp->rq.lock);
        uint32_t next = qp->rq.tail;
        while (wr && (rc = put_recv(qp, next, wr)) == 0) {
            next++;
            wr = wr->next;
        }
        if (next != qp->rq.tail) {
            qp->rq.tail = next;
            if (ring_publish_recv(qp->page, next))
                vb_doorbell(c, qp->doorbell);
        }
        pthread_mutex_unlock(&qp->rq.lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}
