// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault_match.h"

#include <string.h>

#include "daemon/fault/fault_class.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

/* --- limits ------------------------------------------------------------------------------------ */

/* rnr is for packets that arrive: their peer is the sender. */
static bool covers(const struct fault_rule *r, const struct fault_pkt *p)
{
    const uint8_t *peer = r->effect == FAULT_ON_RECEIVING ? p->src_gid : p->dst_gid;

    if (r->has_peer && memcmp(r->peer, peer, sizeof(r->peer)) != 0)
        return false;
    if ((r->has_qpn && r->qpn != p->dest_qpn) || (r->has_src_qpn && r->src_qpn != p->src_qpn))
        return false;
    return fault_class_has(r, p);
}

/* Does a packet start the rule, and not the time alone? */
static bool starts_by_packet(const struct fault_rule *r)
{
    return r->after || r->count || r->nth_message || r->has_peer || r->has_qpn || r->has_src_qpn ||
           r->only != FAULT_ANY;
}

static bool counts(const struct fault_rule *r)
{
    return r->after || r->count || r->nth_message || r->for_ns;
}

/* Is the packet one of the message that the rule is for? Each packet of the message is so once. Its retransmissions are
 * not, because their PSNs were seen. */
static bool is_of_message(struct fault_rule_state *s, const struct fault_rule *r, const struct fault_pkt *p,
                          const struct fault_place *place)
{
    uint16_t props = op_table[p->opcode].properties;
    bool begins = props & (OP_IS_FIRST | OP_IS_ONLY), ends = props & (OP_IS_LAST | OP_IS_ONLY);

    if (begins && place->is_new && !fault_is_ack(p->opcode) && ++s->covered == r->nth_message) {
        s->in_message = true;
        s->flow = place->flow;
        s->next_psn = p->psn;
    }
    if (!s->in_message || s->flow != place->flow || ((p->psn - s->next_psn) & PSN_MASK) > PSN_MASK / 2)
        return false;
    s->next_psn = (p->psn + 1) & PSN_MASK;
    s->in_message = !ends;
    return true;
}

/* Counts a packet that the rule covers. Is the rule for it? */
static bool is_in_turn(struct fault_rule_state *s, const struct fault_rule *r, const struct fault_pkt *p,
                       const struct fault_place *place, uint64_t time)
{
    if (r->nth_message)
        return is_of_message(s, r, p, place);
    if (s->covered < UINT64_MAX)
        s->covered++;
    if (s->covered <= r->after)
        return false;
    if (!s->open) {
        s->open = true;
        s->opened_at = time;
    }
    if (r->for_ns && time - s->opened_at >= r->for_ns)
        return false;
    return !r->count || s->covered - r->after <= r->count;
}

/* --- link and daemon --------------------------------------------------------------------------- */

/* The times between which the rule is in force, if no further packet comes. False: it is not, and will not be. */
static bool span_of(const struct fault_match *r, unsigned i, uint64_t *from, uint64_t *until)
{
    const struct fault_rule *rule = &r->spec.rule[i];
    const struct fault_rule_state *s = &r->state[i];

    *from = rule->from_ns;
    *until = rule->until_ns;
    if (!starts_by_packet(rule))
        return true;
    if (!s->open)
        return false;
    *from = s->opened_at;
    if (rule->for_ns && *until - *from > rule->for_ns)
        *until = *from + rule->for_ns;
    return true;
}

static void note_change(struct fault_match *r, uint64_t time, uint64_t at)
{
    if (at > time && at != FAULT_NO_END && r->start + at < r->next_change)
        r->next_change = r->start + at;
}

void fault_match_advance(struct fault_match *r, uint64_t now)
{
    uint64_t time = now - r->start, from, until;
    bool decided = false;

    r->next_change = UINT64_MAX;
    r->link_down = false;
    for (unsigned i = 0; i < r->spec.n; i++) {
        const struct fault_rule *rule = &r->spec.rule[i];

        if ((rule->effect != FAULT_ON_LINK && rule->effect != FAULT_ON_DAEMON) || !span_of(r, i, &from, &until))
            continue;
        note_change(r, time, from);
        if (rule->effect == FAULT_ON_LINK)
            note_change(r, time, until);
        if (time < from || time >= until)
            continue;
        if (rule->effect == FAULT_ON_DAEMON)
            r->daemon_ends = true;
        else if (!decided)
            r->link_down = !rule->link_up;
        decided |= rule->effect == FAULT_ON_LINK;
    }
}

/* --- rules ------------------------------------------------------------------------------------- */

void fault_match_init(struct fault_match *r, const struct fault_spec *spec, uint64_t start, uint64_t now)
{
    r->spec = *spec;
    r->start = start < now ? start : now;
    r->daemon_ends = r->receives = r->has_messages = false;
    memset(r->state, 0, sizeof(r->state));
    for (unsigned i = 0; i < spec->n; i++) {
        r->receives |= spec->rule[i].effect == FAULT_ON_RECEIVING;
        r->has_messages |= spec->rule[i].nth_message != 0;
    }
    fault_match_advance(r, now);
}

/* The packet is one of those that rule i is for. True: the rule decides about the packet. */
static bool applies(struct fault_match *r, unsigned i, enum fault_effect effect, const struct fault_pkt *p,
                    const struct fault_place *place, uint64_t now)
{
    const struct fault_rule *rule = &r->spec.rule[i];
    struct fault_rule_state *s = &r->state[i];
    bool was_open = s->open;

    if (!is_in_turn(s, rule, p, place, now - r->start))
        return false;
    if (rule->effect == effect)
        return true;
    /* A rule for the link or the daemon starts. A message starts it only once. */
    s->open = true;
    if (!was_open) {
        s->opened_at = now - r->start;
        fault_match_advance(r, now);
    }
    return false;
}

const struct fault_rule *fault_match_find(struct fault_match *r, enum fault_effect effect, const struct fault_pkt *p,
                                          const struct fault_place *place, uint64_t now)
{
    const struct fault_rule *found = NULL;
    uint64_t time = now - r->start;

    for (unsigned i = 0; i < r->spec.n; i++) {
        const struct fault_rule *rule = &r->spec.rule[i];
        bool other = rule->effect != effect;

        if (other && (effect != FAULT_ON_SENDING || rule->effect == FAULT_ON_RECEIVING || !starts_by_packet(rule) ||
                      r->state[i].open))
            continue;
        if ((found && !other && !counts(rule)) || time < rule->from_ns || time >= rule->until_ns || !covers(rule, p))
            continue;
        if (applies(r, i, effect, p, place, now) && !found)
            found = rule;
    }
    return found;
}
