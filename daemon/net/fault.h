// SPDX-License-Identifier: BSD-2-Clause
/* Fault injection: decides for each packet that a device is about to send whether it is lost, doubled, damaged or late.
 *
 * A pure module: no I/O, no clock, no allocation, no random numbers. The decision is a hash of
 *
 *     seed, source GID, destination GID, destination QP, request or response, PSN, opcode, and how many times this packet
 *     was sent before,
 *
 * so the same seed gives the same faults, whatever the timing, the number of flows or the speed of the machine (the mask
 * excepted, which counts the packets of its flow). The module carries nothing out: the caller drops, sends twice, keeps for
 * later, or flips the bit, as the verdict says, after the ICRC was stored and before the packet reaches a socket or the
 * loopback queue.
 *
 * Which faults: daemon/net/fault_spec.h.
 *
 * Used by one thread: each device has its own. */
#ifndef PUMICE_DAEMON_FAULT_H
#define PUMICE_DAEMON_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/net/fault_spec.h"

/* Names as status and the man pages have them. X(name, what it counts). */
#define FAULT_COUNTERS(X)                                                                                              \
    X(fault_packets, "packets that a fault rule was asked about")                                                      \
    X(fault_dropped, "of these, lost")                                                                                 \
    X(fault_duplicated, "of these, sent twice")                                                                        \
    X(fault_corrupted, "of these, damaged")                                                                            \
    X(fault_delayed, "of these, late by delay or jitter")                                                              \
    X(fault_reordered, "of these, held back to be overtaken")                                                          \
    X(fault_marked, "of these, marked with congestion experienced")

struct fault_counters {
#define X(name, text) uint64_t name; /* text */
    FAULT_COUNTERS(X)
#undef X
};

#define FAULT_SETS 8192 /* of the table of attempts; with FAULT_WAYS entries each */
#define FAULT_WAYS 4
#define FAULT_FLOWS 4096 /* positions in the mask, and flows whose newest packet is known */

struct fault_flow {
    uint32_t tag; /* of the flow's hash; flows that collide take the place from each other */
    uint32_t newest; /* PSN */
};

/* The state of one device. Caller-owned, about 300 KiB; nothing of the tables is touched while no faults are set. */
struct fault {
    struct fault_spec spec;
    uint64_t seed;
    struct fault_counters counters; /* since fault_init */
    uint64_t attempts[FAULT_SETS]
                     [FAULT_WAYS]; /* upper 48 bits: of which packet; lower 16: times sent. Latest used first */
    struct fault_flow flow[FAULT_FLOWS];
    uint64_t forgotten; /* packets sent again that were pushed out of attempts */
    uint8_t mask_at[FAULT_FLOWS]; /* next bit of the mask, by the flow's hash (flows that collide share one) */
};

/* Sets the faults; forgets all counts and attempts. spec is copied. No fini. */
void fault_init(struct fault *f, const struct fault_spec *spec, uint64_t seed);

/* The test to make before anything else: no other cost while faults are off. */
static inline bool fault_on(const struct fault *f)
{
    return f->spec.n != 0;
}

struct fault_pkt {
    const uint8_t *src_gid; /* 16 bytes each */
    const uint8_t *dst_gid;
    uint32_t dest_qpn;
    uint32_t psn;
    uint8_t opcode; /* of the BTH */
};

enum fault_action {
    FAULT_PASS,
    FAULT_DROP,
    FAULT_DUPLICATE, /* send it, and a copy right behind it */
    FAULT_CORRUPT, /* fault_corrupt, then send */
};
struct fault_verdict {
    enum fault_action action;
    uint64_t delay_ns; /* send that much later (with DUPLICATE: both); 0: now. With any action but DROP */
    uint64_t random; /* for fault_corrupt */
    bool ce; /* mark it, whatever else happens to it */
};

/* Decides about one packet, just before it is sent (a retransmission is a new question, with a new answer). Of
 * several faults that strike the same packet one is taken: loss before damage before doubling; delays are added to
 * that.
 *
 * The table of attempts has room for FAULT_SETS * FAULT_WAYS packets. One that was pushed out must not count as never sent
 * before: it would be lost again, each time, if it was lost the first time, and its QP would run out of retries. Such a
 * packet is known by its PSN, which is not newer than its flow's newest; its verdict depends on how many there were
 * before it, and so on the timing. */
void fault_decide(struct fault *f, const struct fault_pkt *pkt, struct fault_verdict *verdict);

/* Flips one bit of the packet p[0 ... len), BTH to ICRC: any but those of the BTH's fifth byte (FECN, BECN,
 * reserved), which the ICRC does not cover. Nothing happens if len is less than a BTH and an ICRC. */
void fault_corrupt(const struct fault_verdict *verdict, uint8_t *p, size_t len);

#endif
