// SPDX-License-Identifier: BSD-2-Clause
/* Requests of shared receive queues: posting them, and their end. */
#include <errno.h>

#include "src/verbs/base/ops.h"
#include "src/verbs/datapath/post.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/objects/tm.h"
#include "src/verbs/shim/fork.h"

static struct vb_srq_req *req_of(struct vb_srq *srq, uint32_t wqe_index)
{
    return (struct vb_srq_req *)(srq->reqs + wqe_index * srq->req_size);
}

/* Writes one request at the tail; 0 or errno value. The ring has a free slot whenever there is a free cookie: see
 * pm_srq_page. */
static int put(struct vb_srq *srq, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
        return EINVAL;
    if (srq->outstanding >= srq->max_wr)
        return ENOMEM;
    uint32_t wqe_index = srq->free;
    struct vb_srq_req *r = req_of(srq, wqe_index);
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
        while (wr && (rc = put(srq, wr)) == 0)
            wr = wr->next;
        if (srq->tail != before && ring_publish_srq(srq->page, srq->tail) && ring_doorbell(c->page, srq->doorbell))
            vb_wake(c);
        pthread_mutex_unlock(&srq->lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}

void vb_scatter(const struct pm_sge *sge, uint32_t num, const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < num && len; i++) {
        uint32_t part = sge[i].length < len ? sge[i].length : len;
        memcpy((void *)(uintptr_t)sge[i].addr, data, part);
        data += part;
        len -= part;
    }
}

static void put_free(struct vb_srq *srq, uint32_t wqe_index)
{
    req_of(srq, wqe_index)->next = srq->free;
    srq->free = wqe_index;
    srq->outstanding--;
}

void vb_srq_retire(struct vb_srq *srq, uint32_t wqe_index, const uint8_t *data, uint32_t len)
{
    struct vb_srq_req *r = wqe_index < srq->capacity ? req_of(srq, wqe_index) : NULL;
    if (r && (r->next == VB_SRQ_OUT || r->next == VB_SRQ_REPORTED)) {
        if (len)
            vb_scatter(r->sge, r->num_sge, data, len);
        put_free(srq, wqe_index);
    }
}

/* Those that have a completion in the CQ. Nobody takes one of this SRQ's from there now, since that needs its lock; where others' are
 * purged, this SRQ's move only towards where the loop goes. */
static void sift_cq(struct vb_srq *srq, const struct vb_cq *cq)
{
    /* Acquire: pairs with the poller's release. */
    uint32_t i = atomic_load_explicit(&cq->page->consumer, memory_order_acquire);
    const struct pm_cqe *e;
    if (cq->overruns)
        i = ring_overrun(cq->entries, cq->mask, i);
    for (; (e = ring_cqe(cq->entries, cq->mask, i)); i++)
        if (e->srq == srq->srq.handle && e->slot < srq->capacity && req_of(srq, e->slot)->next == VB_SRQ_OUT)
            req_of(srq, e->slot)->next = VB_SRQ_REPORTED;
}

/* Its queue pairs may have several CQs, and who polls one of them must not flush what was completed in another. Once is enough: the
 * daemon completes nothing any more. */
static void sift(struct vb_srq *srq)
{
    struct vb_context *c = vb_ctx(srq->srq.context);
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < VB_TABLE_SIZE; i++) {
        for (uint32_t j = 0; atomic_load(&c->cqs.root[i]) && j < VB_TABLE_SIZE; j++) {
            const struct vb_cq *cq = vb_table_get(&c->cqs, i << VB_TABLE_BITS | j);
            if (cq)
                sift_cq(srq, cq);
        }
    }
    pthread_mutex_unlock(&c->lock);
    srq->sifted = true;
}

bool vb_srq_flush_next(struct vb_srq *srq, struct vb_flushed *out)
{
    pthread_mutex_lock(&srq->lock);
    bool found = srq->tm && vb_tm_flush_next(srq, out);
    if (!srq->cq && !srq->sifted)
        sift(srq);
    for (uint32_t n = srq->outstanding ? srq->capacity : 0; n > 0 && !found; n--) {
        uint32_t wqe_index = srq->flush_at;
        srq->flush_at = wqe_index + 1 < srq->capacity ? wqe_index + 1 : 0;
        found = req_of(srq, wqe_index)->next == VB_SRQ_OUT;
        if (found) {
            *out = (struct vb_flushed){req_of(srq, wqe_index)->wr_id, IBV_WC_RECV};
            put_free(srq, wqe_index);
        }
    }
    pthread_mutex_unlock(&srq->lock);
    return found;
}
