// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/psn_order.h"

#include <stdlib.h>

#include "wire/pkt.h"
#include "wire/syndrome.h"

#define BASE (1ull << 40) /* of extended PSNs: larger than all steps down of all packets together */
#define FLOWS_MAX 4096 /* flows that a search for the one of a SACK looks at */
#define COPIES_MAX 16 /* packets with one PSN that a search looks at */

/* The state of a flow at one place of the capture. */
struct progress {
    bool started;
    uint64_t last, max; /* PSN of the latest request, and the largest one */
    uint32_t nak; /* the latest NAK or RNR NAK that came back; TRACE_NONE: none */
    uint64_t nak_psn;
};

/* A packet with a PSN that a retransmission would have, too. */
struct numbered {
    uint64_t psn;
    uint32_t flow;
    uint32_t index; /* of the packet */
    bool response;
};

static bool is_nak(const struct trace_packet *p)
{
    uint8_t kind = p->syndrome & AETH_KIND_MASK;

    return (p->opcode & OP_OPERATION_MASK) == OP_ACK && (kind == AETH_NAK || kind == AETH_RNR);
}

static bool is_response(const struct trace_packet *p)
{
    return op_table[p->opcode].properties & OP_IS_RESPONSE;
}

/* The difference of two PSNs of 24 bits, as a signed number. */
static int64_t difference(uint64_t a, uint64_t b)
{
    uint32_t d = (uint32_t)(a - b) & PSN_MASK;

    return d & 0x800000 ? (int64_t)d - 0x1000000 : (int64_t)d;
}

static void extend_request(struct progress *s, struct trace_packet *p)
{
    int64_t step = difference(p->psn, s->last);

    if (!s->started) {
        s->started = true;
        p->psn += BASE;
        s->max = p->psn;
    } else if (step > TRACE_FAR_PSNS || step < -TRACE_FAR_PSNS) {
        p->psn += (s->max | PSN_MASK) + 1; /* a new connection with the same QP */
        s->nak = TRACE_NONE;
        s->max = p->psn;
    } else {
        p->psn = s->last + (uint64_t)step;
    }
    s->last = p->psn;
}

/* A request that comes after a request with a larger PSN. */
static void judge_old(const struct progress *s, struct trace_packet *p)
{
    if (p->noted || p->marks & (TRACE_AGAIN | TRACE_LATE))
        return;
    p->marks |= s->nak != TRACE_NONE && s->nak_psn <= p->psn ? TRACE_AGAIN : TRACE_LATE;
}

/* A SACK names the flow of the requests by their QPs. It says that a request is missing, as a NAK does. */
static void extend_sack(struct trace *t, struct progress *s, uint32_t index)
{
    struct trace_packet *p = &t->packets[index];
    const struct trace_flow_key *key = &t->flows[p->flow]->key;
    const struct trace_sack *sack = &t->sacks[p->sack];

    for (uint32_t i = 0; i < t->num_flows && i < FLOWS_MAX; i++) {
        const struct trace_flow *flow = t->flows[i];

        if (flow->key.src != key->dst || flow->key.dst != key->src || flow->key.qpn != sack->responder ||
            (flow->qpn_of_sender && flow->qpn_of_sender != sack->requester) || !s[i].started)
            continue;
        p->about = i;
        p->psn = s[i].last + (uint64_t)difference(sack->expected, s[i].last);
        if (!(p->marks & TRACE_LOST)) {
            s[i].nak = index;
            s[i].nak_psn = p->psn;
        }
        return;
    }
}

static void extend(struct trace *t, struct progress *s)
{
    for (size_t i = 0; i < t->num_packets; i++) {
        struct trace_packet *p = &t->packets[i];
        const struct trace_flow *flow = t->flows[p->flow];
        struct progress *mine = &s[p->flow];

        if (p->marks & TRACE_UNUSABLE)
            continue;
        if (p->sack != TRACE_NONE) {
            extend_sack(t, s, (uint32_t)i);
        } else if (trace_is_request(p)) {
            extend_request(mine, p);
            if (p->psn < mine->max)
                judge_old(mine, p);
            else
                mine->max = p->psn;
            if (mine->nak_psn <= p->psn)
                p->reason = mine->nak;
        } else if (is_response(p) && flow->peer != TRACE_NONE && s[flow->peer].started) {
            struct progress *peer = &s[flow->peer];

            p->psn = peer->last + (uint64_t)difference(p->psn, peer->last);
            if (is_nak(p) && !(p->marks & TRACE_LOST)) {
                peer->nak = (uint32_t)i;
                peer->nak_psn = p->psn;
            }
        }
    }
}

static int by_psn(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;

    if (x->flow != y->flow)
        return x->flow < y->flow ? -1 : 1;
    if (x->response != y->response)
        return x->response ? 1 : -1;
    if (x->psn != y->psn)
        return x->psn < y->psn ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool same_psn(const struct numbered *x, const struct numbered *y)
{
    return x->flow == y->flow && x->response == y->response && x->psn == y->psn;
}

/* All packets that a retransmission would repeat, by flow and PSN. A plain ACK repeats nothing. */
static struct numbered *sort_packets(struct trace *t, size_t *n)
{
    struct numbered *list = calloc(t->num_packets + 1, sizeof(*list));

    *n = 0;
    for (size_t i = 0; list && i < t->num_packets; i++) {
        const struct trace_packet *p = &t->packets[i];

        if (!(p->marks & TRACE_UNUSABLE) && psn_is_extended(p) && p->sack == TRACE_NONE &&
            (p->opcode & OP_OPERATION_MASK) != OP_ACK)
            list[(*n)++] = (struct numbered){p->psn, p->flow, (uint32_t)i, is_response(p)};
    }
    if (list)
        qsort(list, *n, sizeof(*list), by_psn);
    else
        t->no_memory = true;
    return list;
}

static void mark_repeated(struct trace *t, const struct numbered *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct trace_packet *p = &t->packets[list[i].index], *earlier = &t->packets[list[i - 1].index];

        if (!same_psn(&list[i - 1], &list[i]))
            continue;
        if (earlier->marks & TRACE_TWICE && p->marks & TRACE_TWICE && earlier->icrc == p->icrc)
            continue; /* the network doubled it */
        p->repeats = list[i - 1].index;
        p->marks |= TRACE_AGAIN;
        p->marks &= (uint8_t)~TRACE_LATE;
        if (p->reason != TRACE_NONE && p->reason < p->repeats)
            p->reason = TRACE_NONE; /* the NAK came before the earlier packet */
    }
    for (size_t i = 0; i < t->num_packets; i++)
        if (!(t->packets[i].marks & TRACE_AGAIN))
            t->packets[i].reason = TRACE_NONE;
}

/* A NAK says which PSN did not arrive, and a SACK says the first one. The comments of Pumice know better. */
static void mark_lost(struct trace *t, const struct numbered *list, size_t n)
{
    for (size_t i = 0; i < t->num_packets; i++) {
        const struct trace_packet *p = &t->packets[i];
        bool sack = p->sack != TRACE_NONE;
        uint32_t flow = sack ? p->about : t->flows[p->flow]->peer;
        size_t low = 0, high = n;

        if (p->marks & TRACE_UNUSABLE || !psn_is_extended(p) ||
            (!sack && (!is_response(p) || p->syndrome != NAK_PSN_SEQUENCE)))
            continue;
        struct numbered wanted = {p->psn, flow, 0, false};
        while (low < high) {
            size_t mid = (low + high) / 2;

            if (by_psn(&list[mid], &wanted) < 0)
                low = mid + 1;
            else
                high = mid;
        }
        for (size_t end = low + COPIES_MAX;
             low < n && low < end && same_psn(&list[low], &wanted) && list[low].index < i; low++) {
            struct trace_packet *q = &t->packets[list[low].index];

            if (q->noted || q->arrival_ns || q->marks & (TRACE_LATE | TRACE_LOST))
                continue;
            q->marks |= TRACE_LOST;
            break;
        }
    }
}

void psn_order(struct trace *t)
{
    struct progress *s = calloc(t->num_flows + 1, sizeof(*s));
    struct numbered *list = NULL;
    size_t n = 0;

    for (size_t i = 0; s && i < t->num_flows; i++)
        s[i].nak = TRACE_NONE;
    if (s) {
        extend(t, s);
        list = sort_packets(t, &n);
    } else {
        t->no_memory = true;
    }
    if (list) {
        mark_repeated(t, list, n);
        mark_lost(t, list, n);
    }
    free(list);
    free(s);
}
