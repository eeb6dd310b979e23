// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues, for the rest of the library. */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include "src/verbs/base/objects.h"

static inline void vb_cq_lock(struct vb_cq *cq)
{
    if (!cq->unlocked)
        pthread_mutex_lock(&cq->lock);
}
static inline void vb_cq_unlock(struct vb_cq *cq)
{
    if (!cq->unlocked)
        pthread_mutex_unlock(&cq->lock);
}

/* Both CQs of a QP, which may be one, or NULL: the lower address first. */
void vb_cq_lock_pair(struct vb_cq *a, struct vb_cq *b);
void vb_cq_unlock_pair(struct vb_cq *a, struct vb_cq *b);

/* Makes qp's completions come to its CQs, and ends that: then none of them waits there any more. The caller holds
 * both locks. */
void vb_cq_attach(struct vb_qp *qp);
void vb_cq_detach(struct vb_qp *qp);
/* Removes qp's waiting completions from its CQs; its requests of an SRQ go back there. The caller holds both locks. */
void vb_cq_purge(struct vb_qp *qp);
/* Removes waiting completions of requests of an SRQ. The caller holds the lock. */
void vb_cq_purge_srq(struct vb_cq *cq, uint32_t srq);

/* The next completion that is there, taken off the ring, its place given back to the daemon and its request to its queue, its
 * inline data scattered; false: none. out gets all but the data. The caller holds the lock. */
bool vb_cq_take(struct vb_cq *cq, struct pm_cqe *out);

/* After the daemon's death: the next request outstanding in a queue behind cq, as a flushed completion without ring;
 * false: none. The caller holds the lock and retires it (the queue's head moves); one of an SRQ is retired already. */
bool vb_flush_next(struct vb_cq *cq, struct pm_cqe *out);

/* What the service level of a completion says. RoCE has none; of a datagram it tells what its headers were, as NICs do
 * it (UCX reads that before it looks at the GRH area): bit 3, they ended with UDP; bits 2 to 0, IPv6 is 1, IPv4 is 2. */
static inline uint8_t vb_wc_sl(const struct vb_cq *cq, const struct pm_cqe *e)
{
    if (!(e->wc_flags & IBV_WC_GRH))
        return 0;
    return vb_gid_is_v4(vb_ctx(cq->cq.context)->caps.desc.gid) ? 0x8 | 2 : 0x8 | 1;
}

/* Completion opcode of a send request's opcode. */
uint8_t vb_wc_opcode(uint8_t wr_opcode);

#endif
