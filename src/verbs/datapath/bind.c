// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/bind.h"

#include <errno.h>

#include "pumice/layout.h"
#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/datapath/bind_layout.h"
#include "src/verbs/datapath/wqe.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/memory/mw.h"
#include "src/verbs/session/context.h"

/* Fills the fields that say which range of memory the window shall expose. Returns 0 or EINVAL. */
static int put_range(struct pm_send_wqe *w, const struct vb_mw *vmw, const struct ibv_mw_bind_info *info)
{
    const struct ibv_mw *mw = &vmw->mw;
    bool type1 = mw->type == IBV_MW_TYPE_1;
    unsigned access = info->mw_access_flags;
    if (vmw->max_entries == 0)
        access &= ~(unsigned)IBV_ACCESS_LOCAL_WRITE; /* local access uses the key of the region */
    if (type1 && (access & IBV_ACCESS_ZERO_BASED))
        return EINVAL;
    if (!info->mr && (info->length || !type1))
        return EINVAL;
    if (info->mr && info->mr->pd->handle != mw->pd->handle)
        return EINVAL;
    w->remote_addr = info->addr;
    w->compare_add = info->length;
    w->mr_key = info->mr ? info->mr->lkey : 0;
    w->srqn = access;
    return 0;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Gives the window its new key. If the daemon refuses the bind, the window keeps its old key in the daemon. So the
 * request keeps the old key and the number of the bind until its completion is polled. When a bind is refused, all
 * later binds of the QP are flushed, and they change nothing any more. */
static void bind_posted(struct pm_send_wqe *w, const struct vb_qp *qp, struct vb_mw *vmw, uint32_t key)
{
    struct vb_context *c = vb_ctx(vmw->mw.context);
    pthread_mutex_lock(&c->lock);
    vmw->binder = qp;
    if (++vmw->binds == 0)
        vmw->binds = 1;
    w->swap = (uint64_t)vmw->binds << 32 | vmw->key;
    vmw->key = key;
    pthread_mutex_unlock(&c->lock);
}

void vb_bind_undo(struct vb_qp *qp, const struct pm_send_wqe *w)
{
    struct vb_context *c = vb_ctx(qp->qp.context);
    uint32_t number = (uint32_t)(w->swap >> 32), before = (uint32_t)w->swap;
    pthread_mutex_lock(&c->lock);
    struct vb_mw *vmw = vb_table_get(&c->mws, w->rkey >> 8);
    if (vmw && number && vmw->binder == qp && (int32_t)(number - vmw->undone) > 0) {
        /* In a window of type 2, this holds only if the program has stored the new key in mw.rkey. */
        if (vmw->mw.rkey == vmw->key)
            vmw->mw.rkey = before;
        vmw->key = before;
        vmw->undone = vmw->binds;
    }
    pthread_mutex_unlock(&c->lock);
}

void vb_binds_drop(struct vb_qp *qp, uint32_t end)
{
    struct vb_context *c = vb_ctx(qp->qp.context);
    while (end != qp->sq.tail) {
        const struct pm_send_wqe *w = ring_slot(qp->sq.ring, qp->sq.stride, qp->sq.mask, --end);
        uint32_t number = (uint32_t)(w->swap >> 32);
        if (w->opcode != IBV_WR_BIND_MW || number == 0)
            continue;
        pthread_mutex_lock(&c->lock);
        struct vb_mw *vmw = vb_table_get(&c->mws, w->rkey >> 8);
        if (vmw && vmw->binds == number) { /* and no other QP has posted a bind meanwhile */
            vmw->key = (uint32_t)w->swap;
            vmw->binds--;
        }
        pthread_mutex_unlock(&c->lock);
    }
}

int vb_wqe_bind(struct pm_send_wqe *w, struct vb_qp *qp, struct ibv_mw *mw, uint32_t new_rkey,
                const struct ibv_mw_bind_info *info)
{
    const unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED | VB_ACCESS_FLUSH_GLOBAL |
                           PUMICE_ACCESS_BIND_MW_NONCONTIG;
    struct vb_mw *vmw = vb_mw(mw);
    bool type1 = mw->type == IBV_MW_TYPE_1;
    if (info->mw_access_flags & ~known || mw->pd->handle != qp->qp.pd->handle)
        return EINVAL;
    int rc = info->mw_access_flags & PUMICE_ACCESS_BIND_MW_NONCONTIG ? vb_wqe_bind_layout(w, qp, vmw, info)
                                                                     : put_range(w, vmw, info);
    if (rc)
        return rc;
    if (type1) {
        w->rkey = mw->rkey;
        w->imm = new_rkey;
    } else {
        w->rkey = (mw->rkey & ~UINT32_C(0xff)) | (new_rkey & 0xff);
    }
    bind_posted(w, qp, vmw, type1 ? new_rkey : w->rkey);
    return 0;
}

int vb_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    if (!vb_owned(c))
        return EIO;
    if (!(qp->type_bit & vb_wr_opcode(IBV_WR_BIND_MW)->types) || !vb_can_send(qp) || qp->no_sends ||
        mw->type != IBV_MW_TYPE_1)
        return EINVAL;
    pthread_mutex_lock(&qp->sq.lock);
    uint32_t next = qp->sq.tail, rkey = ibv_inc_rkey(mw->rkey);
    int rc = ENOMEM;
    if (vb_queue_room(&qp->sq, next)) {
        struct pm_send_wqe *w = vb_wqe_start(qp, next, bind->wr_id, IBV_WR_BIND_MW, bind->send_flags);
        w->flags &= (uint8_t)~PM_SEND_INLINE;
        rc = vb_wqe_bind(w, qp, mw, rkey, &bind->bind_info);
    }
    if (rc == 0) {
        mw->rkey = rkey;
        vb_send_publish(c, qp, next + 1);
    }
    pthread_mutex_unlock(&qp->sq.lock);
    return rc;
}
