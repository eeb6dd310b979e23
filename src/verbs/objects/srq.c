// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/objects/srq.h"

#include "src/verbs/base/sge.h"

void vb_srq_put_free(struct vb_srq *srq, uint32_t wqe_index)
{
    vb_srq_req(srq, wqe_index)->next = srq->free;
    srq->free = wqe_index;
    srq->outstanding--;
}

void vb_srq_retire(struct vb_srq *srq, uint32_t wqe_index, const uint8_t *data, uint32_t len)
{
    struct vb_srq_req *r = wqe_index < srq->capacity ? vb_srq_req(srq, wqe_index) : NULL;
    if (r && (r->next == VB_SRQ_OUT || r->next == VB_SRQ_REPORTED)) {
        if (len)
            vb_scatter(r->sge, r->num_sge, data, len);
        vb_srq_put_free(srq, wqe_index);
    }
}
