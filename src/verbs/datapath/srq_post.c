// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/srq_post.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/base/sge.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/context.h"
#include "src/verbs/unkind/recv_buffers.h"

/* Writes one request at the tail. Returns 0 or an errno value. If there is a free WQE index, the ring has a free slot:
 * see pm_srq_page. */
static int put(struct vb_context *c, struct vb_srq *srq, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
        return EINVAL;
    if (srq->outstanding >= srq->max_wr)
        return ENOMEM;
    uint32_t wqe_index = srq->free;
    struct vb_srq_req *r = vb_srq_req(srq, wqe_index);
    struct pm_recv_wqe *w = ring_slot(srq->ring, srq->stride, srq->mask, srq->tail);
    srq->free = r->next;
    r->next = VB_SRQ_OUT;
    r->num_sge = (uint32_t)wr->num_sge;
    r->wr_id = wr->wr_id;
    w->wr_id = wr->wr_id;
    w->num_sge = (uint32_t)wr->num_sge;
    w->wqe_index = wqe_index;
    if (wr->num_sge) {
        memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
        memcpy(w + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct pm_sge));
        if (__builtin_expect(c->caps.unkind, 0))
            vb_unkind_srq_posted(srq, wqe_index);
    }
    srq->tail++;
    srq->outstanding++;
    return 0;
}

int vb_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct vb_srq *srq = vb_srq(ibsrq);
    struct vb_context *c = vb_ctx(ibsrq->context);
    int rc = vb_owned(c) ? 0 : EIO;
    if (rc == 0) {
        pthread_mutex_lock(&srq->lock);
        uint32_t before = srq->tail;
        while (wr && (rc = put(c, srq, wr)) == 0)
            wr = wr->next;
        if (srq->tail != before && ring_publish_srq(srq->page, srq->tail))
            vb_doorbell(c, srq->doorbell);
        pthread_mutex_unlock(&srq->lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}
