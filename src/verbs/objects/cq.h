// SPDX-License-Identifier: BSD-2-Clause
/* A completion queue: its state, its locks, and the lists of the QPs and SRQs whose completions come to it. The
 * application owns it from ibv_create_cq to ibv_destroy_cq (control/create_cq.h). */
#ifndef PUMICE_SRC_VERBS_OBJECTS_CQ_H
#define PUMICE_SRC_VERBS_OBJECTS_CQ_H

#include "src/verbs/objects/qp.h"
#include "src/verbs/session/context.h"

struct vb_srq;

struct vb_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    pthread_mutex_t lock; /* protects all fields below that are neither atomic nor event counts */
    bool unlocked; /* IBV_CREATE_CQ_ATTR_SINGLE_THREADED: the application serialises, the lock is not taken */
    bool extended; /* made by ibv_create_cq_ex */
    /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the daemon may overwrite entries that were not read. */
    bool overruns;
    /* Taken by ibv_req_notify_cq instead of lock, since a program may ask for an event while it polls. The fields from
     * page to mask are replaced under lock, notify_lock and the lock of the context. */
    pthread_mutex_t notify_lock;
    struct pm_cq_page *page; /* shared with the daemon */
    struct pm_cqe *entries;
    size_t size; /* bytes mapped at page */
    uint32_t mask; /* slots - 1 */
    /* The client rings it when the daemon shall send an event for completions that wait. PM_DOORBELLS: the CQ has no
     * channel. */
    uint32_t doorbell;
    _Atomic unsigned char notify_state; /* enum vb_notify_state of datapath/cq_notify.h */
    uint32_t consumer; /* index of the next completion to read */
    /* Extended polling: the completion that the read functions return fields of; without its data. */
    struct pm_cqe now;
    struct vb_cq_link *senders, *receivers; /* QPs whose send or receive completions come here */
    /* SRQs of XRC and of tag matching whose completions come here, linked by next_of_cq. */
    struct vb_srq *srqs;
    uint32_t comp_events, async_events; /* delivered; under the lock of the context */
    struct vb_poll_queue polled; /* the threads that poll it */
};

static inline struct vb_cq *vb_cq(struct ibv_cq *c)
{
    return VB_OF(struct vb_cq, cq, c);
}
static inline struct vb_cq *vb_cq_ex(struct ibv_cq_ex *c)
{
    return VB_OF(struct vb_cq, ex, c);
}

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

/* Locks both CQs of a QP, the one at the lower address first. They may be the same, or NULL. */
void vb_cq_lock_pair(struct vb_cq *a, struct vb_cq *b);
void vb_cq_unlock_pair(struct vb_cq *a, struct vb_cq *b);

/* Makes the completions of qp come to its CQs. The caller holds both locks. */
void vb_cq_attach(struct vb_qp *qp);
/* Ends that. No completion of qp may wait in its CQs any more. The caller holds both locks. */
void vb_cq_detach(struct vb_qp *qp);
/* Removes the waiting completions of qp from its CQs, and returns its requests of an SRQ to that SRQ. The caller holds
 * both locks. */
void vb_cq_purge(struct vb_qp *qp);
/* Removes the waiting completions of requests of the SRQ with this handle. The caller holds the lock. */
void vb_cq_purge_srq(struct vb_cq *cq, uint32_t srq);

#endif
