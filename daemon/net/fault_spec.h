// SPDX-License-Identifier: BSD-2-Clause
/* Fault specifications: their text, as users write it, and the rules that it stands for.
 *
 * The text (`--fault`, `pumice fault`)
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
 */
#ifndef PUMICE_DAEMON_FAULT_SPEC_H
#define PUMICE_DAEMON_FAULT_SPEC_H

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

#endif
