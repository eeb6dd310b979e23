// SPDX-License-Identifier: BSD-2-Clause
/* Rules of tag matching: a rendezvous request offers memory; the receiver READs just that, and then answers with a FIN, a copy of
 * the request but for its operation. */
#include <string.h>

#include "pcap/lint/lint_priv.h"

#define MOST_OPEN 4096 /* requests that a READ or FIN is looked for among */

static bool decode(const struct lint *l, const struct rec *r, struct tmh *t, struct rvh *v)
{
    const struct tm_bytes *b = &l->tm[r->tm - 1];
    uint32_t have = b->len < sizeof(b->bytes) ? b->len : (uint32_t)sizeof(b->bytes);

    memset(v, 0, sizeof(*v));
    if (!tmh_decode(b->bytes, have, t))
        return false;
    rvh_decode(b->bytes + TMH_LEN, have - TMH_LEN, v);
    return true;
}

static bool has_rvh(const struct lint *l, const struct rec *r)
{
    return l->tm[r->tm - 1].len >= TMH_LEN + RVH_LEN;
}

static struct rndv *add(struct lint *l, struct half *h, uint32_t number, const struct tmh *t, const struct rvh *v)
{
    struct rndv *e = lint_grow(l, h->rndv, h->num_rndv, &h->cap_rndv, sizeof(*e));

    if (!e)
        return NULL;
    h->rndv = e;
    e += h->num_rndv++;
    *e = (struct rndv){.rec = number, .tmh = *t, .rvh = *v};
    return e;
}

static bool reads_from(const struct rndv *e, const struct rec *r)
{
    return r->va >= e->rvh.va && r->va - e->rvh.va < e->rvh.len;
}

static bool same_tmh(const struct tmh *a, const struct tmh *b)
{
    return a->app_ctx == b->app_ctx && a->tag == b->tag && memcmp(a->reserved, b->reserved, sizeof(a->reserved)) == 0;
}

static bool same_rvh(const struct rvh *a, const struct rvh *b)
{
    return a->va == b->va && a->rkey == b->rkey && a->len == b->len;
}

/* --- software --------------------------------------------------------------------------------------------------------------
 * Software, too, may fetch what was unexpected. It has to use a QP of its own, since that of the request belongs to the device: so
 * its READ and its FIN come on another connection of the same two ends. */

/* May what comes in h be about requests in x, by its addresses? If both ends have the same address, they may even be one program that
 * sends to itself. */
static bool other_way(const struct half *h, const struct half *x)
{
    return x != h->peer && (lint_may_pair(h, x) || (x == h && memcmp(h->key.src, h->key.dst, sizeof(h->key.src)) == 0));
}

/* A FIN for the request has come; then what comes in x begins with TMHs. */
static void finish(struct half *x, struct rndv *e)
{
    e->done = true;
    x->tm = true;
    while (x->first_rndv < x->num_rndv && x->rndv[x->first_rndv].done)
        x->first_rndv++;
}

/* Ends the request that the FIN in h copies; false: there is none. */
static bool finish_elsewhere(struct lint *l, const struct half *h, const struct tmh *t, const struct rvh *v)
{
    for (size_t i = 0; i < l->num_halves; i++) {
        struct half *x = l->halves[i];

        for (size_t k = x->first_rndv; other_way(h, x) && k < x->num_rndv && k < x->first_rndv + MOST_OPEN; k++) {
            if (x->rndv[k].done || !same_tmh(&x->rndv[k].tmh, t) || !same_rvh(&x->rndv[k].rvh, v))
                continue;
            finish(x, &x->rndv[k]);
            return true;
        }
    }
    return false;
}

static bool read_elsewhere(struct lint *l, const struct half *h, const struct rec *r)
{
    for (size_t i = 0; i < l->num_halves; i++) {
        struct half *x = l->halves[i];

        for (size_t k = x->first_rndv; other_way(h, x) && k < x->num_rndv && k < x->first_rndv + MOST_OPEN; k++)
            if (!x->rndv[k].done && x->rndv[k].rvh.rkey == r->rkey && reads_from(&x->rndv[k], r))
                return true;
    }
    return false;
}

/* --- which QPs have tag matching ------------------------------------------------------------------------------------------ */

static bool is_listed(const struct lint *l, uint32_t qpn)
{
    for (unsigned i = 0; i < l->options->num_tm_qps; i++)
        if (l->options->tm_qps[i] == qpn)
            return true;
    return false;
}

static void detect_send(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];
    struct tmh t;
    struct rvh v;

    if (!decode(l, r, &t, &v))
        return;
    if (t.opcode == TMH_RNDV && has_rvh(l, r) && v.len) {
        add(l, h, number, &t, &v);
    } else if (t.opcode == TMH_FIN && (l->tm[r->tm - 1].len == TMH_LEN || has_rvh(l, r))) {
        for (size_t i = h->peer->num_rndv, n = 0; i > 0 && n < 64; i--, n++)
            if (same_tmh(&h->peer->rndv[i - 1].tmh, &t) && t.app_ctx | t.tag)
                h->tm = h->peer->tm = true;
        if (!h->tm && t.app_ctx | t.tag)
            h->tm = finish_elsewhere(l, h, &t, &v);
    }
}

static void detect_read(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];

    for (size_t i = h->peer->num_rndv, n = 0; i > 0 && n < 64; i--, n++) {
        const struct rndv *e = &h->peer->rndv[i - 1];

        if (e->rvh.rkey == r->rkey && reads_from(e, r))
            h->tm = h->peer->tm = true;
    }
}

void lint_tm_detect(struct lint *l)
{
    if (l->options->tm == LINT_TM_OFF)
        return;
    for (size_t i = 0; l->options->tm == LINT_TM_LISTED && i < l->num_halves; i++)
        l->halves[i]->tm = is_listed(l, l->halves[i]->key.qpn);
    for (size_t i = 0; l->options->tm == LINT_TM_AUTO && i < l->num_recs; i++) {
        struct half *h = l->halves[l->recs[i].half];

        if (!h->peer || l->recs[i].flags & REC_UNUSABLE)
            continue;
        if (l->recs[i].tm)
            detect_send(l, h, (uint32_t)i);
        else if ((l->recs[i].opcode & OP_OPERATION_MASK) == OP_READ_REQUEST)
            detect_read(l, h, (uint32_t)i);
    }
    for (size_t i = 0; i < l->num_halves; i++)
        l->halves[i]->num_rndv = l->halves[i]->first_rndv = 0;
}

/* --- READs --------------------------------------------------------------------------------------------------------------- */

/* The open rendezvous that the READ is for. *exact: by key and address; else something in it is wrong. Requests that nobody will ever answer may
 * offer the same address, so the first is taken of which so much is still to be read. */
static struct rndv *find_for(struct half *h, const struct rec *r, bool *exact)
{
    struct rndv *near = NULL, *inside = NULL;

    for (size_t i = h->peer->first_rndv; i < h->peer->num_rndv && i < h->peer->first_rndv + MOST_OPEN; i++) {
        struct rndv *e = &h->peer->rndv[i];

        if (e->done)
            continue;
        *exact = e->rvh.rkey == r->rkey && reads_from(e, r);
        if (*exact && r->dmalen <= e->rvh.len - (r->va - e->rvh.va) && e->read + r->dmalen <= e->rvh.len)
            return e;
        if (*exact && !inside)
            inside = e;
        if (!near && (reads_from(e, r) || (e->rvh.rkey == r->rkey && e->read < e->rvh.len)))
            near = e;
    }
    *exact = inside != NULL;
    return inside ? inside : near;
}

void lint_tm_read(struct lint *l, struct half *h, uint32_t number)
{
    struct rec *r = &l->recs[number];
    struct rndv *e;
    bool exact;

    if (!h->peer || !h->peer->tm)
        return;
    e = find_for(h, r, &exact);
    if (!e || (!exact && read_elsewhere(l, h, r)))
        return; /* the program's own */
    if (!exact)
        lint_tell(l, LINT_TM_READ, r->frame,
                  "READ of va 0x%llx, rkey 0x%x; the request in frame %u offers va 0x%llx, rkey 0x%x",
                  (unsigned long long)r->va, r->rkey, l->recs[e->rec].frame, (unsigned long long)e->rvh.va,
                  e->rvh.rkey);
    else if (r->dmalen > e->rvh.len - (r->va - e->rvh.va))
        lint_tell(l, LINT_TM_READ, r->frame, "READ of %u bytes; the request in frame %u offers %u", r->dmalen,
                  l->recs[e->rec].frame, e->rvh.len);
    e->read += r->dmalen;
    e->open_reads++;
    r->rndv = (uint32_t)(e - h->peer->rndv) + 1;
}

void lint_tm_read_done(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];

    if (r->rndv && h->peer->rndv[r->rndv - 1].open_reads)
        h->peer->rndv[r->rndv - 1].open_reads--;
}

static bool fetched(const struct rndv *e)
{
    return !e->open_reads && e->read >= e->rvh.len;
}

/* Several requests may offer the same memory, and then any of them may be what a READ is for: the first READ may have been lost
 * before the capture had it, so that the second seemed to be the first. A FIN says which it was. If e's data aren't complete,
 * but those of one with the same memory are, the two trade their READs, which h has sent. */
static void trade_reads(struct lint *l, struct half *h, struct rndv *e, size_t most)
{
    struct half *x = h->peer;
    uint32_t its = (uint32_t)(e - x->rndv) + 1, other;
    struct rndv *f = NULL, kept = *e;

    for (size_t i = x->first_rndv; !f && i < most; i++)
        if (!x->rndv[i].done && same_rvh(&x->rndv[i].rvh, &e->rvh) && fetched(&x->rndv[i]))
            f = &x->rndv[i];
    if (!f)
        return;
    other = (uint32_t)(f - x->rndv) + 1;
    for (size_t i = h->num_sent, n = 0; i > 0 && n < MOST_OPEN; i--, n++) {
        struct rec *r = &l->recs[h->sent[i - 1].rec];

        if (r->rndv == its || r->rndv == other)
            r->rndv = r->rndv == its ? other : its;
    }
    e->read = f->read;
    e->open_reads = f->open_reads;
    f->read = kept.read;
    f->open_reads = kept.open_reads;
}

/* --- SENDs --------------------------------------------------------------------------------------------------------------- */

static void fin(struct lint *l, struct half *h, const struct rec *r, const struct tmh *t, const struct rvh *v)
{
    struct half *x = h->peer;
    struct rndv *e = NULL;
    bool whole = has_rvh(l, r);

    size_t most = x->first_rndv + MOST_OPEN < x->num_rndv ? x->first_rndv + MOST_OPEN : x->num_rndv;

    for (size_t i = x->first_rndv; !e && i < most; i++) /* the request itself */
        if (!x->rndv[i].done && same_tmh(&x->rndv[i].tmh, t) &&
            (!whole || x->rndv[i].bare || same_rvh(&x->rndv[i].rvh, v)))
            e = &x->rndv[i];
    if (!e && whole && finish_elsewhere(l, h, t, v))
        return;
    if (!e) {
        for (size_t i = x->first_rndv; !e && i < most; i++) /* or what it may have been copied from */
            if (!x->rndv[i].done)
                e = &x->rndv[i];
        if (!e) {
            lint_tell_unless(l, l->options->incomplete || x->told_midway, LINT_TM_FIN_UNASKED, r->frame,
                             "FIN with tag 0x%llx, without a request that is open", (unsigned long long)t->tag);
            return;
        }
        lint_tell(l, LINT_TM_FIN_COPY, r->frame,
                  "FIN with tag 0x%llx, context 0x%x is no copy of the request in frame %u", (unsigned long long)t->tag,
                  t->app_ctx, l->recs[e->rec].frame);
        finish(x, e);
        return;
    }
    if (e->read && !fetched(e))
        trade_reads(l, h, e, most);
    if (e->read && !fetched(e))
        lint_tell_unless(
            l, l->options->incomplete || l->lost, LINT_TM_FIN_EARLY, r->frame,
            "FIN for the request in frame %u, of which %llu of %u bytes were asked for and %u READs are open",
            l->recs[e->rec].frame, (unsigned long long)e->read, e->rvh.len, e->open_reads);
    finish(x, e);
}

void lint_tm_send(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];
    const struct tm_bytes *b = &l->tm[r->tm - 1];
    struct tmh t;
    struct rvh v;

    if (b->len == 0 || b->bytes[0] == TMH_NO_TAG)
        return;
    if (b->bytes[0] > TMH_EAGER) {
        lint_tell(l, LINT_TM_OPCODE, r->frame, "operation %u in a TMH", b->bytes[0]);
        return;
    }
    if (!decode(l, r, &t, &v) || (t.opcode == TMH_RNDV && !has_rvh(l, r))) {
        lint_tell(l, LINT_TM_SHORT, r->frame, "%u bytes are no TMH%s", b->len,
                  b->bytes[0] == TMH_RNDV ? " with RVH" : "");
        if (b->len >= TMH_LEN) { /* what follows is judged as far as it can be */
            struct rndv *e = add(l, h, number, &t, &v);

            if (e)
                e->bare = true;
        }
        return;
    }
    if (t.opcode == TMH_RNDV)
        add(l, h, number, &t, &v);
    else if (t.opcode == TMH_FIN && h->peer)
        fin(l, h, r, &t, &v);
}

void lint_tm_end(struct lint *l, struct half *h)
{
    for (size_t i = h->first_rndv; h->tm && i < h->num_rndv; i++)
        if (!h->rndv[i].done)
            lint_tell(l, LINT_TM_NO_FIN, l->recs[h->rndv[i].rec].frame, "no FIN for this rendezvous request");
}
