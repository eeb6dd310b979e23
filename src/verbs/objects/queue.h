// SPDX-License-Identifier: BSD-2-Clause
/* A send queue or a receive queue of a QP: a ring in memory that the daemon reads. Indexes run freely modulo 2^32. */
#ifndef PUMICE_SRC_VERBS_OBJECTS_QUEUE_H
#define PUMICE_SRC_VERBS_OBJECTS_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_queue {
    pthread_mutex_t lock; /* of the tail, and of the slots from the tail on */
    uint8_t *ring;
    uint32_t mask; /* slots - 1 */
    uint32_t stride; /* bytes per slot */
    uint32_t max_wr; /* requests that may be outstanding */
    uint32_t max_sge; /* per request */
    uint32_t tail; /* index of the next request */
    /* Requests before this index are done and polled. The poller stores it with release order after its last look at
     * the slots. The poster loads it with acquire order before it writes them again. */
    _Alignas(64) _Atomic uint32_t head;
};

/* Does the queue have a free slot at index next? Acquire: pairs with the poller's release of head. */
static inline bool vb_queue_room(const struct vb_queue *q, uint32_t next)
{
    return next - atomic_load_explicit(&q->head, memory_order_acquire) < q->max_wr;
}

#endif
