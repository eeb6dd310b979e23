// SPDX-License-Identifier: BSD-2-Clause
/* A shared receive queue, and its outstanding requests. The application owns it from ibv_create_srq to ibv_destroy_srq
 * (control/create_srq.h).
 *
 * Requests of an SRQ complete out of order, and a slot of the ring may be used again once the daemon has read it.
 * Therefore each outstanding request has a number, its WQE index. The library keeps the SGEs of the request under that
 * number. The number is free again when the completion of the request was polled. */
#ifndef PUMICE_SRC_VERBS_OBJECTS_SRQ_H
#define PUMICE_SRC_VERBS_OBJECTS_SRQ_H

#include "src/verbs/session/context.h"

struct vb_cq;
struct vb_tm;

/* An outstanding request, as the poller needs it. max_sge SGEs follow. */
struct vb_srq_req {
    /* While the number is free: the next free number, or VB_SRQ_NONE at the end of the list. While the request is
     * outstanding: VB_SRQ_OUT or VB_SRQ_REPORTED. */
    uint32_t next;
    uint32_t num_sge;
    uint64_t wr_id;
    struct pm_sge sge[];
};
#define VB_SRQ_NONE UINT32_MAX
#define VB_SRQ_OUT (UINT32_MAX - 1)
/* The daemon is dead, and completed the request before: a CQ holds the completion. */
#define VB_SRQ_REPORTED (UINT32_MAX - 2)

struct vb_srq {
    struct ibv_srq srq;
    enum ibv_srq_type type;
    uint32_t srqn; /* XRC: its number on the wire */
    struct vb_cq *cq; /* XRC, tag matching: the CQ of its completions; else NULL */
    struct vb_srq *next_of_cq; /* under the lock of the CQ */
    struct vb_tm *tm; /* tag matching: its list (datapath/tm.h); else NULL */
    _Atomic uint32_t users; /* queue pairs that receive from it */
    uint32_t doorbell;
    pthread_mutex_t lock; /* of all fields below, except the event count */
    struct pm_srq_page *page; /* shared with the daemon */
    size_t size; /* bytes mapped at page */
    uint8_t *ring;
    uint32_t mask, stride; /* slots - 1, bytes per slot */
    uint32_t tail; /* index of the next request */
    uint32_t max_wr, max_sge;
    uint32_t outstanding; /* requests that were posted and not polled; at most max_wr */
    uint8_t *reqs; /* capacity requests, see vb_srq_req */
    size_t req_size; /* bytes of each */
    uint32_t capacity; /* WQE indexes that exist: max_wr, or what it was before the SRQ was made smaller */
    uint32_t free; /* first free WQE index */
    /* The daemon is dead, and all requests that it completed are marked VB_SRQ_REPORTED. */
    bool reported_marked;
    uint32_t flush_at; /* the daemon is dead: the WQE index to look at next */
    uint32_t async_events; /* delivered; under the lock of the context */
};

static inline struct vb_srq *vb_srq(struct ibv_srq *s)
{
    return VB_OF(struct vb_srq, srq, s);
}

/* The request with this WQE index, which must be below capacity. Under the lock of the SRQ. */
static inline struct vb_srq_req *vb_srq_req(struct vb_srq *srq, uint32_t wqe_index)
{
    return (struct vb_srq_req *)(srq->reqs + wqe_index * srq->req_size);
}

/* Makes the WQE index of an outstanding request free again. Under the lock of the SRQ. */
void vb_srq_put_free(struct vb_srq *srq, uint32_t wqe_index);

/* Ends the request with this WQE index. Copies len bytes of inline data from its completion to its SGEs (len 0: none),
 * and makes its WQE index free. The caller holds the lock of the SRQ, and must return the CQ entry of the completion
 * before it unlocks. */
void vb_srq_retire(struct vb_srq *srq, uint32_t wqe_index, const uint8_t *data, uint32_t len);

#endif
