// SPDX-License-Identifier: BSD-2-Clause
/* Fault injection: decides for each packet, just before a device sends it, whether it is lost, duplicated, corrupted, cut
 * short, marked or delayed; and for each message that arrives, whether the device refuses it for lack of a receive request.
 *
 * This is a pure module: no I/O, no clock, no allocation, no random numbers. The decision is a hash of
 *
 *     seed, source GID, destination GID, destination QP, request or response, PSN, opcode, number of earlier sends of
 *     this packet.
 *
 * So the same seed gives the same faults. Timing, the number of flows and the speed of the machine do not matter. Three
 * limits of rules differ: `mask` counts the packets of a flow, #N, after and count those of the device, and from, until and
 * for depend on the time. daemon/fault/fault_match.h has these.
 *
 * The module does not apply faults. The caller follows the verdict: it drops the packet, sends it twice, keeps it for
 * later, cuts it, or flips the bit. It flips the bit or cuts after the ICRC was stored. Packets that stay inside the device have no
 * ICRC, so the caller drops a corrupted one or a cut one. When the rules say that the link is down, the caller drops the
 * packets that arrive, and tells its programs. When they say that the daemon ends, it ends.
 *
 * daemon/fault/fault_spec.h describes the faults.
 *
 * Each device has its own struct fault, used by one thread. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_H
#define PUMICE_DAEMON_FAULT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/fault/fault_match.h"
#include "daemon/fault/fault_pkt.h"
#include "daemon/fault/fault_spec.h"

/* Names as in status and the man pages. X(name, what it counts). */
#define FAULT_COUNTERS(X)                                                                                              \
    X(fault_packets, "packets that a fault rule was asked about")                                                      \
    X(fault_dropped, "of these, lost")                                                                                 \
    X(fault_duplicated, "of these, sent twice")                                                                        \
    X(fault_corrupted, "of these, damaged")                                                                            \
    X(fault_truncated, "of these, cut short")                                                                          \
    X(fault_delayed, "of these, late by delay or jitter")                                                              \
    X(fault_reordered, "of these, held back to be overtaken")                                                          \
    X(fault_marked, "of these, marked with congestion experienced")                                                    \
    X(fault_refused, "received messages that a fault answered with RNR NAK")                                           \
    X(fault_link_dropped, "packets sent or received that were lost because a fault took the link down")

struct fault_counters {
#define X(name, text) uint64_t name; /* text */
    FAULT_COUNTERS(X)
#undef X
};

#define FAULT_SETS 8192 /* sets in the table of attempts; each has FAULT_WAYS entries */
#define FAULT_WAYS 4
#define FAULT_FLOWS 4096 /* entries of mask_at and of flow */

struct fault_flow {
    uint32_t tag; /* part of the flow's hash; of flows that collide, the last one is kept */
    uint32_t newest; /* the newest PSN of the flow */
};

/* The state of one device, owned by the caller, about 320 KiB. The tables are not touched while no faults are set. */
struct fault {
    struct fault_match rules;
    uint64_t seed;
    struct fault_counters counters; /* since fault_init */
    /* Upper 48 bits: tag of the packet. Lower 16 bits: how often it was sent. The latest used is first. */
    uint64_t attempts[FAULT_SETS][FAULT_WAYS];
    struct fault_flow flow[FAULT_FLOWS];
    /* Counts retransmitted packets whose entry was pushed out of `attempts`. */
    uint64_t forgotten;
    /* Next bit of the mask, by the flow's hash. Flows that collide share one. */
    uint8_t mask_at[FAULT_FLOWS];
};

/* Sets the faults and clears all counts and attempts. spec is copied. start: when its times begin, at the latest now. There
 * is no fini. */
void fault_init(struct fault *f, const struct fault_spec *spec, uint64_t seed, uint64_t start, uint64_t now);

/* Test this before anything else. While faults are off there is no other cost. */
static inline bool fault_on(const struct fault *f)
{
    return f->rules.spec.n != 0;
}

/* When fault_advance has something to do. UINT64_MAX: never. */
static inline uint64_t fault_deadline(const struct fault *f)
{
    return fault_on(f) ? f->rules.next_change : UINT64_MAX;
}
/* Follows the rules for the link and for the daemon up to this time. */
void fault_advance(struct fault *f, uint64_t now);
/* A fault has taken the link down. */
static inline bool fault_link_down(const struct fault *f)
{
    return fault_on(f) && f->rules.link_down;
}
/* A fault says that the daemon ends at once. */
static inline bool fault_daemon_ends(const struct fault *f)
{
    return fault_on(f) && f->rules.daemon_ends;
}

/* The finalizer of SplitMix64: every bit of the input changes every bit of the output with probability one half. */
uint64_t fault_mix(uint64_t x);

enum fault_action {
    FAULT_PASS,
    FAULT_DROP,
    FAULT_DUPLICATE, /* send it, and a copy directly behind it */
    FAULT_CORRUPT, /* call fault_corrupt, then send */
    FAULT_TRUNCATE, /* send only the first fault_truncated_len bytes */
};
struct fault_verdict {
    enum fault_action action;
    /* Send the packet this much later (with FAULT_DUPLICATE: both copies). 0: now. Not used with FAULT_DROP. */
    uint64_t delay_ns;
    uint64_t random; /* for fault_corrupt and fault_truncated_len; at most INT64_MAX */
    bool ce; /* mark it with CE, in addition to any other fault */
};

/* Decides about one packet just before it is sent. A retransmission gets a decision of its own. If several faults hit
 * the same packet, one is taken: loss before corruption before truncation before duplication. A delay is added to that.
 *
 * The table of attempts holds FAULT_SETS * FAULT_WAYS packets. A packet that was pushed out of the table must not
 * count as never sent before: if it was lost the first time, it would be lost again each time, and its QP would run
 * out of retries. Such a packet is recognized by its PSN, which is not newer than the newest of its flow. Its verdict
 * depends on how many such packets there were before it, and so on the timing. */
void fault_decide(struct fault *f, const struct fault_pkt *pkt, uint64_t now, struct fault_verdict *verdict);

/* Decides about a packet that arrives and is the next of its QP: must the responder answer it with RNR NAK, as if it had no receive request? Only
 * the packet that needs a request is refused: the first of a SEND, and the last of a WRITE with immediate data. */
bool fault_refuses(struct fault *f, const struct fault_pkt *pkt, uint64_t now);
/* Test this before fault_refuses. */
static inline bool fault_receives(const struct fault *f)
{
    return fault_on(f) && f->rules.receives;
}

/* Flips one bit of the packet p[0 … len), BTH to ICRC. It never flips a bit of the BTH's fifth byte (FECN, BECN,
 * reserved), which the ICRC does not cover. Does nothing if len is less than a BTH and an ICRC. */
void fault_corrupt(const struct fault_verdict *verdict, uint8_t *p, size_t len);

/* The bytes that are left of a packet of len bytes, BTH to ICRC: fewer than len, and at least a BTH and four more. len itself
 * if it has not more than those. */
size_t fault_truncated_len(const struct fault_verdict *verdict, size_t len);

#endif
