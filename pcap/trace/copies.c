// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/copies.h"

#include <stdlib.h>

#include "pcap/pcapng.h"

/* Packets with equal keys may be copies of each other. */
struct key {
    uint32_t src, dst, qpn, psn, icrc;
    uint32_t index; /* of the packet */
    uint8_t opcode;
};

#define ORDER(x, y)                                                                                                    \
    if ((x) != (y))                                                                                                    \
    return (x) < (y) ? -1 : 1

static int by_contents(const struct key *x, const struct key *y)
{
    ORDER(x->src, y->src);
    ORDER(x->dst, y->dst);
    ORDER(x->qpn, y->qpn);
    ORDER(x->psn, y->psn);
    ORDER(x->icrc, y->icrc);
    ORDER(x->opcode, y->opcode);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = by_contents(x, y);

    return order ? order : x->index < y->index ? -1 : 1;
}

/* Which packets of a flow were captured at both ends. */
struct both_ends {
    uint64_t first_ns, last_ns; /* when the first and the newest of them left */
    size_t copies;
};

struct copies {
    struct trace *t;
    struct key *keys; /* of all packets */
    uint32_t *waiting; /* packets of the current group that have no copy yet: all left, or all arrived */
    bool *joined; /* for each packet: it has a copy */
    struct both_ends *ends; /* for each flow */
};

static bool has_both_directions(const struct trace *t)
{
    bool out = false, in = false;

    for (size_t i = 0; i < t->num_packets; i++) {
        out |= t->packets[i].direction == PCAPNG_DIR_OUT;
        in |= t->packets[i].direction == PCAPNG_DIR_IN;
    }
    return out && in;
}

static void join(struct copies *c, uint32_t left, uint32_t arrived)
{
    struct trace_packet *out = &c->t->packets[left], *in = &c->t->packets[arrived];
    struct both_ends *e = &c->ends[out->flow];

    in->marks |= TRACE_COPY;
    c->joined[left] = true;
    if (in->time_ns >= out->time_ns)
        out->arrival_ns = in->time_ns;
    if (!e->copies++ || out->time_ns < e->first_ns)
        e->first_ns = out->time_ns;
    if (out->time_ns > e->last_ns)
        e->last_ns = out->time_ns;
}

/* Joins the copies in a group of equal keys, in the order of time. An arriving packet belongs to the newest packet that
 * left and has no copy yet. If there is none, the clocks of the two ends differ, and it belongs to one that leaves
 * later. */
static void join_group(struct copies *c, const struct key *group, size_t n)
{
    size_t first = 0, end = 0; /* waiting[first ... end) */
    bool arrived = false; /* these have arrived */

    for (size_t i = 0; i < n; i++) {
        const struct trace_packet *p = &c->t->packets[group[i].index];
        bool in = p->direction == PCAPNG_DIR_IN;

        if (p->direction == PCAPNG_DIR_UNKNOWN || p->marks & TRACE_LOST)
            continue;
        if (first == end || in == arrived) {
            arrived = in;
            c->waiting[end++] = group[i].index;
        } else if (in) {
            join(c, c->waiting[--end], group[i].index);
        } else {
            join(c, group[i].index, c->waiting[first++]);
        }
    }
}

/* Marks the packets that left in the time in which copies of the flow arrived, and that have none. */
static void mark_lost(struct copies *c)
{
    for (size_t i = 0; i < c->t->num_packets && !c->t->lost; i++) {
        struct trace_packet *p = &c->t->packets[i];
        const struct both_ends *e = &c->ends[p->flow];

        if (p->direction == PCAPNG_DIR_OUT && e->copies && !c->joined[i] && !(p->marks & TRACE_DAMAGED) &&
            p->time_ns > e->first_ns && p->time_ns < e->last_ns)
            p->marks |= TRACE_LOST;
    }
}

static void merge(struct copies *c)
{
    size_t n = c->t->num_packets;

    for (size_t i = 0; i < n; i++) {
        const struct trace_packet *p = &c->t->packets[i];
        const struct trace_flow_key *key = &c->t->flows[p->flow]->key;

        c->keys[i] = (struct key){key->src, key->dst, key->qpn, (uint32_t)p->psn, p->icrc, (uint32_t)i, p->opcode};
    }
    qsort(c->keys, n, sizeof(*c->keys), by_key);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_contents(&c->keys[i], &c->keys[end]) == 0;)
            end++;
        join_group(c, c->keys + i, end - i);
    }
    mark_lost(c);
}

void copies_merge(struct trace *t)
{
    size_t n = t->num_packets;

    if (!has_both_directions(t))
        return;
    struct copies c = {t, calloc(n, sizeof(*c.keys)), calloc(n, sizeof(*c.waiting)), calloc(n, sizeof(*c.joined)),
                       calloc(t->num_flows, sizeof(*c.ends))};
    if (c.keys && c.waiting && c.joined && c.ends)
        merge(&c);
    else
        t->no_memory = true;
    free(c.keys);
    free(c.waiting);
    free(c.joined);
    free(c.ends);
}
