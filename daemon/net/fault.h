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
 * The specification (`--fault`, `pumice fault`)
 *
 *     SPEC  := RULE { ';' RULE }        the first rule that fits a packet decides about it, alone; at most FAULT_RULES_MAX
 *     RULE  := NAME=VALUE { ',' NAME=VALUE }
 *
 *     loss=P        P of the packets are lost
 *     ack-loss=P    the same for ACKs, NAKs and atomic ACKs, in place of loss
 *     dup=P         P of the packets are sent twice
 *     corrupt=P     P of the packets have one bit flipped, where the ICRC must notice
 *     reorder=P     P of the packets are held back by reorder-by, so that later ones overtake them
 *     reorder-by=T  100us unless given
 *     delay=T       every packet is late by T
 *     jitter=T      and by a further time between 0 and T, different for each packet (so packets overtake each other)
 *     ce=P          P of the packets are marked as a congested router would (ECN congestion experienced, CE)
 *     mask=0xM      64 bits, rotating: packet n of a flow is lost if bit n mod 64 is set (counted from the least significant;
 *                   retransmissions count, too)
 *   and, to limit the rule to some packets:
 *     peer=ADDRESS  those to this IPv4 or IPv6 address
 *     qpn=N         those to this QP number
 *     only=CLASS    request, response, ack, send, write, read or atomic (read: requests and responses)
 *
 *   P is a percentage with its sign: 1%, 0.05%, 100%. T is a number with ns, us, ms or s; at most 10s. An empty
 *   specification means no faults.
 *
 * Used by one thread: each device has its own. */
#ifndef PUMICE_DAEMON_FAULT_H
#define PUMICE_DAEMON_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES_MAX 8
#define FAULT_WHY_MAX 256 /* enough for any text of fault_parse */
#define FAULT_DELAY_MAX_NS 10000000000ull /* of each of delay, jitter and reorder-by */

/* What a rule may be limited to (only=). */
enum fault_class {
    FAULT_ANY,
    FAULT_REQUEST,
    FAULT_RESPONSE,
    FAULT_ACK, /* ACKs, NAKs, atomic ACKs */
    FAULT_SEND,
    FAULT_WRITE,
    FAULT_READ, /* READ requests and responses */
    FAULT_ATOMIC, /* atomics and their ACKs */
};

/* Probabilities are multiples of 2^-32; FAULT_ALWAYS is 100 %. */
#define FAULT_ALWAYS (1ull << 32)

struct fault_rule {
    uint8_t peer[16]; /* meaningful if has_peer; IPv4 as ::ffff:a.b.c.d */
    uint32_t qpn; /* meaningful if has_qpn */
    bool has_peer, has_qpn;
    bool has_ack_loss; /* ack_loss stands in for loss */
    uint8_t only; /* enum fault_class */
    uint64_t loss, ack_loss, dup, corrupt, reorder, ce; /* probabilities */
    uint64_t reorder_ns, delay_ns, jitter_ns;
    uint64_t mask;
};

struct fault_spec {
    unsigned n; /* rules; 0: no faults */
    struct fault_rule rule[FAULT_RULES_MAX];
};

/* Parses text as described above. 0, or -EINVAL: then *spec has no rules, and why, of which there are why_len bytes,
 * holds a sentence that names the offending part and says what would be accepted. why may be NULL if why_len is 0. */
int fault_parse(const char *text, struct fault_spec *spec, char *why, size_t why_len);

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
