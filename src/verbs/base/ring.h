// SPDX-License-Identifier: BSD-2-Clause
/* The client's side of the rings in pumice/abi.h: functions on shared memory. They take no lock, make no system call
 * and use no objects of the library. So a test can run them against a thread that acts as the daemon.
 *
 * Each function says which lock its caller holds. Indexes run freely modulo 2^32. */
#ifndef PUMICE_SRC_VERBS_BASE_RING_H
#define PUMICE_SRC_VERBS_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "pumice/abi_rings.h"

/* The address of the entry of index i in a ring of mask + 1 entries of stride bytes. */
static inline void *ring_slot(void *ring, uint32_t stride, uint32_t mask, uint32_t i)
{
    return (uint8_t *)ring + (size_t)stride * (i & mask);
}

/* Shows all send requests before index tail to the daemon. The caller holds the lock of the send queue.
 * Release: pairs with the acquire load of sq_tail by the daemon, so that the daemon sees the entries it counts. */
static inline void ring_publish_send(struct pm_qp_page *page, uint32_t tail)
{
    atomic_store_explicit(&page->sq_tail, tail, memory_order_release);
}

/* Shows all receive requests before index tail to the daemon. Returns true if the daemon wants a doorbell for them,
 * because it flushes them. The caller holds the lock of the receive queue. Both accesses are sequentially consistent.
 * The daemon sets rq_notify before it reads rq_tail. So either the daemon sees this tail, or the client sees
 * rq_notify. */
static inline bool ring_publish_recv(struct pm_qp_page *page, uint32_t tail)
{
    atomic_store(&page->rq_tail, tail);
    return atomic_load(&page->rq_notify) != 0;
}

/* Shows all requests of an SRQ before index tail to the daemon. Its result and its memory order are those of
 * ring_publish_recv. The caller holds the lock of the SRQ. */
static inline bool ring_publish_srq(struct pm_srq_page *page, uint32_t tail)
{
    atomic_store(&page->tail, tail);
    return atomic_load(&page->notify) != 0;
}

/* Tells the daemon to look at the queues behind doorbell d. Returns true if the daemon sleeps and this caller must
 * write its eventfd. No lock. Sequentially consistent: the daemon sets `sleeping` before its last look at the bits. So
 * the bits must be visible before this thread reads `sleeping`. */
static inline bool ring_doorbell(struct pm_session_page *page, uint32_t d)
{
    uint32_t word = d / 64;
    atomic_fetch_or(&page->bits[word], UINT64_C(1) << (d % 64));
    atomic_fetch_or(&page->summary[word / 64], UINT64_C(1) << (word % 64));
    return atomic_load(&page->sleeping) == 1 && atomic_exchange(&page->sleeping, 0) == 1;
}

/* The completion of index i, or NULL while there is none. The caller holds the lock of the CQ.
 * Acquire: pairs with the release store of seq by the daemon, which is its last store to the entry. */
static inline struct pm_cqe *ring_cqe(struct pm_cqe *entries, uint32_t mask, uint32_t i)
{
    struct pm_cqe *e = &entries[i & mask];
    return __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) == i + 1 ? e : NULL;
}

/* For a CQ that ignores overruns: the index to go on with if the daemon has overwritten the entry of index i, else i.
 * Acquire: pairs with the release store of seq. */
static inline uint32_t ring_overrun(struct pm_cqe *entries, uint32_t mask, uint32_t i)
{
    uint32_t seq = __atomic_load_n(&entries[i & mask].seq, __ATOMIC_ACQUIRE);
    return seq != 0 && (int32_t)(seq - (i + 1)) > 0 ? seq - 1 : i;
}

/* Gives the entries before index consumer back to the daemon. The caller holds the lock of the CQ. Release: pairs with
 * the acquire load by the daemon, so that the client reads the entries before the daemon overwrites them. */
static inline void ring_consume(struct pm_cq_page *page, uint32_t consumer)
{
    atomic_store_explicit(&page->consumer, consumer, memory_order_release);
}

/* Requests an event. If an event for any completion is requested already, a request for solicited completions only
 * changes nothing. No lock. The fence: the caller polls once more afterwards and loads seq with acquire order only. The
 * daemon has a fence between its store of seq and its load of arm. So either that poll sees a completion, or the daemon
 * sees the request. */
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
    uint32_t qpn; /* the completions of this QP, except those of an SRQ that matches tags */
    uint32_t srq; /* not 0: the completions of requests of the SRQ with this handle instead */
    /* Called for each completion that is removed; NULL: no call. */
    void (*gone)(void *arg, const struct pm_cqe *e);
    void *arg; /* for gone */
};

/* Removes the matching completions from index consumer on, and closes the gaps towards the newest completion. Returns
 * the new consumer index, which the caller publishes. The caller holds the lock of the CQ. The daemon writes only
 * behind the newest entry, so nothing races. */
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
            /* Copies all fields but seq, which is right already. So a thread that looks without the lock finds a valid
             * entry here all the time. */
            memcpy(to, e, offsetof(struct pm_cqe, seq));
            memcpy(to->data, e->data, sizeof(to->data));
        }
    }
    return consumer + gone;
}

#endif
