// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/cq_notify.h"

#include <errno.h>

#include "src/verbs/session/fork.h"

/* Whether a completion waits that such a wish is about. page and entries stay: the caller holds one of the locks under
 * which they are replaced. Others may poll meanwhile: then it is an event too many. */
static bool waits(const struct vb_cq *cq, bool solicited_only)
{
    uint32_t i = atomic_load_explicit(&cq->page->consumer, memory_order_relaxed);
    if (cq->overruns)
        i = ring_overrun(cq->entries, cq->mask, i);
    for (uint32_t n = 0; n <= cq->mask; n++, i++) {
        const struct pm_cqe *e = ring_cqe(cq->entries, cq->mask, i);
        if (!e)
            return false;
        if (!solicited_only || e->kind & PM_CQE_SOLICITED || e->status != IBV_WC_SUCCESS)
            return true;
    }
    return false;
}

/* Has the daemon send the event that the CQ is armed for. */
static void ring_for_event(struct vb_cq *cq)
{
    struct vb_context *c = vb_ctx(cq->cq.context);
    if (cq->doorbell < PM_DOORBELLS)
        vb_doorbell(c, cq->doorbell);
}

int vb_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct vb_cq *cq = vb_cq(ibcq);
    if (!vb_owned(vb_ctx(ibcq->context)))
        return EIO;
    pthread_mutex_lock(&cq->notify_lock); /* not the CQ's: the caller may be between ibv_start_poll and ibv_end_poll */
    unsigned char notify_state = VB_NOTIFY_STALE;
    atomic_compare_exchange_strong(&cq->notify_state, &notify_state, VB_NOTIFY_NONE);
    ring_request_notify(cq->page, solicited_only);
    if (waits(cq, solicited_only)) {
        notify_state = VB_NOTIFY_FETCHED;
        if (!atomic_compare_exchange_strong(&cq->notify_state, &notify_state, VB_NOTIFY_ARMED) &&
            notify_state == VB_NOTIFY_NONE)
            ring_for_event(cq);
    }
    pthread_mutex_unlock(&cq->notify_lock);
    return 0;
}

void vb_cq_notify_look(struct vb_cq *cq, bool took)
{
    uint32_t arm = atomic_load(&cq->page->arm);
    if (atomic_exchange(&cq->notify_state, took && arm == PM_ARM_NONE ? VB_NOTIFY_STALE : VB_NOTIFY_NONE) !=
        VB_NOTIFY_ARMED)
        return;
    arm = atomic_load(&cq->page->arm);
    if (arm != PM_ARM_NONE && waits(cq, arm == PM_ARM_SOLICITED))
        ring_for_event(cq);
}
