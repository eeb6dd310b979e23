// SPDX-License-Identifier: BSD-2-Clause
/* Which rule of a fault specification is in force: by the packet, by the time, and by the packets before it. Also the state
 * of the link and the end of the daemon, which follow from the time alone or from a packet.
 *
 * The module is pure: time is an argument. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_MATCH_H
#define PUMICE_DAEMON_FAULT_FAULT_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fault/fault_pkt.h"
#include "daemon/fault/fault_spec.h"

struct fault_rule_state {
    uint64_t covered; /* packets so far that the rule covers, or messages */
    uint64_t opened_at; /* when `after` packets had passed; valid if open */
    bool open;
    /* nth_message: the message is under way in this flow, and these are the PSNs that it has not had yet. */
    bool in_message;
    uint64_t flow;
    uint32_t next_psn;
};

struct fault_match {
    struct fault_spec spec;
    struct fault_rule_state state[FAULT_RULES_MAX];
    uint64_t start; /* when the faults were set */
    uint64_t next_change; /* when fault_match_advance has something to do; UINT64_MAX: never */
    bool link_down;
    bool daemon_ends;
    bool receives; /* a rule is for packets that arrive */
    bool has_messages; /* a rule has nth_message */
};

/* The place of a packet in its flow. Only for rules with nth_message. */
struct fault_place {
    uint64_t flow; /* a hash */
    bool is_new; /* the packet was not sent before */
};

/* Copies the specification. start: when its times begin, not after now. */
void fault_match_init(struct fault_match *r, const struct fault_spec *spec, uint64_t start, uint64_t now);

/* Sets link_down and daemon_ends for this time. */
void fault_match_advance(struct fault_match *r, uint64_t now);

/* The rule with this effect that decides about the packet; NULL: none. Counts the packet for all rules with this effect
 * that count. With FAULT_ON_SENDING, a rule for the link or the daemon may set link_down or daemon_ends. */
const struct fault_rule *fault_match_find(struct fault_match *r, enum fault_effect effect, const struct fault_pkt *p,
                                          const struct fault_place *place, uint64_t now);

#endif
