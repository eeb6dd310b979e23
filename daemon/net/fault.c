// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/fault.h"

#include <string.h>

#include "wire/bth.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

/* Independent draws from one hash. */
enum draw {
    DRAW_LOSS = 1,
    DRAW_CORRUPT,
    DRAW_DUP,
    DRAW_REORDER,
    DRAW_JITTER,
    DRAW_BIT,
    DRAW_CE,
};

/* The finalizer of SplitMix64: every bit of the input changes every bit of the output with probability one half. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static uint64_t mix_gid(uint64_t h, const uint8_t gid[16])
{
    uint64_t w[2];

    memcpy(w, gid, sizeof(w));
    return mix(mix(h ^ w[0]) ^ w[1]);
}

static bool is_ack(uint8_t opcode)
{
    uint8_t operation = opcode & OP_OPERATION_MASK;

    return (op_table[opcode].properties & OP_IS_RESPONSE) && (operation == OP_ACK || operation == OP_ATOMIC_ACK);
}

static bool is_class(const struct fault_pkt *p, const struct fault_rule *r)
{
    uint16_t prop = op_table[p->opcode].properties;

    switch ((enum fault_class)r->only) {
    case FAULT_ANY:
        return true;
    case FAULT_REQUEST:
        return prop & OP_IS_REQUEST;
    case FAULT_RESPONSE:
        return prop & OP_IS_RESPONSE;
    case FAULT_ACK:
        return is_ack(p->opcode);
    case FAULT_SEND:
        return prop & OP_IS_SEND;
    case FAULT_WRITE:
        return prop & OP_IS_WRITE;
    case FAULT_READ:
        return prop & OP_IS_READ;
    case FAULT_ATOMIC:
        return prop & OP_IS_ATOMIC;
    case FAULT_CM:
        return p->cm_attribute && (!r->message || r->message == p->cm_attribute);
    }
    return false;
}

static bool covers(const struct fault_rule *r, const struct fault_pkt *p)
{
    if (r->has_peer && memcmp(r->peer, p->dst_gid, sizeof(r->peer)) != 0)
        return false;
    if (r->has_qpn && r->qpn != p->dest_qpn)
        return false;
    return is_class(p, r);
}

/* The rule that decides about the packet. Counts the packet for all rules with nth. */
static const struct fault_rule *rule_for(struct fault *f, const struct fault_pkt *p)
{
    const struct fault_rule *found = NULL;

    for (unsigned i = 0; i < f->spec.n; i++) {
        const struct fault_rule *r = &f->spec.rule[i];

        if ((found && !r->nth) || !covers(r, p))
            continue;
        if ((!r->nth || ++f->covered[i] == r->nth) && !found)
            found = r;
    }
    return found;
}

/* Is the packet newer than all earlier packets of its flow? False for the first packet of an unknown flow. */
static bool is_newest(struct fault *f, uint64_t flow, uint32_t psn)
{
    struct fault_flow *known = &f->flow[flow % FAULT_FLOWS];
    uint32_t tag = (uint32_t)(flow >> 32);
    bool newest = known->tag == tag && ((psn - known->newest) & PSN_MASK) - 1 < PSN_MASK / 2;

    if (newest || known->tag != tag)
        *known = (struct fault_flow){.tag = tag, .newest = psn};
    return newest;
}

/* Returns how many times the packet with this hash was sent before, and counts this time. If the table may have
 * forgotten the packet, returns a number that no other packet gets. */
static uint64_t count_attempt(struct fault *f, uint64_t flow, uint32_t psn, uint64_t hash)
{
    uint64_t *set = f->attempts[hash % FAULT_SETS];
    uint64_t tag = hash & ~(uint64_t)0xffff; /* the lower 13 bits choose the set; the upper 48 bits are the tag */
    bool newest = is_newest(f, flow, psn), pushes_out = set[FAULT_WAYS - 1] != 0;
    uint64_t entry = tag;
    unsigned way;

    for (way = 0; way < FAULT_WAYS - 1; way++)
        if ((set[way] & ~(uint64_t)0xffff) == tag)
            break;
    /* The last way holds either this packet or the one to push out. */
    bool known = (set[way] & ~(uint64_t)0xffff) == tag;
    if (known)
        entry = set[way];
    memmove(&set[1], &set[0], way * sizeof(set[0]));

    uint16_t before = (uint16_t)entry;
    set[0] = before == UINT16_MAX ? entry : entry + 1;
    return known || newest || !pushes_out ? before : ++f->forgotten << 16;
}

static bool strikes(uint64_t hash, enum draw draw, uint64_t probability)
{
    return mix(hash ^ draw) >> 32 < probability;
}

static bool masked(struct fault *f, const struct fault_rule *r, uint64_t flow)
{
    uint8_t *at = &f->mask_at[flow % FAULT_FLOWS];
    bool hit = r->mask >> *at & 1;

    *at = (uint8_t)((*at + 1) % 64);
    return hit;
}

static uint64_t lateness(struct fault *f, const struct fault_rule *r, uint64_t hash)
{
    uint64_t ns = r->delay_ns;

    if (r->jitter_ns)
        ns += mix(hash ^ DRAW_JITTER) % (r->jitter_ns + 1);
    if (ns)
        f->counters.fault_delayed++;
    if (strikes(hash, DRAW_REORDER, r->reorder)) {
        f->counters.fault_reordered++;
        ns += r->reorder_ns;
    }
    return ns;
}

void fault_init(struct fault *f, const struct fault_spec *spec, uint64_t seed)
{
    bool was_on = fault_on(f);

    f->spec = *spec;
    f->seed = seed;
    memset(&f->counters, 0, sizeof(f->counters));
    memset(f->covered, 0, sizeof(f->covered));
    if (was_on || spec->n) {
        memset(f->attempts, 0, sizeof(f->attempts));
        memset(f->flow, 0, sizeof(f->flow));
        memset(f->mask_at, 0, sizeof(f->mask_at));
        f->forgotten = 0;
    }
}

void fault_decide(struct fault *f, const struct fault_pkt *p, struct fault_verdict *v)
{
    const struct fault_rule *r = rule_for(f, p);
    uint64_t responding = op_table[p->opcode].properties & OP_IS_RESPONSE ? 1 : 0;

    *v = (struct fault_verdict){.action = FAULT_PASS};
    if (!r)
        return;
    f->counters.fault_packets++;

    uint64_t flow = mix(mix_gid(mix_gid(mix(f->seed), p->src_gid), p->dst_gid) ^ (p->dest_qpn | responding << 32));
    uint64_t hash = mix(flow ^ ((p->psn & PSN_MASK) | (uint64_t)p->opcode << 24));
    uint64_t loss = r->has_ack_loss && is_ack(p->opcode) ? r->ack_loss : r->loss;

    hash = mix(hash + count_attempt(f, flow, p->psn & PSN_MASK, hash));
    if ((r->mask && masked(f, r, flow)) || strikes(hash, DRAW_LOSS, loss)) {
        f->counters.fault_dropped++;
        v->action = FAULT_DROP;
        return;
    }
    if (strikes(hash, DRAW_CORRUPT, r->corrupt)) {
        f->counters.fault_corrupted++;
        v->action = FAULT_CORRUPT;
        v->random = mix(hash ^ DRAW_BIT);
    } else if (strikes(hash, DRAW_DUP, r->dup)) {
        f->counters.fault_duplicated++;
        v->action = FAULT_DUPLICATE;
    }
    v->delay_ns = lateness(f, r, hash);
    v->ce = strikes(hash, DRAW_CE, r->ce);
    f->counters.fault_marked += v->ce;
}

void fault_corrupt(const struct fault_verdict *v, uint8_t *p, size_t len)
{
    if (len < BTH_LEN + ICRC_LEN)
        return;

    size_t byte = (size_t)(v->random >> 3) % (len - 1);

    if (byte >= BTH_UNCOVERED_BYTE)
        byte++;
    p[byte] ^= (uint8_t)(1u << (v->random & 7));
}
