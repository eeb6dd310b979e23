// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/base/lint_flow.h"

#include <stdlib.h>
#include <string.h>

#include "pcap/pcapng.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

#define SAMPLES 32 /* responses of a flow that are compared with requests */

/* The PSNs that one request takes. */
struct psn_range {
    uint32_t psn, span, record;
    uint8_t opcode;
};

/* The requests of one flow, by PSN. */
struct psn_ranges {
    struct psn_range *list;
    size_t n;
};

/* Two flows that may be the directions of a connection. */
struct match {
    uint32_t a, b; /* indexes of flows */
    bool near; /* both were captured at the same interface */
    bool sure; /* comments name the QPs */
    uint32_t hits; /* responses that fit a request of the other flow */
    uint64_t delay; /* sum over the hits: records between request and response */
};

static struct flow *find_flow(struct lint *l, const struct flow_key *key)
{
    struct flow *flow, **list;

    HASH_FIND(hh, l->by_key, key, sizeof(*key), flow);
    if (flow)
        return flow;
    list = lint_grow(l, l->flows, l->num_flows, &l->cap_flows, sizeof(*list));
    if (list)
        l->flows = list;
    flow = list ? calloc(1, sizeof(*flow)) : NULL;
    if (!flow) {
        l->no_memory = true;
        return NULL;
    }
    flow->key = *key;
    flow->index = (uint32_t)l->num_flows;
    l->flows[l->num_flows++] = flow;
    HASH_ADD(hh, l->by_key, key, sizeof(flow->key), flow);
    return flow;
}

struct flow *lint_flow(struct lint *l, const struct flow_key *key)
{
    struct flow *flow = find_flow(l, key), *without_sender;
    struct flow_key any_sender = *key;

    if (!flow || !key->src_qpn)
        return flow && flow->newest ? flow->newest : flow;
    any_sender.src_qpn = 0;
    without_sender = find_flow(l, &any_sender);
    if (without_sender)
        without_sender->newest = flow;
    return flow;
}

void lint_flow_free(struct flow *flow)
{
    for (size_t i = 0; i < flow->num_requests; i++) {
        if (flow->requests[i].response)
            free(flow->requests[i].response->seen);
        free(flow->requests[i].response);
    }
    free(flow->requests);
    free(flow->rndv);
    free(flow->recs);
    free(flow);
}

uint32_t lint_span(const struct flow *flow, uint32_t len)
{
    if (flow->mtu)
        return len ? (uint32_t)(((uint64_t)len + flow->mtu - 1) / flow->mtu) : 1;
    return len <= PKT_MTU_MIN ? 1 : 0;
}

/* --- which responses fit which requests --------------------------------------------------------------------------- */

static int by_psn(const void *a, const void *b)
{
    const struct psn_range *x = a, *y = b;

    if (x->psn != y->psn)
        return x->psn < y->psn ? -1 : 1;
    return x->record < y->record ? -1 : 1;
}

static struct psn_ranges collect(struct lint *l, const struct flow *flow)
{
    struct psn_ranges a = {calloc(flow->num_recs + 1, sizeof(struct psn_range)), 0};

    if (!a.list) {
        l->no_memory = true;
        return a;
    }
    for (size_t i = 0; i < flow->num_recs; i++) {
        const struct record *r = &l->recs[flow->recs[i]];

        if (r->flags & RECORD_UNUSABLE || !(op_table[r->opcode].properties & OP_IS_REQUEST))
            continue;
        uint32_t span = (r->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST ? lint_span(flow, r->dmalen) : 1;
        a.list[a.n++] = (struct psn_range){r->psn, span ? span : r->dmalen / PKT_MTU_MIN + 1, flow->recs[i], r->opcode};
    }
    qsort(a.list, a.n, sizeof(*a.list), by_psn);
    return a;
}

/* True if a response with this opcode can answer a request with that opcode. */
static bool can_answer(uint8_t response, uint8_t request)
{
    uint8_t operation = response & OP_OPERATION_MASK;

    if (operation == OP_ACK)
        return true;
    return operation == OP_ATOMIC_ACK ? (op_table[request].properties & OP_IS_ATOMIC) != 0
                                      : (op_table[request].properties & (OP_IS_SEND | OP_IS_WRITE | OP_IS_ATOMIC)) == 0;
}

/* Finds the newest request that the response in record number `before` can answer. Returns the distance of the two in
 * records; 0: there is no such request. It looks a few requests back, because a READ takes several PSNs. */
static uint32_t find_request(const struct psn_ranges *a, uint8_t opcode, uint32_t psn, uint32_t before)
{
    size_t low = 0, high = a->n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (a->list[mid].psn <= psn)
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t i = 0; i < 8 && i < low; i++) {
        const struct psn_range *q = &a->list[low - 1 - i];

        if (psn - q->psn < q->span && q->record < before && can_answer(opcode, q->opcode))
            return before - q->record;
    }
    return 0;
}

/* Counts the responses in a flow that fit the requests a, and adds the result to m. */
static void count_hits(const struct lint *l, const struct flow *flow, const struct psn_ranges *a, struct match *m)
{
    uint32_t tried = 0, delay;

    for (size_t i = 0; i < flow->num_recs && tried < SAMPLES; i++) {
        const struct record *r = &l->recs[flow->recs[i]];

        if (r->flags & RECORD_UNUSABLE || !(op_table[r->opcode].properties & OP_IS_RESPONSE))
            continue;
        tried++;
        delay = find_request(a, r->opcode, r->psn, flow->recs[i]);
        m->hits += delay != 0;
        m->delay += delay;
    }
}

/* --- pairing ------------------------------------------------------------------------------------------------------ */

bool lint_same_interface(const struct flow *a, const struct flow *b)
{
    return a->key.interface == b->key.interface && a->key.ifindex == b->key.ifindex;
}

bool lint_may_pair(const struct flow *a, const struct flow *b)
{
    return a != b && a->key.service == b->key.service &&
           (a->key.service == OP_SERVICE_RC || a->key.service == OP_SERVICE_XRC) &&
           memcmp(a->key.src, b->key.dst, 16) == 0 && memcmp(a->key.dst, b->key.src, 16) == 0;
}

static bool fits(uint32_t src_qpn, uint32_t qpn)
{
    return src_qpn == 0 || src_qpn == qpn;
}

/* True if addresses, services and QP numbers allow the flows to form a connection. */
static bool may_connect(const struct flow *a, const struct flow *b)
{
    return lint_may_pair(a, b) && fits(a->key.src_qpn, b->key.qpn) && fits(b->key.src_qpn, a->key.qpn);
}

static int by_fit(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    if (x->near != y->near)
        return x->near ? -1 : 1;
    if (x->sure != y->sure)
        return x->sure ? -1 : 1;
    if (x->hits != y->hits)
        return x->hits > y->hits ? -1 : 1;
    if (x->delay != y->delay)
        return x->delay < y->delay ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : 1;
}

/* The most common payload length of FIRST and MIDDLE packets, which is the path MTU; 0: there are none. */
static uint32_t common_size(const struct flow *a, const struct flow *b)
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

static void find_matches(struct lint *l, struct psn_ranges *asks, struct match **matches, size_t *n)
{
    size_t cap = 0;

    for (size_t i = 0; i < l->num_flows; i++) {
        for (size_t j = i + 1; j < l->num_flows; j++) {
            struct match *more, m = {.a = (uint32_t)i, .b = (uint32_t)j};

            if (!may_connect(l->flows[i], l->flows[j]))
                continue;
            m.near = lint_same_interface(l->flows[i], l->flows[j]);
            m.sure = l->flows[i]->key.src_qpn && l->flows[j]->key.src_qpn;
            count_hits(l, l->flows[i], &asks[j], &m);
            count_hits(l, l->flows[j], &asks[i], &m);
            if (!m.hits && !m.sure)
                continue;
            more = lint_grow(l, *matches, *n, &cap, sizeof(*more));
            if (!more)
                return;
            *matches = more;
            more[(*n)++] = m;
        }
    }
}

void lint_pair(struct lint *l)
{
    struct psn_ranges *asks = calloc(l->num_flows + 1, sizeof(*asks));
    struct match *matches = NULL;
    size_t n = 0;

    for (size_t i = 0; i < l->num_flows; i++)
        l->flows[i]->mtu = common_size(l->flows[i], NULL);
    for (size_t i = 0; asks && i < l->num_flows; i++)
        asks[i] = collect(l, l->flows[i]);
    if (asks && !l->no_memory)
        find_matches(l, asks, &matches, &n);
    if (n)
        qsort(matches, n, sizeof(*matches), by_fit);
    for (size_t i = 0; i < n; i++) {
        struct flow *a = l->flows[matches[i].a], *b = l->flows[matches[i].b];

        if (a->peer || b->peer)
            continue;
        a->peer = b;
        b->peer = a;
        a->mtu = b->mtu = common_size(a, b);
    }
    for (size_t i = 0; asks && i < l->num_flows; i++)
        free(asks[i].list);
    free(asks);
    free(matches);
}

struct flow *lint_find_requester(struct lint *l, const struct flow *flow, uint32_t psn, uint32_t before)
{
    for (size_t i = 0; i < l->num_flows; i++) {
        struct flow *x = l->flows[i];

        if (x == flow->peer || !may_connect(flow, x))
            continue;
        for (size_t k = 0; k < x->num_recs && x->recs[k] < before; k++)
            if (l->recs[x->recs[k]].psn == psn && op_table[l->recs[x->recs[k]].opcode].properties & OP_IS_REQUEST)
                return x;
    }
    return NULL;
}
