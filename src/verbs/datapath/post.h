// SPDX-License-Identifier: BSD-2-Clause
/* Writing work requests into the rings: what ibv_post_send and ibv_wr_* share. */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include "src/verbs/base/cancel.h"
#include "src/verbs/base/objects.h"
#include "src/verbs/datapath/ring.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct pm_sge) &&
                   offsetof(struct ibv_sge, length) == offsetof(struct pm_sge, length) &&
                   offsetof(struct ibv_sge, lkey) == offsetof(struct pm_sge, lkey),
               "SGEs are copied as they are");

/* What a send request's opcode asks for, and who may post it. */
enum vb_op_kind {
    VB_OP_NONE,
    VB_OP_SEND,
    VB_OP_RDMA,
    VB_OP_ATOMIC,
    VB_OP_ATOMIC_WRITE,
    VB_OP_FLUSH,
    VB_OP_INV,
    VB_OP_BIND
};
struct vb_op {
    uint8_t kind; /* enum vb_op_kind: which fields of the request count */
    uint8_t types; /* VB_TYPE_*: the QPs that may send it; 0: none */
    bool can_inline; /* the request carries data away */
    bool imm; /* immediate data, or a key that the peer shall invalidate */
    uint8_t wc; /* enum ibv_wc_opcode of its completion */
};
#define VB_TYPE_RC 1 /* RC, and XRC's initiator */
#define VB_TYPE_UC 2
#define VB_TYPE_UD 4
/* The bit of a QP type; 0: it sends nothing. */
uint8_t vb_type_bit(enum ibv_qp_type type);
/* Of enum ibv_wr_opcode; one of kind VB_OP_NONE for those that are not known. */
const struct vb_op *vb_op(unsigned wr_opcode);

/* Fills the fields of a bind request. type 1: new_rkey is what the window's rkey becomes; type 2: the wanted one, whose
 * low byte counts. 0 or errno value. */
int vb_wqe_bind(struct pm_send_wqe *w, struct vb_qp *qp, struct ibv_mw *mw, uint32_t new_rkey,
                const struct ibv_mw_bind_info *info);
/* Requests from the tail to index end were built and will not be posted after all: the keys of windows that they would have bound
 * are what they were. Under the send queue's lock. */
void vb_binds_drop(struct vb_qp *qp, uint32_t end);
/* Likewise for a bind request that was refused or flushed. */
void vb_bind_undo(struct vb_qp *qp, const struct pm_send_wqe *w);
/* Fills the destination of a datagram. 0 or errno value. */
int vb_wqe_ud(struct pm_send_wqe *w, const struct vb_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/* What follows the header of a send request: SGEs or inline data, behind the destination of a datagram. */
static inline void *vb_wqe_body(const struct vb_qp *qp, struct pm_send_wqe *w)
{
    return (uint8_t *)(w + 1) + (qp->qp.qp_type == IBV_QPT_UD ? sizeof(struct pm_av) : 0);
}

#define VB_SEND_FLAGS (PM_SEND_FENCE | PM_SEND_SIGNALED | PM_SEND_SOLICITED | PM_SEND_INLINE)

#define VB_MAX_MSG ((uint64_t)1 << 31) /* bytes; the device's max_msg_sz */
/* May a request of that kind have such an SGE list: not more than a message, and for atomics not less than eight
 * bytes? */
bool vb_length_ok(uint8_t wr_opcode, const struct ibv_sge *sge, size_t num);

/* May requests be posted to the send queue in the QP's state? In ERR and SQE they are flushed. */
static inline bool vb_can_send(const struct vb_qp *qp)
{
    enum ibv_qp_state s = __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE);
    return s >= IBV_QPS_RTS && s <= IBV_QPS_ERR;
}

/* Has the queue a free slot at index next? Acquire: pairs with the poller's release of head, after its last look at
 * the slot. */
static inline bool vb_queue_room(const struct vb_queue *q, uint32_t next)
{
    return next - atomic_load_explicit(&q->head, memory_order_acquire) < q->max_wr;
}

/* The header of the send request at index next; the caller fills the fields of its operation and the payload. */
static inline struct pm_send_wqe *vb_wqe_start(struct vb_qp *qp, uint32_t next, uint64_t wr_id, uint8_t opcode,
                                               unsigned flags)
{
    struct pm_send_wqe *w = ring_slot(qp->sq.ring, qp->sq.stride, qp->sq.mask, next);
    memset(w, 0, sizeof(*w));
    w->wr_id = wr_id;
    w->opcode = opcode;
    w->flags = (uint8_t)(flags & VB_SEND_FLAGS);
    return w;
}

/* Wakes the sleeping daemon. The write can't block or fail in a way that matters: a counter that is not zero wakes
 * as well. */
static inline void vb_wake(struct vb_context *c)
{
    uint64_t one = 1;
    long n = syscall(SYS_write, c->doorbell_fd, &one, sizeof(one)); /* see cancel.h */
    (void)n;
}

/* Shows all requests before index tail to the daemon and wakes it. Under the send queue's lock. */
static inline void vb_send_publish(struct vb_context *c, struct vb_qp *qp, uint32_t tail)
{
    qp->sq.tail = tail;
    ring_publish_send(qp->page, tail);
    if (ring_doorbell(c->page, qp->doorbell))
        vb_wake(c);
}

#endif
