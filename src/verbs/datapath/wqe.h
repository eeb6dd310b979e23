// SPDX-License-Identifier: BSD-2-Clause
/* Writing send requests into the ring: the functions that ibv_post_send, ibv_wr_* and ibv_bind_mw share. The caller of
 * each holds the lock of the send queue. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_WQE_H
#define PUMICE_SRC_VERBS_DATAPATH_WQE_H

#include <errno.h>
#include <string.h>

#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/objects/ah.h"
#include "src/verbs/objects/qp.h"

#define VB_SEND_FLAGS (PM_SEND_FENCE | PM_SEND_SIGNALED | PM_SEND_SOLICITED | PM_SEND_INLINE)

/* The header of the send request at index next. The caller fills the fields of its operation and the payload. */
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

/* The place for SGEs or inline data: behind the header of a send request and, in a datagram, behind its destination. */
static inline void *vb_wqe_body(const struct vb_qp *qp, struct pm_send_wqe *w)
{
    return (uint8_t *)(w + 1) + (qp->qp.qp_type == IBV_QPT_UD ? sizeof(struct pm_av) : 0);
}

/* Fills the destination of a datagram. Returns 0, or EINVAL if ah is NULL or of another context. */
static inline int vb_wqe_ud(struct pm_send_wqe *w, const struct vb_qp *qp, struct ibv_ah *ah, uint32_t qpn,
                            uint32_t qkey)
{
    if (!ah || ah->context != qp->qp.context)
        return EINVAL;
    memcpy(w + 1, &vb_ah(ah)->av, sizeof(struct pm_av));
    w->remote_qpn = qpn;
    w->remote_qkey = qkey;
    return 0;
}

/* Shows all requests before index tail to the daemon, and wakes it. */
static inline void vb_send_publish(struct vb_context *c, struct vb_qp *qp, uint32_t tail)
{
    qp->sq.tail = tail;
    ring_publish_send(qp->page, tail);
    vb_doorbell(c, qp->doorbell);
    vb_poll_posted();
}

#endif
