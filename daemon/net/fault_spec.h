// SPDX-License-Identifier: BSD-2-Clause
/* Fault specifications: the text that users write, and the rules that it describes.
 *
 * The text (`--fault`, `pumice fault`):
 *
 *     SPEC  := RULE { ';' RULE }        the first rule that matches a packet decides alone; at most FAULT_RULES_MAX rules
 *     RULE  := NAME=VALUE { ',' NAME=VALUE }
 *
 *     loss=P        P of the packets are lost
 *     ack-loss=P    replaces loss for ACKs, NAKs and atomic ACKs
 *     dup=P         P of the packets are sent twice
 *     corrupt=P     P of the packets have one bit flipped, at a place that the ICRC covers
 *     reorder=P     P of the packets are held back by reorder-by, so that later ones overtake them
 *     reorder-by=T  default 100us
 *     delay=T       every packet is delayed by T
 *     jitter=T      and by a further time between 0 and T, different for each packet (so packets overtake each other)
 *     ce=P          P of the packets are marked as a congested router would (ECN congestion experienced, CE)
 *     drop=CLASS    short for only=CLASS,loss=100%
 *     mask=0xM      64 bits, rotating: packet n of a flow is lost if bit n mod 64 is set (counted from the least significant;
 *                   retransmissions count, too)
 *   and, to limit the rule to some packets:
 *     peer=ADDRESS  those to this IPv4 or IPv6 address
 *     qpn=N         those to this QP number
 *     only=CLASS    those of this class
 *
 *   CLASS is request, response, ack, send, write, read (requests and responses) or atomic; cm for all messages of
 *   connection management, or one of them: REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR. With #N
 *   behind it, the rule is for the Nth packet of the class only, counted by the device since the faults were set:
 *   drop=REP#1. It counts the packets that its other limits (peer, qpn) allow, also those that an earlier rule decides
 *   about. Retransmissions count, too.
 *
 *   P is a percentage with its sign: 1%, 0.05%, 100%. T is a number with ns, us, ms or s; at most 10s. An empty
 *   specification means no faults. */
#ifndef PUMICE_DAEMON_NET_FAULT_SPEC_H
#define PUMICE_DAEMON_NET_FAULT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES_MAX 8
#define FAULT_WHY_MAX 256 /* enough for every text of fault_parse */
#define FAULT_DELAY_MAX_NS 10000000000ull /* limit of each of delay, jitter and reorder-by */

/* The packets that a rule may be limited to (only=). */
enum fault_class {
    FAULT_ANY,
    FAULT_REQUEST,
    FAULT_RESPONSE,
    FAULT_ACK, /* ACKs, NAKs, atomic ACKs */
    FAULT_SEND,
    FAULT_WRITE,
    FAULT_READ, /* READ requests and responses */
    FAULT_ATOMIC, /* atomics and their ACKs */
    FAULT_CM, /* messages of connection management */
};

/* Probabilities are multiples of 2^-32; FAULT_ALWAYS is 100 %. */
#define FAULT_ALWAYS (1ull << 32)

struct fault_rule {
    uint8_t peer[16]; /* valid if has_peer; IPv4 as ::ffff:a.b.c.d */
    uint32_t qpn; /* valid if has_qpn */
    bool has_peer, has_qpn;
    bool has_ack_loss; /* ack_loss replaces loss for ACKs */
    uint8_t only; /* enum fault_class */
    uint16_t message; /* FAULT_CM: enum cm_attribute; 0: all messages */
    uint32_t nth; /* only the nth packet that the rule covers; 0: all of them */
    uint64_t loss, ack_loss, dup, corrupt, reorder, ce; /* probabilities */
    uint64_t reorder_ns, delay_ns, jitter_ns;
    uint64_t mask;
};

struct fault_spec {
    unsigned n; /* number of rules; 0: no faults */
    struct fault_rule rule[FAULT_RULES_MAX];
};

/* Parses text as described above. Returns 0 or -EINVAL. On -EINVAL, *spec has no rules, and why[why_len] holds a
 * sentence that names the wrong part and says what is accepted. why may be NULL if why_len is 0. */
int fault_parse(const char *text, struct fault_spec *spec, char *why, size_t why_len);

#endif
