// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/network/net.h"

#include "wire/pkt.h"

#include <stdlib.h>
#include <string.h>

/* --- events ------------------------------------------------------------------------------------ */

static bool before(const struct timed *a, const struct timed *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void evq_push(struct evq *q, struct timed ev)
{
    if (q->n == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 64;
        q->heap = realloc(q->heap, q->cap * sizeof *q->heap);
        if (!q->heap) {
            abort();
        }
    }
    ev.seq = q->seq++;
    size_t i = q->n++;
    while (i > 0 && before(&ev, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = ev;
}

uint64_t evq_next(const struct evq *q)
{
    return q->n ? q->heap[0].at : UINT64_MAX;
}

bool evq_pop(struct evq *q, uint64_t now, struct timed *ev)
{
    if (q->n == 0 || q->heap[0].at > now) {
        return false;
    }
    *ev = q->heap[0];
    struct timed last = q->heap[--q->n];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= q->n) {
            break;
        }
        if (c + 1 < q->n && before(&q->heap[c + 1], &q->heap[c])) {
            c++;
        }
        if (!before(&q->heap[c], &last)) {
            break;
        }
        q->heap[i] = q->heap[c];
        i = c;
    }
    q->heap[i] = last;
    return true;
}

/* --- nodes ------------------------------------------------------------------------------------- */

static void pass(struct node *self, struct wirepkt *p, uint64_t now)
{
    self->next->forward(self->next, p, now);
}

static void lose(struct net *n, struct wirepkt *p)
{
    n->lost++;
    free(p);
}

/* Numbers the packets, and loses those that the rotating mask selects. */
static void mask_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    p->number = n->sent++;
    bool hit = (n->faults.mask >> (p->number % 64)) & 1;
    if (hit && !(n->faults.mask_once && p->number >= 64)) {
        lose(n, p);
        return;
    }
    pass(self, p, now);
}

/* Loses packets by opcode. */
static void opcode_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    const struct net_faults *f = &n->faults;
    if (f->drop_first != 0 && p->data[0] == f->drop_opcode &&
        (f->drop_syndrome == 0 || (p->len > BTH_LEN && p->data[BTH_LEN] == f->drop_syndrome))) {
        n->matched++;
        if (n->matched >= f->drop_first && n->matched <= f->drop_last) {
            lose(n, p);
            return;
        }
    }
    pass(self, p, now);
}

static void dead_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    const struct net_faults *f = &self->net->faults;
    bool too_long = f->most_bytes && p->len > f->most_bytes;
    if (too_long || (now >= f->dead_from && now < f->dead_until)) {
        lose(self->net, p);
        return;
    }
    pass(self, p, now);
}

static void loss_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    if (prng_chance(&n->rng, n->faults.loss)) {
        lose(n, p);
        return;
    }
    p->ce = prng_chance(&n->rng, n->faults.ce);
    pass(self, p, now);
}

static void dup_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    if (prng_chance(&n->rng, n->faults.dup)) {
        struct wirepkt *copy = net_alloc(p->len);
        memcpy(copy, p, sizeof *p + p->len);
        n->duplicated++;
        pass(self, copy, now);
    }
    pass(self, p, now);
}

/* Flips one to three bits; the ICRC detects that for certain. Byte 4 of the BTH (FECN, BECN, reserved), which the
 * ICRC does not cover, and packets within one host stay unchanged. */
static void corrupt_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    if (!p->loop && prng_chance(&n->rng, n->faults.corrupt)) {
        uint64_t flips = prng_range(&n->rng, 1, 3);
        uint64_t start = prng_range(&n->rng, 0, (uint64_t)p->len * 8 - 4);
        for (uint64_t i = 0; i < flips; i++) {
            uint64_t bit = start + i;
            if (bit / 8 != 4) {
                p->data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
                p->corrupted = true;
            }
        }
        n->corrupted++;
    }
    pass(self, p, now);
}

#define FRAME_OVERHEAD 42u /* Ethernet, IPv4 and UDP headers */

/* Puts the packet behind those that wait for the link. *at becomes the time when it has left the link. False: the buffer
 * in front of the link is full. */
static bool link_pass(struct net *n, const struct wirepkt *p, uint64_t *at)
{
    const struct net_faults *f = &n->faults;
    struct link *l = f->bottleneck ? &n->link[p->src % 2][0] : &n->link[p->src][p->dst];
    bool is_long = p->len > LONG_PACKET;
    l->long_sent += is_long;
    while (l->waiting && l->starts[l->head] <= *at) {
        l->head = (l->head + 1) % f->buffer;
        l->waiting--;
    }
    if (f->buffer && l->waiting == f->buffer) {
        l->long_lost += is_long;
        l->lost++;
        return false;
    }
    uint64_t start = *at < l->busy_until ? l->busy_until : *at;
    if (f->buffer && start > *at)
        l->starts[(l->head + l->waiting++) % f->buffer] = start;
    *at = l->busy_until = start + (p->len + FRAME_OVERHEAD) * 1000000ull / f->rate;
    return true;
}

/* The end of the chain: delays packets by their travel time. They stay in order, except the reordered ones. */
static void delay_forward(struct node *self, struct wirepkt *p, uint64_t now)
{
    struct net *n = self->net;
    if (n->faults.rate && !link_pass(n, p, &now)) {
        lose(n, p);
        return;
    }
    uint64_t at = now + n->faults.delay_ns + prng_range(&n->rng, 0, n->faults.jitter_ns);
    uint64_t *last = &n->last_arrival[p->src][p->dst];
    if (prng_chance(&n->rng, n->faults.reorder)) {
        at += prng_range(&n->rng, 1, n->faults.reorder_ns);
        n->reordered++;
    } else {
        at = at < *last ? *last : at;
        *last = at;
    }
    n->inflight++;
    evq_push(n->events, (struct timed){.at = at, .kind = EV_PACKET, .p = p});
}

void net_init(struct net *n, struct evq *events, const struct net_faults *faults, uint64_t seed)
{
    static void (*const chain[NET_NODES])(struct node *, struct wirepkt *, uint64_t) = {
        mask_forward, opcode_forward, dead_forward, loss_forward, dup_forward, corrupt_forward, delay_forward};
    *n = (struct net){.faults = *faults, .events = events};
    prng_seed(&n->rng, seed);
    for (int i = 0; faults->buffer && i < NET_HOSTS * NET_HOSTS; i++) {
        struct link *l = &n->link[i / NET_HOSTS][i % NET_HOSTS];
        l->starts = calloc(faults->buffer, sizeof *l->starts);
        if (!l->starts) {
            abort();
        }
    }
    for (int i = 0; i < NET_NODES; i++) {
        n->node[i] = (struct node){.forward = chain[i], .net = n, .next = i + 1 < NET_NODES ? &n->node[i + 1] : NULL};
    }
}

void net_free(struct net *n)
{
    for (int i = 0; i < NET_HOSTS * NET_HOSTS; i++) {
        free(n->link[i / NET_HOSTS][i % NET_HOSTS].starts);
    }
}

struct wirepkt *net_alloc(uint32_t len)
{
    struct wirepkt *p = malloc(sizeof *p + len);
    if (!p) {
        abort();
    }
    memset(p, 0, sizeof *p);
    p->len = len;
    return p;
}

void net_send(struct net *n, struct wirepkt *p, uint64_t now)
{
    n->node[0].forward(&n->node[0], p, now);
}
