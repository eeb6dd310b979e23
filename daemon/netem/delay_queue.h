// SPDX-License-Identifier: BSD-2-Clause
/* A bounded queue of packet copies that fault injection delays or an emulated network carries, ordered by the time when
 * each is due. It is used only while one of them is on. */
#ifndef PUMICE_DAEMON_NETEM_DELAY_QUEUE_H
#define PUMICE_DAEMON_NETEM_DELAY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/engine.h"
#include "daemon/fault/fault.h"
#include "daemon/netem/netem_trip.h"
#include "pumice/abi_decisions.h"

#define DELAY_QUEUE_PACKETS 16384u
#define DELAY_QUEUE_BYTES (64u << 20)

struct delay_queue_entry {
    uint64_t due;
    uint64_t order; /* order of arrival, for packets that are due at the same time */
    struct fault_verdict verdict; /* the other faults of this packet */
    struct netem_trip trip; /* the links that are left */
    struct pm_decision made; /* for a recording, while there are links left */
    struct av av; /* a copy, because the QP may be gone when the packet is due */
    /* As the engine made it. av and off are no longer valid. */
    struct tx_pkt pkt;
    uint8_t data[];
};
struct delay_queue {
    struct delay_queue_entry **heap; /* NULL until first used; the earliest is heap[0] */
    unsigned n;
    uint64_t bytes;
    uint64_t next_order;
};

/* Keeps a copy of the packet pkt, whose bytes are p[0 … pkt->len), until `due`. Returns the entry, for what else is known
 * of the packet. NULL: too many packets wait. */
struct delay_queue_entry *delay_queue_push(struct delay_queue *q, const struct tx_pkt *pkt, const uint8_t *p,
                                           const struct fault_verdict *verdict, const struct netem_trip *trip,
                                           uint64_t due);
/* Puts an entry that delay_queue_pop has returned back, until `due`. */
void delay_queue_put_back(struct delay_queue *q, struct delay_queue_entry *e, uint64_t due);
/* Removes and returns the earliest packet if it is due. NULL: none is due. The caller frees it. */
struct delay_queue_entry *delay_queue_pop(struct delay_queue *q, uint64_t now);
/* The time when the next packet is due. NEVER: the queue is empty. */
static inline uint64_t delay_queue_deadline(const struct delay_queue *q)
{
    return q->n ? q->heap[0]->due : NEVER;
}
void delay_queue_fini(struct delay_queue *q); /* drops all waiting packets; the queue can be used again */

#endif
