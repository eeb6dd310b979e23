// SPDX-License-Identifier: BSD-2-Clause
/* After the daemon's death the library completes what is outstanding: each request that was not polled, in posting
 * order, with IBV_WC_WR_FLUSH_ERR. What the daemon had done of them is not known. Requests of a basic SRQ, which has no CQ, come
 * to the first CQ of its queue pairs that is polled. */
#include <time.h>

#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/datapath/ring.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/objects/srq.h"

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

/* Of an SRQ. It is retired already, so the completion names no request. */
static bool flush_srq(struct vb_srq *srq, uint32_t qpn, struct pm_cqe *out)
{
    struct vb_flushed f;
    if (!vb_srq_flush_next(srq, &f))
        return false;
    flushed(qpn, f.wr_id, VB_SRQ_NONE, f.opcode, PM_CQE_RECV, out);
    out->srq = srq->srq.handle;
    return true;
}

bool vb_flush_next(struct vb_cq *cq, struct pm_cqe *out)
{
    for (struct vb_link *l = cq->senders; l; l = l->next) {
        struct vb_queue *q = &l->qp->sq;
        uint32_t head = atomic_load(&q->head);
        /* Acquire, by the default order: pairs with the poster's release of the tail. */
        if (head != atomic_load(&l->qp->page->sq_tail)) {
            const struct pm_send_wqe *w = ring_slot(q->ring, q->stride, q->mask, head);
            flushed(l->qp->qp.qp_num, w->wr_id, head, vb_wc_opcode(w->opcode), 0, out);
            return true;
        }
    }
    for (struct vb_link *l = cq->receivers; l; l = l->next) {
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
