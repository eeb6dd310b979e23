// SPDX-License-Identifier: BSD-2-Clause
/* Queues of private copies of work requests: rings of fixed-size entries, in memory that the owner of a QP or SRQ
 * provides. */
#ifndef PUMICE_DAEMON_CORE_BASE_WQE_QUEUE_H
#define PUMICE_DAEMON_CORE_BASE_WQE_QUEUE_H

#include "daemon/core/base/types.h"

#define QUEUE_MAX_WR 32768u /* requests per queue */

struct recv_wqe {
    struct recv_wr wr;
    struct sge sge[]; /* [wr.num_sge] */
};
/* A ring of work requests. head and tail are free-running; queue_at masks them. */
struct queue {
    uint8_t *base;
    uint32_t mask;
    uint32_t stride; /* bytes of an entry */
    uint32_t depth; /* entries that may be in use, at most mask + 1 */
    uint32_t head, tail;
};
static inline void *queue_at(const struct queue *q, uint32_t index)
{
    return q->base + (size_t)(index & q->mask) * q->stride;
}
static inline uint32_t queue_used(const struct queue *q)
{
    return q->tail - q->head;
}

static inline uint32_t pow2_at_least(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}
static inline uint32_t round8(size_t n)
{
    return (uint32_t)((n + 7) & ~(size_t)7);
}

/* Size of an entry of a receive queue with max_sge SGEs per request, in bytes. */
static inline uint32_t recv_stride(uint32_t max_sge)
{
    return round8(sizeof(struct recv_wqe) + max_sge * sizeof(struct sge));
}
/* Bytes of memory that a queue takes, a multiple of 64; 0 if depth is 0. */
static inline size_t queue_bytes(uint32_t depth, uint32_t stride)
{
    return depth ? (((size_t)pow2_at_least(depth) * stride + 63) & ~(size_t)63) : 0;
}
static inline void queue_init(struct queue *q, uint8_t *base, uint32_t depth, uint32_t stride)
{
    *q = (struct queue){.base = base, .mask = depth ? pow2_at_least(depth) - 1 : 0, .stride = stride, .depth = depth};
}

#endif
