// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/post.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/qp_type.h"
#include "daemon/core/tm/tag_list.h"
#include "wire/gid.h"

static bool is_flush(const struct flush *f)
{
    return f->placement >= 1 && f->placement <= (FLUSH_GLOBAL | FLUSH_PERSISTENT) && f->selectivity <= FLUSH_REGION &&
           f->length <= ENGINE_MAX_MSG;
}

/* Checks a request against the QP's type and caps, and sums up its length. */
static int send_length(const struct qp *qp, const struct send_wr *wr, const struct sge *sge, uint32_t *length)
{
    if (wr->opcode >= 16 || !(qp->send_ops >> wr->opcode & 1))
        return -EINVAL;
    bool atomic_write = wr->opcode == WR_ATOMIC_WRITE;
    if ((QP_LOCAL_OPS | 1 << WR_FLUSH) >> wr->opcode & 1 || (atomic_write && wr->num_sge == 0)) {
        *length = atomic_write ? 8 : 0;
        bool bare = wr->num_sge == 0 && !(wr->flags & SEND_INLINE);
        return bare && (wr->opcode != WR_FLUSH || is_flush(&wr->flush)) ? 0 : -EINVAL;
    }
    bool takes_data =
        wr->opcode != WR_RDMA_READ && wr->opcode != WR_ATOMIC_CMP_AND_SWP && wr->opcode != WR_ATOMIC_FETCH_AND_ADD;
    if (wr->flags & SEND_INLINE) {
        *length = wr->inline_len;
        bool fits = wr->num_sge == 0 && wr->inline_len <= qp->caps.max_inline;
        return takes_data && !atomic_write && fits ? 0 : -EINVAL;
    }
    if (wr->num_sge > qp->caps.max_send_sge)
        return -EINVAL;
    uint64_t total = 0;
    for (unsigned i = 0; i < wr->num_sge; i++)
        total += sge[i].length;
    if (total > ENGINE_MAX_MSG)
        return -EINVAL;
    *length = (uint32_t)total;
    bool atomic = wr->opcode == WR_ATOMIC_CMP_AND_SWP || wr->opcode == WR_ATOMIC_FETCH_AND_ADD;
    if (atomic)
        *length = 8; /* more room than the result needs is allowed */
    return (atomic && total < 8) || (atomic_write && total != 8) ? -EINVAL : 0;
}

/* The error of a datagram that can never be sent: enum wc_status. A datagram is one packet. Source and destination must
 * be of one address family; for groups the owner finds an address of the right family. */
static uint8_t datagram_error(const struct qp *qp, const struct av *av, uint32_t length)
{
    if (length > qp->mtu)
        return WC_LOC_LEN_ERR;
    bool same = gid_is_v4(av->dgid) == gid_is_v4(qp->e->cfg.gids[av->sgid_index]);
    return same || gid_is_multicast(av->dgid) ? WC_SUCCESS : WC_LOC_QP_OP_ERR;
}

int qp_send_reserve(struct qp *qp, struct send_slot *slot)
{
    const struct queue *sq = &qp->req->sq;
    if (qp->attr.state < QPS_RTS || qp->send_ops == 0)
        return -EINVAL;
    if (qp->tm && tm_profile_of(qp->tm)->owns_send_queue)
        return -EINVAL;
    qp_wake(qp);
    if (qp_send_room(qp) == 0)
        return -ENOMEM;
    struct send_wqe *w = queue_at(sq, sq->tail);
    *slot = (struct send_slot){.wr = &w->wr,
                               .sge = w->u.sge,
                               .data = w->u.data,
                               .max_sge = qp->caps.max_send_sge,
                               .max_inline = qp->caps.max_inline};
    return 0;
}

int qp_send_commit(struct qp *qp)
{
    struct queue *sq = &qp->req->sq;
    struct send_wqe *w = queue_at(sq, sq->tail);
    const struct send_wr *wr = &w->wr;
    uint32_t length = 0;
    int err = send_length(qp, wr, w->u.sge, &length);
    if (err)
        return err;
    bool ud = qp->type == QPT_UD;
    if (ud && (wr->ud.qpn > QPN_MASK || wr->ud.av.sgid_index >= qp->e->cfg.num_gids))
        return -EINVAL;
    if (qp->sq_sig_all)
        w->wr.flags |= SEND_SIGNALED;
    w->length = length;
    w->local_error = ud ? datagram_error(qp, &wr->ud.av, length) : 0;
    w->pd = qp->pd;
    w->offload = OFFLOAD_NONE;
    w->local_cause = 0;
    sq->tail++;
    if (qp->attr.state == QPS_ERR || qp->attr.state == QPS_SQE)
        qp->req->flush_end = sq->tail;
    qp_schedule(qp);
    QP_CHECK(qp);
    return 0;
}

int qp_post_send(struct qp *qp, const struct send_wr *wr, const struct sge *sge, const void *data)
{
    struct send_slot slot;
    int err = qp_send_reserve(qp, &slot);
    if (err)
        return err;
    if (wr->num_sge > slot.max_sge || (wr->flags & SEND_INLINE && wr->inline_len > slot.max_inline))
        return -EINVAL;
    *slot.wr = *wr;
    if (wr->flags & SEND_INLINE) {
        if (wr->inline_len)
            memcpy(slot.data, data, wr->inline_len);
    } else if (wr->num_sge) {
        memcpy(slot.sge, sge, wr->num_sge * sizeof(*sge));
    }
    return qp_send_commit(qp);
}

uint32_t qp_send_room(const struct qp *qp)
{
    if (!qp->awake)
        return qp->caps.max_send_wr;
    return qp->caps.max_send_wr - (queue_used(&qp->req->sq) - qp->req->offload_queued);
}
