// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/pair.h"

#include <stdlib.h>

#include "wire/cm_msg.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

#define SAMPLES 64 /* responses of a flow that are compared with requests */
#define MATCHES_MAX (1u << 22)

/* A request packet of one flow. */
struct asked {
    uint32_t psn;
    uint32_t index; /* of the packet */
};

/* The requests of a flow, by PSN, and its first responses. */
struct contents {
    struct asked *requests;
    uint32_t *responses; /* at most SAMPLES indexes of packets */
    size_t num_requests, num_responses;
};

/* Two flows that may be the directions of a connection. */
struct match {
    uint32_t a, b;
    uint32_t named; /* number of ends whose QP comments name */
    uint32_t hits; /* responses that have the PSN of an earlier request */
    uint64_t delay; /* sum over the hits: packets between request and response */
};

static int by_psn(const void *a, const void *b)
{
    const struct asked *x = a, *y = b;

    if (x->psn != y->psn)
        return x->psn < y->psn ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool can_pair(uint32_t service)
{
    return service == OP_SERVICE_RC || service == OP_SERVICE_XRC;
}

static bool allocate(struct trace *t, struct contents *c)
{
    for (size_t i = 0; i < t->num_flows; i++) {
        c[i].requests = calloc(t->flows[i]->packets + 1, sizeof(struct asked));
        c[i].responses = calloc(SAMPLES, sizeof(uint32_t));
        if (!c[i].requests || !c[i].responses)
            return false;
    }
    return true;
}

static void collect(struct trace *t, struct contents *c)
{
    for (size_t i = 0; i < t->num_packets; i++) {
        const struct trace_packet *p = &t->packets[i];
        struct contents *x = &c[p->flow];

        if (p->marks & TRACE_UNUSABLE)
            continue;
        if (op_table[p->opcode].properties & OP_IS_REQUEST)
            x->requests[x->num_requests++] = (struct asked){(uint32_t)p->psn, (uint32_t)i};
        else if (op_table[p->opcode].properties & OP_IS_RESPONSE && x->num_responses < SAMPLES)
            x->responses[x->num_responses++] = (uint32_t)i;
    }
    for (size_t i = 0; i < t->num_flows; i++)
        qsort(c[i].requests, c[i].num_requests, sizeof(struct asked), by_psn);
}

/* The newest request with this PSN before packet `before`; 0: none. */
static uint32_t distance(const struct contents *c, uint32_t psn, uint32_t before)
{
    size_t low = 0, high = c->num_requests;

    while (low < high) { /* the first request with a larger PSN, or with this PSN and not before */
        size_t mid = (low + high) / 2;

        if (c->requests[mid].psn < psn || (c->requests[mid].psn == psn && c->requests[mid].index < before))
            low = mid + 1;
        else
            high = mid;
    }
    return low && c->requests[low - 1].psn == psn ? before - c->requests[low - 1].index : 0;
}

static void count_hits(const struct trace *t, const struct contents *responder, const struct contents *requester,
                       struct match *m)
{
    for (size_t i = 0; i < responder->num_responses; i++) {
        uint32_t index = responder->responses[i];
        uint32_t d = distance(requester, (uint32_t)t->packets[index].psn, index);

        m->hits += d != 0;
        m->delay += d;
    }
}

static bool fits(uint32_t sender, uint32_t qpn)
{
    return sender == 0 || sender == qpn;
}

static bool may_connect(const struct trace_flow *a, const struct trace_flow *b)
{
    return a->key.src == b->key.dst && a->key.dst == b->key.src && a->key.service == b->key.service &&
           can_pair(a->key.service) && fits(a->qpn_of_sender, b->key.qpn) && fits(b->qpn_of_sender, a->key.qpn);
}

#define BETTER(x, y)                                                                                                   \
    if ((x) != (y))                                                                                                    \
    return (x) > (y) ? -1 : 1

static int by_fit(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    BETTER(x->named, y->named);
    BETTER(x->hits, y->hits);
    BETTER(y->delay, x->delay);
    BETTER(y->a, x->a);
    BETTER(y->b, x->b);
    return 0;
}

/* The flows in an order in which those between the same two hosts are adjacent. */
struct order {
    uint32_t low, high, service; /* hosts */
    uint32_t flow;
};

static int by_hosts(const void *a, const void *b)
{
    const struct order *x = a, *y = b;

    BETTER(y->low, x->low);
    BETTER(y->high, x->high);
    BETTER(y->service, x->service);
    BETTER(y->flow, x->flow);
    return 0;
}

static struct order *sort_flows(struct trace *t)
{
    struct order *o = calloc(t->num_flows + 1, sizeof(*o));

    for (uint32_t i = 0; o && i < t->num_flows; i++) {
        const struct trace_flow_key *key = &t->flows[i]->key;

        o[i] = (struct order){key->src < key->dst ? key->src : key->dst, key->src < key->dst ? key->dst : key->src,
                              key->service, i};
    }
    if (o)
        qsort(o, t->num_flows, sizeof(*o), by_hosts);
    return o;
}

static void add_match(struct trace *t, const struct contents *c, uint32_t a, uint32_t b, struct match **list, size_t *n,
                      size_t *cap)
{
    struct match m = {.a = a, .b = b};

    if (!may_connect(t->flows[a], t->flows[b]))
        return;
    m.named = (t->flows[a]->qpn_of_sender != 0) + (t->flows[b]->qpn_of_sender != 0);
    count_hits(t, &c[a], &c[b], &m);
    count_hits(t, &c[b], &c[a], &m);
    if ((!m.hits && m.named < 2) || *n >= MATCHES_MAX)
        return;
    struct match *more = trace_grow(t, *list, *n, cap, sizeof(*more));
    if (!more)
        return;
    *list = more;
    more[(*n)++] = m;
}

static void find_matches(struct trace *t, const struct contents *c, struct match **list, size_t *n)
{
    struct order *o = sort_flows(t);
    size_t cap = 0;

    if (!o)
        t->no_memory = true;
    for (size_t i = 0; o && i < t->num_flows; i++)
        for (size_t k = i + 1; k < t->num_flows && o[k].low == o[i].low && o[k].high == o[i].high &&
                               o[k].service == o[i].service && !t->no_memory;
             k++)
            add_match(t, c, o[i].flow, o[k].flow, list, n, &cap);
    free(o);
}

/* --- what connection management says ------------------------------------------------------------------------------ */

/* A QP that a REQ or REP names. */
struct named_qp {
    uint32_t host, qpn, comm_id;
};

/* Notes that the two QPs are connected. */
static void connect(struct trace *t, struct named_qp a, struct named_qp b)
{
    for (size_t i = 0; i < t->num_flows; i++) {
        struct trace_flow *f = t->flows[i];

        if (!can_pair(f->key.service) || f->qpn_of_sender)
            continue;
        if (f->key.src == a.host && f->key.dst == b.host && f->key.qpn == b.qpn)
            f->qpn_of_sender = a.qpn;
        else if (f->key.src == b.host && f->key.dst == a.host && f->key.qpn == a.qpn)
            f->qpn_of_sender = b.qpn;
    }
}

#define REQS_MAX 1024 /* REQs that are kept until their REP comes */

static void read_connections(struct trace *t)
{
    struct named_qp *reqs = calloc(REQS_MAX, sizeof(*reqs));
    size_t n = 0;
    struct cm_msg m;

    if (!reqs)
        t->no_memory = true;
    for (size_t i = 0; reqs && i < t->num_packets; i++) {
        const struct trace_packet *p = &t->packets[i];
        const struct trace_flow_key *key = &t->flows[p->flow]->key;

        if (p->mad == TRACE_NONE || p->marks & TRACE_UNUSABLE ||
            cm_msg_decode(t->mads[p->mad].bytes, &m) != CM_DECODE_OK)
            continue;
        if (m.attribute == CM_REQ)
            reqs[n++ % REQS_MAX] = (struct named_qp){key->src, m.req.local_qpn, m.req.local_comm_id};
        for (size_t k = 0; m.attribute == CM_REP && k < n && k < REQS_MAX; k++)
            if (reqs[k].host == key->dst && reqs[k].comm_id == m.rep.remote_comm_id) {
                connect(t, reqs[k], (struct named_qp){key->src, m.rep.local_qpn, m.rep.local_comm_id});
                break;
            }
    }
    free(reqs);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* The most common payload length of FIRST and MIDDLE packets, which is the path MTU; 0: there are none. */
static uint32_t common_size(const struct trace_flow *a, const struct trace_flow *b)
{
    uint32_t best = 0, mtu = 0;

    for (unsigned i = 0; i < 5; i++) {
        uint32_t n = a->sizes[i] + (b ? b->sizes[i] : 0);

        if (n > best) {
            best = n;
            mtu = (uint32_t)PKT_MTU_MIN << i;
        }
    }
    return mtu;
}

static void apply(struct trace *t, const struct match *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct trace_flow *a = t->flows[list[i].a], *b = t->flows[list[i].b];

        if (a->peer != TRACE_NONE || b->peer != TRACE_NONE)
            continue;
        a->peer = b->index;
        b->peer = a->index;
        a->qpn_of_sender = b->key.qpn;
        b->qpn_of_sender = a->key.qpn;
    }
    for (size_t i = 0; i < t->num_flows; i++) {
        struct trace_flow *f = t->flows[i];

        f->mtu = common_size(f, f->peer != TRACE_NONE ? t->flows[f->peer] : NULL);
    }
}

void pair_flows(struct trace *t)
{
    struct contents *c = calloc(t->num_flows + 1, sizeof(*c));
    struct match *list = NULL;
    size_t n = 0;

    read_connections(t);
    if (c && allocate(t, c)) {
        collect(t, c);
        find_matches(t, c, &list, &n);
    } else {
        t->no_memory = true;
    }
    if (n)
        qsort(list, n, sizeof(*list), by_fit);
    apply(t, list, n);
    for (size_t i = 0; c && i < t->num_flows; i++) {
        free(c[i].requests);
        free(c[i].responses);
    }
    free(c);
    free(list);
}
