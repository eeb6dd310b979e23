// SPDX-License-Identifier: BSD-2-Clause
/* Arming a CQ: asking for an event (ibv_req_notify_cq).
 *
 * The specification promises an event for the next completion that is added (IBTA 11.4.2.2), so a program polls once more
 * after it has armed. NICs go further, since the doorbell by which a CQ is armed says what was polled: completions that wait
 * already make an event, too. Programs that poll, arm and sleep rely on that (UCX does). Here it is the same, except that a
 * program that fetches an event, arms and then polls, as most do, is spared a second event about what it is about to poll:
 * it gets one if that poll leaves something behind. */
#ifndef VERBS_ARM_H
#define VERBS_ARM_H

#include "objects.h"

/* What is known of the completions that wait when a CQ is armed. */
enum vb_told {
    VB_TOLD_NOTHING,
    VB_TOLD, /* an event was fetched, and nothing polled since */
    VB_TOLD_ARMED, /* and the CQ was armed since, while completions waited */
};

/* An event for the CQ was fetched. */
static inline void vb_arm_told(struct vb_cq *cq)
{
    atomic_store_explicit(&cq->told, VB_TOLD, memory_order_relaxed);
}

/* Behind vb_arm_polled. */
void vb_arm_look(struct vb_cq *cq);

/* The CQ was polled, perhaps not empty. The caller holds its lock. */
static inline void vb_arm_polled(struct vb_cq *cq)
{
    if (__builtin_expect(atomic_load_explicit(&cq->told, memory_order_relaxed) != VB_TOLD_NOTHING, 0))
        vb_arm_look(cq);
}

#endif
