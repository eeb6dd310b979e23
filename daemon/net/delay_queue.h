// SPDX-License-Identifier: BSD-2-Clause
/* Packets that fault injection holds back: copies, in the order in which they are due. Bounded; touched only while
 * faults are on. */
#ifndef PUMICE_DAEMON_FAULTQ_H
#define PUMICE_DAEMON_FAULTQ_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/engine.h"
#include "daemon/net/fault.h"

#define FAULTQ_PACKETS 4096u
#define FAULTQ_BYTES (16u << 20)

struct delay_queue_entry {
    uint64_t due;
    uint64_t order; /* of arrival, to break ties */
    struct fault_verdict verdict; /* what else is to happen to it */
    struct av av; /* a copy: the QP may be gone by then */
    struct tx_pkt pkt; /* as the engine gave it; av and off mean nothing any more */
    uint8_t data[];
};
struct delay_queue {
    struct delay_queue_entry **heap; /* NULL until first used; the earliest at [0] */
    unsigned n;
    uint64_t bytes;
    uint64_t next_order;
};

/* Keeps a copy of the packet pkt, which is at p[0 ... pkt->len), until `due`. False: too many are waiting. */
bool delay_queue_push(struct delay_queue *q, const struct tx_pkt *pkt, const uint8_t *p,
                      const struct fault_verdict *verdict, uint64_t due);
/* Removes and returns the earliest one that is due, NULL: none. The caller frees it. */
struct delay_queue_entry *delay_queue_pop(struct delay_queue *q, uint64_t now);
/* When the next one is due; NEVER: none. */
static inline uint64_t delay_queue_deadline(const struct delay_queue *q)
{
    return q->n ? q->heap[0]->due : NEVER;
}
void delay_queue_fini(struct delay_queue *q); /* drops what waits; the queue can be used again */

#endif
