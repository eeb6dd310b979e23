// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/cq_notify.h"

#include <errno.h>

#include "src/verbs/session/context.h"

/* Does a completion wait for which the request wants an event? The caller holds one of the locks under which page and
 * entries are replaced. If another thread polls meanwhile, the program may get an event too many. */
static bool completion_waits(const struct vb_cq *cq, bool solicited_only)
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

/* Asks the daemon to send the requested event. */
static void ring_for_event(struct vb_cq *cq)
{
    if (cq->doorbell < PM_DOORBELLS)
        vb_doorbell(vb_ctx(cq->cq.context), cq->doorbell);
}

int vb_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct vb_cq *cq = vb_cq(ibcq);
    if (!vb_owned(vb_ctx(ibcq->context)))
        return EIO;
    /* Not the lock of the CQ: the caller may be between ibv_start_poll and ibv_end_poll. */
    pthread_mutex_lock(&cq->notify_lock);
    unsigned char state = VB_NOTIFY_STALE;
    atomic_compare_exchange_strong(&cq->notify_state, &state, VB_NOTIFY_NONE);
    ring_request_notify(cq->page, solicited_only);
    if (completion_waits(cq, solicited_only)) {
        state = VB_NOTIFY_FETCHED;
        if (!atomic_compare_exchange_strong(&cq->notify_state, &state, VB_NOTIFY_REQUESTED) && state == VB_NOTIFY_NONE)
            ring_for_event(cq);
    }
    pthread_mutex_unlock(&cq->notify_lock);
    return 0;
}

void vb_cq_notify_after_poll(struct vb_cq *cq, bool took)
{
    uint32_t requested = atomic_load(&cq->page->arm);
    bool stale = took && requested == PM_ARM_NONE;
    if (atomic_exchange(&cq->notify_state, stale ? VB_NOTIFY_STALE : VB_NOTIFY_NONE) != VB_NOTIFY_REQUESTED)
        return;
    requested = atomic_load(&cq->page->arm);
    if (requested != PM_ARM_NONE && completion_waits(cq, requested == PM_ARM_SOLICITED))
        ring_for_event(cq);
}
