// SPDX-License-Identifier: BSD-2-Clause
/* The client's side of the rings in pumice/abi.h: pure functions on shared memory, without locks, system calls or
 * objects, so that they can be tested against a thread that plays the daemon.
 *
 * Each function says which lock of the caller protects it. Indexes run freely modulo 2^32. */
#ifndef PUMICE_SRC_VERBS_BASE_RING_H
#define PUMICE_SRC_VERBS_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "pumice/abi.h"

/* Address of the entry with free-running index i, in a ring of mask + 1 entries of stride bytes. */
static inline void *ring_slot(void *ring, uint32_t stride, uint32_t mask, uint32_t i)
{
    return (uint8_t *)ring + (size_t)stride * (i & mask);
}

/* Makes all send requests before index tail visible to the daemon. Under the send queue's lock.
 * Release: pairs with the daemon's acquire load of sq_tail, so that it sees the entries it counts. */
static inline void ring_publish_send(struct pm_qp_page *page, uint32_t tail)
{
    atomic_store_explicit(&page->sq_tail, tail, memory_order_release);
}

/* Likewise for receive requests, under the receive queue's lock. True: the daemon wants a doorbell for them (it
 * flushes them). Sequentially consistent both: either the daemon, which sets rq_notify before it reads rq_tail, sees
 * this tail, or we see its wish. */
static inline bool ring_publish_recv(struct pm_qp_page *page, uint32_t tail)
{
    atomic_store(&page->rq_tail, tail);
    return atomic_load(&page->rq_notify) != 0;
}

/* Likewise for the requests of an SRQ, under its lock. */
static inline bool ring_publish_srq(struct pm_srq_page *page, uint32_t tail)
{
    atomic_store(&page->tail, tail);
    return atomic_load(&page->notify) != 0;
}

/* Tells the daemon to look at the queues behind doorbell d. True: it sleeps and this caller must write its eventfd.
 * No lock. Sequentially consistent: the bits must be visible before `sleeping` is read, because the daemon sets
 * `sleeping` before it looks at the bits a last time. */
static inline bool ring_doorbell(struct pm_session_page *page, uint32_t d)
{
    uint32_t word = d / 64;
    atomic_fetch_or(&page->bits[word], UINT64_C(1) << (d % 64));
    atomic_fetch_or(&page->summary[word / 64], UINT64_C(1) << (word % 64));
    return atomic_load(&page->sleeping) == 1 && atomic_exchange(&page->sleeping, 0) == 1;
}

/* The completion with index i, or NULL while there is none. Under the CQ's lock.
 * Acquire: pairs with the daemon's release store of seq, its last store to the entry. */
static inline struct pm_cqe *ring_cqe(struct pm_cqe *entries, uint32_t mask, uint32_t i)
{
    struct pm_cqe *e = &entries[i & mask];
    return __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) == i + 1 ? e : NULL;
}

/* For a CQ whose overruns are to be ignored: where to go on if the daemon has overwritten the entry of index i, else
 * i. Acquire as above. */
static inline uint32_t ring_overrun(struct pm_cqe *entries, uint32_t mask, uint32_t i)
{
    uint32_t seq = __atomic_load_n(&entries[i & mask].seq, __ATOMIC_ACQUIRE);
    return seq != 0 && (int32_t)(seq - (i + 1)) > 0 ? seq - 1 : i;
}

/* Gives the entries before index consumer back to the daemon. Under the CQ's lock.
 * Release: our reads of the entries come before the daemon may overwrite them; pairs with its acquire load. */
static inline void ring_consume(struct pm_cq_page *page, uint32_t consumer)
{
    atomic_store_explicit(&page->consumer, consumer, memory_order_release);
}

/* Asks for an event. A wish for any completion is not weakened by one for solicited completions only. No lock.
 * The fence: the caller polls once more afterwards, and loads seq with acquire order only; either that poll sees a
 * completion or the daemon, which has a fence between its store of seq and its load of arm, sees the wish. */
static inline void ring_request_notify(struct pm_cq_page *page, bool solicited_only)
{
    uint32_t none = PM_ARM_NONE;
    if (solicited_only)
        atomic_compare_exchange_strong(&page->arm, &none, PM_ARM_SOLICITED);
    else
        atomic_store_explicit(&page->arm, PM_ARM_ANY, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Which completions ring_purge removes. */
struct ring_match {
    uint32_t qpn; /* those of this QP, but not those of SRQs that match tags: they stay */
    uint32_t srq; /* not 0: instead, those of requests of the SRQ with this handle */
    void (*gone)(void *arg, const struct pm_cqe *e); /* called for each that is removed; NULL: nothing is */
    void *arg;
};

/* Removes matching completions that wait at [consumer, …) and closes the gaps towards the newest one; returns
 * the new consumer index, which the caller publishes. Under the CQ's lock. The daemon writes only behind the newest
 * entry, so nothing races. */
static inline uint32_t ring_purge(struct pm_cqe *entries, uint32_t mask, uint32_t consumer, const struct ring_match *m)
{
    uint32_t live = 0, gone = 0;
    while (live <= mask && ring_cqe(entries, mask, consumer + live))
        live++;
    for (uint32_t i = consumer + live; i-- != consumer;) {
        struct pm_cqe *e = &entries[i & mask];
        if (m->srq ? e->srq == m->srq : e->qpn == m->qpn && !(e->kind & PM_CQE_TM)) {
            gone++;
            if (m->gone)
                m->gone(m->arg, e);
        } else if (gone) {
            struct pm_cqe *to = &entries[(i + gone) & mask];
            /* Not seq, which is right there: who looks without the lock must not miss a completion that moves. */
            memcpy(to, e, offsetof(struct pm_cqe, seq));
            memcpy(to->data, e->data, sizeof(to->data));
        }
    }
    return consumer + gone;
}

#endif
