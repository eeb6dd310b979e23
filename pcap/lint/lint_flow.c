// SPDX-License-Identifier: BSD-2-Clause
/* Which two halves make a connection. Packets name only the QP that they go to; but the PSNs of responses are those of
 * requests, and PSNs begin anywhere. So of all halves between the same two addresses those are paired whose responses
 * fit the other's requests best: first those that were captured at the same interface, and then, because a capture of what
 * each end sends has the two directions at an interface each, the rest. Where comments name the senders (note.h), they decide. */
#include <stdlib.h>
#include <string.h>

#include "pcap/lint/lint_priv.h"

#define SAMPLES 32 /* responses of a half that are looked up */

struct asked { /* PSNs that a half's requests take */
    uint32_t psn, span, rec;
    uint8_t opcode;
};

struct asks { /* of one half, by PSN */
    struct asked *list;
    size_t n;
};

struct match {
    uint32_t a, b; /* indexes of halves */
    bool near; /* at the same interface */
    bool sure; /* comments say so */
    uint32_t hits; /* responses that answer requests */
    uint64_t delay; /* between these, in records */
};

static struct half *find_half(struct lint *l, const struct half_key *key)
{
    struct half *h, **list;

    HASH_FIND(hh, l->by_key, key, sizeof(*key), h);
    if (h)
        return h;
    list = lint_grow(l, l->halves, l->num_halves, &l->cap_halves, sizeof(*list));
    if (list)
        l->halves = list;
    h = list ? calloc(1, sizeof(*h)) : NULL;
    if (!h) {
        l->no_memory = true;
        return NULL;
    }
    h->key = *key;
    h->index = (uint32_t)l->num_halves;
    l->halves[l->num_halves++] = h;
    HASH_ADD(hh, l->by_key, key, sizeof(h->key), h);
    return h;
}

struct half *lint_half(struct lint *l, const struct half_key *key)
{
    struct half *h = find_half(l, key), *unnamed;
    struct half_key anybody = *key;

    if (!h || !key->src_qpn)
        return h && h->newest ? h->newest : h;
    anybody.src_qpn = 0;
    unnamed = find_half(l, &anybody);
    if (unnamed)
        unnamed->newest = h;
    return h;
}

void lint_half_free(struct half *h)
{
    for (size_t i = 0; i < h->num_sent; i++) {
        if (h->sent[i].answer)
            free(h->sent[i].answer->seen);
        free(h->sent[i].answer);
    }
    free(h->sent);
    free(h->rndv);
    free(h->recs);
    free(h);
}

uint32_t lint_span(const struct half *h, uint32_t len)
{
    if (h->mtu)
        return len ? (uint32_t)(((uint64_t)len + h->mtu - 1) / h->mtu) : 1;
    return len <= PKT_MTU_MIN ? 1 : 0;
}

/* --- who asked what ------------------------------------------------------------------------------------------------------- */

static int by_psn(const void *a, const void *b)
{
    const struct asked *x = a, *y = b;

    if (x->psn != y->psn)
        return x->psn < y->psn ? -1 : 1;
    return x->rec < y->rec ? -1 : 1;
}

static struct asks collect(struct lint *l, const struct half *h)
{
    struct asks a = {calloc(h->num_recs + 1, sizeof(struct asked)), 0};

    if (!a.list) {
        l->no_memory = true;
        return a;
    }
    for (size_t i = 0; i < h->num_recs; i++) {
        const struct rec *r = &l->recs[h->recs[i]];
        uint32_t span;

        if (r->flags & REC_UNUSABLE || !(op_table[r->opcode].properties & OP_IS_REQUEST))
            continue;
        span = (r->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST ? lint_span(h, r->dmalen) : 1;
        a.list[a.n++] = (struct asked){r->psn, span ? span : r->dmalen / PKT_MTU_MIN + 1, h->recs[i], r->opcode};
    }
    qsort(a.list, a.n, sizeof(*a.list), by_psn);
    return a;
}

/* Can a response of this opcode be one to such a request? */
static bool can_answer(uint8_t response, uint8_t request)
{
    uint8_t operation = response & OP_OPERATION_MASK;

    if (operation == OP_ACK)
        return true;
    return operation == OP_ATOMIC_ACK ? (op_table[request].properties & OP_IS_ATOMIC) != 0
                                      : (op_table[request].properties & (OP_IS_SEND | OP_IS_WRITE | OP_IS_ATOMIC)) == 0;
}

/* The newest request before record number before that the response in it can be to: how many records there are between them; 0: there
 * is none. Looks a few requests back, for READs of several responses. */
static uint32_t has_asked(const struct asks *a, uint8_t opcode, uint32_t psn, uint32_t before)
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
        const struct asked *q = &a->list[low - 1 - i];

        if (psn - q->psn < q->span && q->rec < before && can_answer(opcode, q->opcode))
            return before - q->rec;
    }
    return 0;
}

/* How well the responses in h fit the requests a: adds to m. */
static void count_hits(const struct lint *l, const struct half *h, const struct asks *a, struct match *m)
{
    uint32_t tried = 0, delay;

    for (size_t i = 0; i < h->num_recs && tried < SAMPLES; i++) {
        const struct rec *r = &l->recs[h->recs[i]];

        if (r->flags & REC_UNUSABLE || !(op_table[r->opcode].properties & OP_IS_RESPONSE))
            continue;
        tried++;
        delay = has_asked(a, r->opcode, r->psn, h->recs[i]);
        m->hits += delay != 0;
        m->delay += delay;
    }
}

/* --- pairing -------------------------------------------------------------------------------------------------------------- */

bool lint_same_interface(const struct half *a, const struct half *b)
{
    return a->key.interface == b->key.interface && a->key.ifindex == b->key.ifindex;
}

bool lint_may_pair(const struct half *a, const struct half *b)
{
    return a != b && a->key.service == b->key.service &&
           (a->key.service == OP_SERVICE_RC || a->key.service == OP_SERVICE_XRC) &&
           memcmp(a->key.src, b->key.dst, 16) == 0 && memcmp(a->key.dst, b->key.src, 16) == 0;
}

static bool fits(uint32_t src_qpn, uint32_t qpn)
{
    return src_qpn == 0 || src_qpn == qpn;
}

/* By all but their PSNs. */
static bool may_connect(const struct half *a, const struct half *b)
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

/* The most common size of full packets; 0: there are none. */
static uint32_t common_size(const struct half *a, const struct half *b)
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

static void find_matches(struct lint *l, struct asks *asks, struct match **matches, size_t *n)
{
    size_t cap = 0;

    for (size_t i = 0; i < l->num_halves; i++) {
        for (size_t j = i + 1; j < l->num_halves; j++) {
            struct match *more, m = {.a = (uint32_t)i, .b = (uint32_t)j};

            if (!may_connect(l->halves[i], l->halves[j]))
                continue;
            m.near = lint_same_interface(l->halves[i], l->halves[j]);
            m.sure = l->halves[i]->key.src_qpn && l->halves[j]->key.src_qpn;
            count_hits(l, l->halves[i], &asks[j], &m);
            count_hits(l, l->halves[j], &asks[i], &m);
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
    struct asks *asks = calloc(l->num_halves + 1, sizeof(*asks));
    struct match *matches = NULL;
    size_t n = 0;

    for (size_t i = 0; i < l->num_halves; i++)
        l->halves[i]->mtu = common_size(l->halves[i], NULL);
    for (size_t i = 0; asks && i < l->num_halves; i++)
        asks[i] = collect(l, l->halves[i]);
    if (asks && !l->no_memory)
        find_matches(l, asks, &matches, &n);
    if (n)
        qsort(matches, n, sizeof(*matches), by_fit);
    for (size_t i = 0; i < n; i++) {
        struct half *a = l->halves[matches[i].a], *b = l->halves[matches[i].b];

        if (a->peer || b->peer)
            continue;
        a->peer = b;
        b->peer = a;
        a->mtu = b->mtu = common_size(a, b);
    }
    for (size_t i = 0; asks && i < l->num_halves; i++)
        free(asks[i].list);
    free(asks);
    free(matches);
}

struct half *lint_asker(struct lint *l, const struct half *h, uint32_t psn, uint32_t before)
{
    for (size_t i = 0; i < l->num_halves; i++) {
        struct half *x = l->halves[i];

        if (x == h->peer || !may_connect(h, x))
            continue;
        for (size_t k = 0; k < x->num_recs && x->recs[k] < before; k++)
            if (l->recs[x->recs[k]].psn == psn && op_table[l->recs[x->recs[k]].opcode].properties & OP_IS_REQUEST)
                return x;
    }
    return NULL;
}
