// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/flush.h"

#include <string.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/datapath/tm.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/objects/srq.h"

/* Fills *out with a completion with IBV_WC_WR_FLUSH_ERR. */
static void flushed(uint32_t qpn, uint64_t wr_id, uint32_t slot, uint8_t opcode, uint8_t kind, struct pm_cqe *out)
{
    memset(out, 0, offsetof(struct pm_cqe, data));
    out->wr_id = wr_id;
    out->timestamp = vb_clock(CLOCK_MONOTONIC);
    out->qpn = qpn;
    out->slot = slot;
    out->status = IBV_WC_WR_FLUSH_ERR;
    out->opcode = opcode;
    out->kind = kind;
}

/* --- shared receive queues -------------------------------------------------------------------- */

/* Marks the requests whose completion waits in this CQ. No thread takes a completion of this SRQ now, because that
 * needs the lock of the SRQ. Another thread may purge other completions. Then the completions of this SRQ move only
 * towards higher indexes, where this loop finds them. */
static void mark_reported_in(struct vb_srq *srq, const struct vb_cq *cq)
{
    /* Acquire: pairs with the release store by the poller. */
    uint32_t i = atomic_load_explicit(&cq->page->consumer, memory_order_acquire);
    const struct pm_cqe *e;
    if (cq->overruns)
        i = ring_overrun(cq->entries, cq->mask, i);
    for (; (e = ring_cqe(cq->entries, cq->mask, i)); i++)
        if (e->srq == srq->srq.handle && e->slot < srq->capacity && vb_srq_req(srq, e->slot)->next == VB_SRQ_OUT)
            vb_srq_req(srq, e->slot)->next = VB_SRQ_REPORTED;
}

/* Marks the requests whose completion waits in any CQ. The queue pairs of the SRQ may have several CQs. A poll of one
 * CQ must not flush a request that has a completion in another CQ. The library does this once for each SRQ, because the
 * dead daemon adds no completions. */
static void mark_reported(struct vb_srq *srq)
{
    struct vb_context *c = vb_ctx(srq->srq.context);
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < VB_TABLE_SIZE; i++) {
        for (uint32_t j = 0; atomic_load(&c->cqs.root[i]) && j < VB_TABLE_SIZE; j++) {
            const struct vb_cq *cq = vb_table_get(&c->cqs, i << VB_TABLE_BITS | j);
            if (cq)
                mark_reported_in(srq, cq);
        }
    }
    pthread_mutex_unlock(&c->lock);
    srq->reported_marked = true;
}

/* Retires the next outstanding request of an SRQ, and returns it in *out. Returns false if there is none. */
static bool srq_flush_next(struct vb_srq *srq, struct vb_flushed *out)
{
    pthread_mutex_lock(&srq->lock);
    bool found = srq->tm && vb_tm_flush_next(srq, out);
    if (!srq->cq && !srq->reported_marked)
        mark_reported(srq);
    for (uint32_t n = srq->outstanding ? srq->capacity : 0; n > 0 && !found; n--) {
        uint32_t wqe_index = srq->flush_at;
        srq->flush_at = wqe_index + 1 < srq->capacity ? wqe_index + 1 : 0;
        found = vb_srq_req(srq, wqe_index)->next == VB_SRQ_OUT;
        if (found) {
            *out = (struct vb_flushed){vb_srq_req(srq, wqe_index)->wr_id, IBV_WC_RECV};
            vb_srq_put_free(srq, wqe_index);
        }
    }
    pthread_mutex_unlock(&srq->lock);
    return found;
}

/* Makes the completion of the next request of an SRQ. The request is retired already, so the completion names no
 * request. */
static bool flush_srq(struct vb_srq *srq, uint32_t qpn, struct pm_cqe *out)
{
    struct vb_flushed f;
    if (!srq_flush_next(srq, &f))
        return false;
    flushed(qpn, f.wr_id, VB_SRQ_NONE, f.opcode, PM_CQE_RECV, out);
    out->srq = srq->srq.handle;
    return true;
}

bool vb_flush_next(struct vb_cq *cq, struct pm_cqe *out)
{
    for (struct vb_cq_link *l = cq->senders; l; l = l->next) {
        struct vb_queue *q = &l->qp->sq;
        uint32_t head = atomic_load(&q->head);
        /* Acquire, as part of the default order: pairs with the release store of the tail by the poster. */
        if (head != atomic_load(&l->qp->page->sq_tail)) {
            const struct pm_send_wqe *w = ring_slot(q->ring, q->stride, q->mask, head);
            flushed(l->qp->qp.qp_num, w->wr_id, head, vb_wc_opcode(w->opcode), 0, out);
            return true;
        }
    }
    for (struct vb_cq_link *l = cq->receivers; l; l = l->next) {
        struct vb_queue *q = &l->qp->rq;
        uint32_t head = atomic_load(&q->head);
        if (head != atomic_load(&l->qp->page->rq_tail)) {
            const struct pm_recv_wqe *w = ring_slot(q->ring, q->stride, q->mask, head);
            flushed(l->qp->qp.qp_num, w->wr_id, head, IBV_WC_RECV, PM_CQE_RECV, out);
            return true;
        }
        struct ibv_srq *basic = l->qp->qp.srq;
        if (basic && !vb_srq(basic)->cq && flush_srq(vb_srq(basic), l->qp->qp.qp_num, out))
            return true;
    }
    for (struct vb_srq *s = cq->srqs; s; s = s->next_of_cq)
        if (flush_srq(s, 0, out))
            return true;
    return false;
}
