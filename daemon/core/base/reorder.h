// SPDX-License-Identifier: BSD-2-Clause
/* The reorder queue of a QP: packets that came before an earlier one, kept until that one has come. Then they are taken
 * in as if the network had kept their order, so nothing else needs to know of them.
 *
 * The memory is a pool of the engine with slots of one size. A queue may take as many slots as are still free. So one
 * queue gets half of the pool at most, and a few QPs that lose many packets leave slots for others. */
#ifndef PUMICE_DAEMON_CORE_BASE_REORDER_H
#define PUMICE_DAEMON_CORE_BASE_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/base/list.h"
#include "daemon/core/base/psn.h"

struct held_packet {
    struct list_node link; /* in reorder_queue.packets, or in a list of the pool */
    struct pkt p; /* its payload is behind this struct */
    uint32_t end; /* PSN behind the PSNs that it takes: a READ request takes one for each response */
};
struct reorder_pool {
    uint8_t *mem;
    uint32_t payload; /* bytes of payload that a slot has room for */
    uint32_t slots, untouched; /* slots from this index on were never used */
    uint32_t free; /* slots that are not in use, untouched ones included */
    struct list_node unused; /* touched slots that are free */
    /* Slots whose packet was taken in. Writes to client memory may be deferred to the end of the batch, and come from
     * there (base/mem_ops.h). */
    struct list_node spent;
};
struct reorder_queue {
    struct list_node packets; /* in the order of PSNs; all are behind the expected one */
    uint32_t count;
};

/* Bytes of a slot for packets with so much payload. */
size_t reorder_slot_size(uint32_t payload);
/* mem: room for `slots` slots, zeroed and aligned. */
void reorder_pool_init(struct reorder_pool *pool, uint8_t *mem, uint32_t slots, uint32_t payload);
/* All deferred writes were carried out: spent slots are free again. */
void reorder_reuse(struct reorder_pool *pool);

enum reorder_result {
    REORDER_HELD, /* it fills a gap, or continues the newest packets */
    REORDER_GAP, /* it is held, and packets are missing between it and those before it */
    REORDER_TWICE, /* the same packet is held already */
    REORDER_NO_ROOM,
};
/* Copies a packet into the queue. psns: number of PSNs that it takes. expected: the oldest missing PSN; the packet is
 * behind it. */
enum reorder_result reorder_hold(struct reorder_pool *pool, struct reorder_queue *q, const struct pkt *p, uint32_t psns,
                                 uint32_t expected);
/* How many packets a queue may hold as long as no other one takes more. */
static inline uint32_t reorder_room(const struct reorder_pool *pool, const struct reorder_queue *q)
{
    return (pool->free + q->count) / 2;
}
/* The oldest packet of the queue, which is not empty. */
static inline struct held_packet *reorder_first(const struct reorder_queue *q)
{
    return list_entry(q->packets.next, struct held_packet, link);
}
/* The newest packet of the queue, which is not empty. */
static inline struct held_packet *reorder_newest(const struct reorder_queue *q)
{
    return list_entry(q->packets.prev, struct held_packet, link);
}
/* Would there be room for another packet in place of the newest one? */
static inline bool reorder_newest_makes_room(const struct reorder_pool *pool, const struct reorder_queue *q)
{
    return q->count && q->count < pool->free + 2;
}
/* Removes the newest packet, which nobody has taken in. */
void reorder_discard_newest(struct reorder_pool *pool, struct reorder_queue *q);
/* Removes the oldest packet. It stays readable until the end of the batch. */
void reorder_drop_first(struct reorder_pool *pool, struct reorder_queue *q);
void reorder_clear(struct reorder_pool *pool, struct reorder_queue *q);

#endif
