// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/fault/fault.h"

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
    DRAW_TRUNCATE,
    DRAW_LENGTH,
    DRAW_RNR,
};

uint64_t fault_mix(uint64_t x)
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
    return fault_mix(fault_mix(h ^ w[0]) ^ w[1]);
}

/* Where the packet stands in its flow. */
enum age {
    OLD, /* it may have been sent before */
    NEWEST, /* it is newer than all earlier packets */
    UNKNOWN, /* it is the first packet of an unknown flow */
};

static enum age age_of(struct fault *f, uint64_t flow, uint32_t psn)
{
    struct fault_flow *known = &f->flow[flow % FAULT_FLOWS];
    uint32_t tag = (uint32_t)(flow >> 32);
    enum age age = known->tag != tag ? UNKNOWN : ((psn - known->newest) & PSN_MASK) - 1 < PSN_MASK / 2 ? NEWEST : OLD;

    if (age != OLD)
        *known = (struct fault_flow){.tag = tag, .newest = psn};
    return age;
}

/* Returns how many times the packet with this hash was sent before, and counts this time. If the table may have
 * forgotten the packet, returns a number that no other packet gets. Packets that follow each other have sets that follow
 * each other, because then the processor fetches them in time. */
static uint64_t count_attempt(struct fault *f, enum age age, uint64_t flow, uint32_t psn, uint64_t hash)
{
    uint64_t *set = f->attempts[(flow + psn) % FAULT_SETS];
    uint64_t tag = hash & ~(uint64_t)0xffff;
    bool pushes_out = set[FAULT_WAYS - 1] != 0;
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
    return known || age == NEWEST || !pushes_out ? before : ++f->forgotten << 16;
}

static bool strikes(uint64_t hash, enum draw draw, uint64_t probability)
{
    return fault_mix(hash ^ draw) >> 32 < probability;
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
        ns += fault_mix(hash ^ DRAW_JITTER) % (r->jitter_ns + 1);
    if (ns)
        f->counters.fault_delayed++;
    if (strikes(hash, DRAW_REORDER, r->reorder)) {
        f->counters.fault_reordered++;
        ns += r->reorder_ns;
    }
    return ns;
}

void fault_init(struct fault *f, const struct fault_spec *spec, uint64_t seed, uint64_t start, uint64_t now)
{
    bool was_on = fault_on(f);

    fault_match_init(&f->rules, spec, start, now);
    f->seed = seed;
    memset(&f->counters, 0, sizeof(f->counters));
    if (was_on || spec->n) {
        memset(f->attempts, 0, sizeof(f->attempts));
        memset(f->flow, 0, sizeof(f->flow));
        memset(f->mask_at, 0, sizeof(f->mask_at));
        f->forgotten = 0;
    }
}

void fault_advance(struct fault *f, uint64_t now)
{
    fault_match_advance(&f->rules, now);
}

/* salt: tells flows apart that have the same ends. */
static uint64_t flow_of(const struct fault *f, const struct fault_pkt *p, uint64_t salt)
{
    uint64_t responding = op_table[p->opcode].properties & OP_IS_RESPONSE ? 1 : 0;

    return fault_mix(mix_gid(mix_gid(fault_mix(f->seed), p->src_gid), p->dst_gid) ^
                     (p->dest_qpn | responding << 32 | salt << 33));
}

static uint64_t hash_of(uint64_t flow, const struct fault_pkt *p)
{
    return fault_mix(flow ^ ((p->psn & PSN_MASK) | (uint64_t)p->opcode << 24));
}

/* The faults of a packet that the rule decides about. */
static void strike(struct fault *f, const struct fault_rule *r, const struct fault_pkt *p, uint64_t flow, uint64_t hash,
                   struct fault_verdict *v)
{
    uint64_t loss = r->has_ack_loss && fault_is_ack(p->opcode) ? r->ack_loss : r->loss;

    if ((r->mask && masked(f, r, flow)) || strikes(hash, DRAW_LOSS, loss)) {
        f->counters.fault_dropped++;
        v->action = FAULT_DROP;
        return;
    }
    if (strikes(hash, DRAW_CORRUPT, r->corrupt)) {
        f->counters.fault_corrupted++;
        v->action = FAULT_CORRUPT;
        v->random = fault_mix(hash ^ DRAW_BIT) & INT64_MAX;
    } else if (strikes(hash, DRAW_TRUNCATE, r->truncate)) {
        f->counters.fault_truncated++;
        v->action = FAULT_TRUNCATE;
        v->random = fault_mix(hash ^ DRAW_LENGTH) & INT64_MAX;
    } else if (strikes(hash, DRAW_DUP, r->dup)) {
        f->counters.fault_duplicated++;
        v->action = FAULT_DUPLICATE;
    }
    v->delay_ns = lateness(f, r, hash);
    v->ce = strikes(hash, DRAW_CE, r->ce);
    f->counters.fault_marked += v->ce;
}

void fault_decide(struct fault *f, const struct fault_pkt *p, uint64_t now, struct fault_verdict *v)
{
    uint64_t flow = flow_of(f, p, 0);
    struct fault_place place = {.flow = flow};
    bool known = false;
    enum age age = OLD;

    *v = (struct fault_verdict){.action = FAULT_PASS};
    if (f->rules.has_messages) {
        age = age_of(f, flow, p->psn & PSN_MASK);
        known = true;
        /* Datagrams of several senders share a flow, and none is repeated. */
        place.is_new = age != OLD || (p->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD;
    }
    const struct fault_rule *r = fault_match_find(&f->rules, FAULT_ON_SENDING, p, &place, now);
    if (f->rules.link_down || f->rules.daemon_ends) {
        f->counters.fault_link_dropped++;
        v->action = FAULT_DROP;
        return;
    }
    if (!r)
        return;
    f->counters.fault_packets++;
    uint64_t hash = hash_of(flow, p);
    if (!known)
        age = age_of(f, flow, p->psn & PSN_MASK);
    strike(f, r, p, flow, fault_mix(hash + count_attempt(f, age, flow, p->psn, hash)), v);
}

/* Does the packet make the responder look for a receive request, in a service that has RNR NAKs? */
static bool may_be_refused(const struct fault_pkt *p)
{
    uint16_t props = op_table[p->opcode].properties;
    uint8_t service = p->opcode & OP_SERVICE_MASK;

    return (service == OP_SERVICE_RC || service == OP_SERVICE_XRC) && props & OP_NEEDS_RECV &&
           (props & OP_IS_WRITE || props & (OP_IS_FIRST | OP_IS_ONLY));
}

bool fault_refuses(struct fault *f, const struct fault_pkt *p, uint64_t now)
{
    if (!may_be_refused(p))
        return false;
    /* A packet that stays inside the device was already counted in the flow of those that leave. */
    uint64_t flow = flow_of(f, p, 1);
    enum age age = age_of(f, flow, p->psn & PSN_MASK);
    struct fault_place place = {.flow = flow, .is_new = age != OLD};
    const struct fault_rule *r = fault_match_find(&f->rules, FAULT_ON_RECEIVING, p, &place, now);

    if (!r)
        return false;
    f->counters.fault_packets++;
    uint64_t hash = hash_of(flow, p);
    bool refused = strikes(fault_mix(hash + count_attempt(f, age, flow, p->psn, hash)), DRAW_RNR, r->rnr);
    f->counters.fault_refused += refused;
    return refused;
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

size_t fault_truncated_len(const struct fault_verdict *v, size_t len)
{
    const size_t least = BTH_LEN + ICRC_LEN;

    return len <= least ? len : least + (size_t)(v->random % (len - least));
}
