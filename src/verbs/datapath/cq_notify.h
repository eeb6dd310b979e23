// SPDX-License-Identifier: BSD-2-Clause
/* Requesting an event from a CQ (ibv_req_notify_cq).
 *
 * The specification promises an event for the next completion that is added (IBTA 11.4.2.2), so a program polls once
 * more after its request. NICs do more: the doorbell of a request says what was polled, so completions that wait
 * already cause an event, too. Programs that poll, request and sleep rely on that (UCX does). Pumice does the same,
 * with one exception. Most programs fetch an event, request the next one and then poll. They get no second event for
 * the completions that this poll takes. They get one if the poll leaves a completion in the CQ.
 *
 * The library keeps a state for this exception:
 *
 *              an event is fetched            requested, and completions wait
 *        NONE --------------------> FETCHED ---------------------------------> REQUESTED
 *         ^                            |                                           |
 *         |<---------------------------+-------------------------------------------+
 *         |      polled; from REQUESTED: if completions are left, the doorbell asks the daemon for the event
 *         |
 *         |  requested
 *       STALE <------ from any state: polled, completions were taken, and no event is requested
 *
 * A request in state NONE, while completions wait, rings the doorbell at once. In STALE a fetched event changes
 * nothing, because newer completions may have come after it. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_CQ_NOTIFY_H
#define PUMICE_SRC_VERBS_DATAPATH_CQ_NOTIFY_H

#include "src/verbs/objects/cq.h"

enum vb_notify_state {
    VB_NOTIFY_NONE,
    VB_NOTIFY_FETCHED, /* an event was fetched, and nothing was polled since it was sent */
    VB_NOTIFY_REQUESTED, /* after that the next event was requested, while completions waited */
    /* Completions were taken while no event was requested: the next fetched event is an old one. */
    VB_NOTIFY_STALE,
};

/* ibv_req_notify_cq, a function that a context points to. 0, or EIO in a forked child. */
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* An event of the CQ was fetched. An event from before the last request changes nothing. */
static inline void vb_cq_notify_fetched(struct vb_cq *cq)
{
    unsigned char state = VB_NOTIFY_NONE;
    atomic_compare_exchange_strong(&cq->notify_state, &state, VB_NOTIFY_FETCHED);
}

/* The part of vb_cq_notify_polled that is seldom needed. */
void vb_cq_notify_after_poll(struct vb_cq *cq, bool took);

/* The CQ was polled. took: completions were taken. The caller holds its lock. */
static inline void vb_cq_notify_polled(struct vb_cq *cq, bool took)
{
    unsigned char state = atomic_load_explicit(&cq->notify_state, memory_order_relaxed);
    if (state == VB_NOTIFY_STALE || cq->doorbell >= PM_DOORBELLS)
        return;
    if (state != VB_NOTIFY_NONE || (took && atomic_load_explicit(&cq->page->arm, memory_order_relaxed) == PM_ARM_NONE))
        vb_cq_notify_after_poll(cq, took);
}

#endif
