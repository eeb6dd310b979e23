// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/qp_ex.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/base/sge.h"
#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/datapath/small_data.h"
#include "src/verbs/datapath/wqe.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/session/context.h"

/* Notes the first failure of the batch. The setters of the current request then do nothing. */
static void fail(struct vb_qp *qp, int error)
{
    if (!qp->wr_error)
        qp->wr_error = error;
    qp->wr_wqe = NULL;
}

/* Begins the next request. Returns NULL if this or an earlier call of the batch failed. */
static struct pm_send_wqe *begin(struct vb_qp *qp, enum ibv_wr_opcode opcode)
{
    qp->wr_wqe = NULL;
    if (qp->wr_error)
        return NULL;
    if (!(vb_wr_opcode(opcode)->types & qp->type_bit)) {
        fail(qp, EINVAL);
        return NULL;
    }
    if (!vb_queue_room(&qp->sq, qp->wr_next)) {
        fail(qp, ENOMEM);
        return NULL;
    }
    qp->wr_wqe =
        vb_wqe_start(qp, qp->wr_next++, qp->ex.wr_id, (uint8_t)opcode, qp->ex.wr_flags & ~(unsigned)IBV_SEND_INLINE);
    return qp->wr_wqe;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t imm)
{
    struct pm_send_wqe *w = begin(vb_qp_ex(ex), opcode);
    if (w) {
        w->rkey = rkey;
        w->remote_addr = addr;
        w->imm = imm;
    }
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}
static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}
static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint64_t compare_add,
                   uint64_t swap)
{
    struct pm_send_wqe *w = begin(vb_qp_ex(ex), opcode);
    if (w) {
        w->rkey = rkey;
        w->remote_addr = addr;
        w->compare_add = compare_add;
        w->swap = swap;
    }
}
static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}
static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void with_imm(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t imm)
{
    struct pm_send_wqe *w = begin(vb_qp_ex(ex), opcode);
    if (w)
        w->imm = imm;
}
static void wr_send(struct ibv_qp_ex *ex)
{
    with_imm(ex, IBV_WR_SEND, 0);
}
static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    with_imm(ex, IBV_WR_SEND_WITH_IMM, imm);
}
static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    with_imm(ex, IBV_WR_SEND_WITH_INV, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    with_imm(ex, IBV_WR_LOCAL_INV, rkey);
}
static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct pm_send_wqe *w = begin(qp, IBV_WR_BIND_MW);
    int rc = !w ? 0 : mw->type == IBV_MW_TYPE_2 ? vb_wqe_bind(w, qp, mw, rkey, info) : EINVAL;
    if (rc)
        fail(qp, rc);
}
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value)
{
    uint64_t word;
    memcpy(&word, value, sizeof(word));
    atomic(ex, IBV_WR_ATOMIC_WRITE, rkey, addr, word, 0);
}
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t len, uint8_t placement,
                     uint8_t selectivity)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct pm_send_wqe *w = begin(qp, VB_WR_FLUSH);
    bool range = selectivity != VB_FLUSH_MR;
    if (!w)
        return;
    if (placement == 0 || placement & ~(VB_FLUSH_GLOBAL | VB_FLUSH_PERSISTENT) || selectivity > VB_FLUSH_MR ||
        (range && len > VB_MAX_MSG)) {
        fail(qp, EINVAL);
        return;
    }
    w->rkey = rkey;
    w->remote_addr = addr;
    w->compare_add = range ? len : 0;
    w->swap = placement | (uint64_t)selectivity << 8;
}
/* This device has no TSO. The failure drops the whole batch. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    (void)hdr, (void)hdr_sz, (void)mss;
    fail(vb_qp_ex(ex), EOPNOTSUPP);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    if (!qp->wr_wqe)
        return;
    int rc = qp->qp.qp_type == IBV_QPT_UD ? vb_wqe_ud(qp->wr_wqe, qp, ah, qpn, qkey) : EINVAL;
    if (rc)
        fail(qp, rc);
}
static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    if (!qp->wr_wqe)
        return;
    if (qp->qp.qp_type == IBV_QPT_XRC_SEND)
        qp->wr_wqe->srqn = srqn;
    else
        fail(qp, EINVAL);
}

/* Does the request under construction read or write local memory? */
static bool has_data(const struct pm_send_wqe *w)
{
    uint8_t kind = vb_wr_opcode(w->opcode)->kind;
    return kind == VB_WR_KIND_SEND || kind == VB_WR_KIND_RDMA || kind == VB_WR_KIND_ATOMIC;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct pm_send_wqe *w = qp->wr_wqe;
    if (!w)
        return;
    if (num > qp->sq.max_sge || !has_data(w) || !vb_length_ok(w->opcode, list, num)) {
        fail(qp, EINVAL);
        return;
    }
    if (vb_small_data(qp, w, list, num))
        return;
    w->num_sge = (uint8_t)num;
    if (num)
        memcpy(vb_wqe_body(qp, w), list, num * sizeof(*list));
}
static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
    wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_data_buf *list)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct pm_send_wqe *w = qp->wr_wqe;
    if (!w)
        return;
    if (!has_data(w) || !vb_wr_opcode(w->opcode)->can_inline) {
        fail(qp, EINVAL);
        return;
    }
    uint8_t *to = vb_wqe_body(qp, w);
    size_t max = qp->cap.max_inline_data, total = 0;
    for (size_t i = 0; i < num; i++) {
        if (list[i].length > max - total) {
            fail(qp, EINVAL);
            return;
        }
        if (list[i].length)
            memcpy(to + total, list[i].addr, list[i].length);
        total += list[i].length;
    }
    w->inline_len = (uint32_t)total;
    w->flags |= PM_SEND_INLINE;
}
static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {addr, length};
    wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    bool owned = vb_owned(vb_ctx(qp->qp.context));
    if (owned) /* in a forked child, a thread of the parent may hold the lock for ever */
        pthread_mutex_lock(&qp->sq.lock);
    qp->wr_next = qp->sq.tail;
    qp->wr_wqe = NULL;
    qp->wr_error = !owned ? EIO : !vb_can_send(qp) || qp->no_sends ? EINVAL : 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    struct vb_context *c = vb_ctx(qp->qp.context);
    int error = qp->wr_error;
    bool owned = vb_owned_quiet(c);
    if (!error && qp->wr_next != qp->sq.tail)
        vb_send_publish(c, qp, qp->wr_next);
    else if (owned)
        vb_binds_drop(qp, qp->wr_next);
    if (owned)
        pthread_mutex_unlock(&qp->sq.lock);
    return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct vb_qp *qp = vb_qp_ex(ex);
    if (!vb_owned_quiet(vb_ctx(qp->qp.context)))
        return;
    vb_binds_drop(qp, qp->wr_next);
    pthread_mutex_unlock(&qp->sq.lock);
}

void vb_qp_ex_ops(struct ibv_qp_ex *ex)
{
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_atomic_write = wr_atomic_write;
    vb_qp_ex(ex)->v45.wr_flush = wr_flush;
}
