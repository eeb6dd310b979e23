// SPDX-License-Identifier: BSD-2-Clause
/* Arming a CQ: asking for an event (ibv_req_notify_cq).
 *
 * The specification promises an event for the next completion that is added (IBTA 11.4.2.2), so a program polls once more
 * after it has armed. NICs go further, since the doorbell by which a CQ is armed says what was polled: completions that wait
 * already make an event, too. Programs that poll, arm and sleep rely on that (UCX does). Here it is the same, except that a
 * program that fetches an event, arms and then polls, as most do, is spared a second event about what it is about to poll:
 * it gets one if that poll leaves something behind. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_CQ_NOTIFY_H
#define PUMICE_SRC_VERBS_DATAPATH_CQ_NOTIFY_H

#include "src/verbs/objects/cq.h"

/* What is known of the completions that wait when a CQ is armed. */
enum vb_notify_state {
    VB_NOTIFY_NONE,
    VB_NOTIFY_FETCHED, /* an event was fetched, and nothing polled since it was sent */
    VB_NOTIFY_ARMED, /* and the CQ was armed since, while completions waited */
    VB_NOTIFY_STALE, /* completions were polled while the CQ was not armed: the event that is fetched next says nothing of the others */
};

/* An event for the CQ was fetched. One from before the CQ was armed takes nothing back. */
static inline void vb_cq_notify_fetched(struct vb_cq *cq)
{
    unsigned char notify_state = VB_NOTIFY_NONE;
    atomic_compare_exchange_strong(&cq->notify_state, &notify_state, VB_NOTIFY_FETCHED);
}

/* ibv_req_notify_cq, a function that a context points to. 0, or EIO in a forked child. */
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Behind vb_cq_notify_polled. */
void vb_cq_notify_look(struct vb_cq *cq, bool took);

/* The CQ was polled, and something taken or not. The caller holds its lock. */
static inline void vb_cq_notify_polled(struct vb_cq *cq, bool took)
{
    unsigned char notify_state = atomic_load_explicit(&cq->notify_state, memory_order_relaxed);
    if (notify_state == VB_NOTIFY_STALE || cq->doorbell >= PM_DOORBELLS)
        return;
    if (notify_state != VB_NOTIFY_NONE ||
        (took && atomic_load_explicit(&cq->page->arm, memory_order_relaxed) == PM_ARM_NONE))
        vb_cq_notify_look(cq, took);
}

#endif
