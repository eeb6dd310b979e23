// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/poll.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/base/sge.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/datapath/cq_notify.h"
#include "src/verbs/datapath/flush.h"
#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/datapath/tm.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/context.h"
#include "src/verbs/unkind/poll_size.h"
#include "src/verbs/unkind/recv_buffers.h"

/* Gives the CQ entry back to the daemon. */
static inline void consume(struct vb_cq *cq)
{
    ring_consume(cq->page, cq->consumer);
}

/* As retire(), for a request of an SRQ. */
static void retire_srq(struct vb_cq *cq, struct vb_srq *srq, const struct pm_cqe *e, const uint8_t *data, uint32_t len)
{
    pthread_mutex_lock(&srq->lock);
    if (e->kind & (PM_CQE_TM_ENTRY | PM_CQE_TM_OP)) {
        vb_tm_retire(srq, e);
    } else {
        if (__builtin_expect(e->status != IBV_WC_SUCCESS, 0) && e->slot < srq->capacity)
            vb_unkind_failed(vb_ctx(cq->cq.context), vb_srq_req(srq, e->slot)->sge, vb_srq_req(srq, e->slot)->num_sge);
        vb_srq_retire(srq, e->slot, data, len);
    }
    consume(cq);
    pthread_mutex_unlock(&srq->lock);
}

/* Gives the CQ entry back to the daemon, and then the slot of the request to the poster; in a send queue, together with
 * all earlier slots. The order matters: a request that is posted into the slot may complete at once. If the CQ is no
 * larger than its queues, the completion needs that entry. Release: see vb_queue.head. */
static void retire(struct vb_cq *cq, const struct pm_cqe *e, const uint8_t *data)
{
    struct vb_context *c = vb_ctx(cq->cq.context);
    uint32_t len = e->inline_len < sizeof(e->data) ? e->inline_len : (uint32_t)sizeof(e->data);
    /* The QP of a request of an SRQ may belong to another process. */
    struct vb_srq *srq = e->srq ? vb_table_get(&c->srqs, e->srq) : NULL;
    struct vb_qp *qp = e->srq ? NULL : vb_table_get(&c->qps, e->qpn);
    if (srq) {
        retire_srq(cq, srq, e, data, len);
    } else if (!qp) {
        consume(cq);
    } else if (!(e->kind & PM_CQE_RECV)) {
        const struct pm_send_wqe *w = ring_slot(qp->sq.ring, qp->sq.stride, qp->sq.mask, e->slot);
        if (__builtin_expect(e->status != IBV_WC_SUCCESS, 0) && w->opcode == IBV_WR_BIND_MW)
            vb_bind_undo(qp, w);
        consume(cq);
        atomic_store_explicit(&qp->sq.head, e->slot + 1, memory_order_release);
    } else {
        const struct pm_recv_wqe *w = ring_slot(qp->rq.ring, qp->rq.stride, qp->rq.mask, e->slot);
        const struct pm_sge *sge = (const struct pm_sge *)(w + 1);
        uint32_t num = w->num_sge < qp->rq.max_sge ? w->num_sge : qp->rq.max_sge;
        if (len)
            vb_scatter(sge, num, data, len);
        if (__builtin_expect(e->status != IBV_WC_SUCCESS, 0))
            vb_unkind_failed(c, sge, num);
        consume(cq);
        atomic_store_explicit(&qp->rq.head, e->slot + 1, memory_order_release);
    }
}

/* The next completion in the ring, or NULL. */
static inline const struct pm_cqe *next_cqe(struct vb_cq *cq)
{
    if (cq->overruns)
        cq->consumer = ring_overrun(cq->entries, cq->mask, cq->consumer);
    return ring_cqe(cq->entries, cq->mask, cq->consumer);
}

bool vb_cq_take(struct vb_cq *cq, struct pm_cqe *out)
{
    struct vb_context *c = vb_ctx(cq->cq.context);
    const struct pm_cqe *e = next_cqe(cq);
    /* Flushed completions come only after all completions of the daemon. The daemon may have added its last completions
     * after the first look at the ring. Acquire: if this thread sees that the daemon is gone, a second look sees these
     * completions. */
    bool gone = !e && __builtin_expect(atomic_load_explicit(&c->gone, memory_order_acquire), 0);
    if (gone)
        e = next_cqe(cq);
    if (e) {
        memcpy(out, e, offsetof(struct pm_cqe, data));
        if (out->kind & PM_CQE_TM_ENTRY)
            out->tm = e->tm;
        else if (out->wc_flags & IBV_WC_GRH)
            out->data[0] = e->data[0];
        cq->consumer++;
        retire(cq, out, e->data);
        return true;
    }
    if (gone && vb_flush_next(cq, out)) {
        retire(cq, out, NULL);
        return true;
    }
    return false;
}

static void to_wc(const struct pm_cqe *e, struct ibv_wc *wc)
{
    wc->wr_id = e->wr_id;
    wc->status = e->status;
    wc->opcode = e->opcode;
    wc->vendor_err = e->vendor_err;
    wc->byte_len = e->byte_len;
    wc->imm_data = e->imm;
    wc->qp_num = e->qpn;
    wc->src_qp = e->src_qp;
    wc->wc_flags = e->wc_flags;
    wc->pkey_index = 0;
    wc->slid = 0;
    wc->sl = vb_wc_sl(e);
    wc->dlid_path_bits = 0;
}

int vb_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
    struct vb_cq *cq = vb_cq(ibcq);
    struct vb_context *c = vb_ctx(ibcq->context);
    struct pm_cqe e;
    int done = 0;
    if (!vb_owned(c))
        return -EIO;
    vb_cq_lock(cq);
    while (done < num && vb_cq_take(cq, &e))
        to_wc(&e, &wc[done++]);
    vb_cq_notify_polled(cq, done > 0);
    vb_cq_unlock(cq);
    if (done == 0)
        vb_poll_wait(cq);
    return done;
}

int vb_poll_cq_fewer(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
    struct vb_cq *cq = vb_cq(ibcq);
    vb_cq_lock(cq);
    num = vb_unkind_poll_size(cq, num);
    vb_cq_unlock(cq);
    return vb_poll_cq(ibcq, num, wc);
}
