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
 *     truncate=P    P of the packets lose a part at their end
 *     reorder=P     P of the packets are held back by reorder-by, so that later ones overtake them
 *     reorder-by=T  default 100us
 *     delay=T       every packet is delayed by T
 *     jitter=T      and by a further time between 0 and T, different for each packet (so packets overtake each other)
 *     ce=P          P of the packets are marked as a congested router would (ECN congestion experienced, CE)
 *     drop=CLASS    short for only=CLASS,loss=100%
 *     mask=0xM      64 bits, rotating: packet n of a flow is lost if bit n mod 64 is set (counted from the least significant;
 *                   retransmissions count, too)
 *   one of these instead, in a rule of its own:
 *     rnr=P         the device answers P of the messages that it receives and that need a receive request with RNR NAK,
 *                   as if there were none
 *     link=down     the port of the device goes down: nothing leaves, and nothing arrives. link=up ends an earlier rule
 *     daemon=killed the daemon ends at once, without any clean-up
 *   to limit the rule to some packets:
 *     peer=ADDRESS  those to this IPv4 or IPv6 address; with rnr, those from it
 *     qpn=N         those to this QP number
 *     src-qpn=N     those that this QP of the device sends
 *     only=CLASS    those of this class (daemon/fault/fault_class.h). #N behind it: the Nth packet of the class only
 *     message=N     those of the Nth message, each once: retransmissions pass
 *   to limit it in time or number:
 *     from=T        since T after the faults were set
 *     until=T       until then
 *     after=N       after N packets that the other limits allow
 *     for=T         for so long
 *     count=N       for so many packets that the other limits allow
 *
 *   drop=REP#1 counts the packets that its other limits allow, also those that an earlier rule decides about. Each device
 *   counts for itself, since the faults were set. Retransmissions count, too. The same holds for after and count.
 *
 *   link and daemon act at the time `from`. If they have a limit to some packets, or after, they act when such a packet is
 *   about to leave. That packet is lost.
 *
 *   P is a percentage with its sign: 1%, 0.05%, 100%. T is a number with ns, us, ms or s. An empty specification means no
 *   faults. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_SPEC_H
#define PUMICE_DAEMON_FAULT_FAULT_SPEC_H

#include <stddef.h>

#include "daemon/fault/fault_rule.h"

#define FAULT_RULES_MAX 64
#define FAULT_WHY_MAX 256 /* enough for every text of fault_parse */

struct fault_spec {
    unsigned n; /* number of rules; 0: no faults */
    struct fault_rule rule[FAULT_RULES_MAX];
};

struct fault_text;
struct str;

/* Parses text as described above. Returns 0 or -EINVAL. On -EINVAL, *spec has no rules, and why[why_len] holds a
 * sentence with the column of the wrong part, that says what is accepted. why may be NULL if why_len is 0. */
int fault_parse(const char *text, struct fault_spec *spec, char *why, size_t why_len);

/* A rule without faults. */
void fault_rule_init(struct fault_rule *r);
/* Parses one rule, a part of the text t, into *r, which fault_rule_init has set. 0, or -EINVAL with a sentence in t->why.
 * fault_rule_finish must follow. */
int fault_rule_parse(const struct fault_text *t, struct str rule, struct fault_rule *r);
/* Completes and checks a rule that is complete. at: the place for errors. */
int fault_rule_finish(const struct fault_text *t, const char *at, struct fault_rule *r);

#endif
