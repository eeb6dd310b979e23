// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_tm.h"

#include <string.h>

#include "pcap/lint/base/lint_flow.h"
#include "wire/opcode.h"

#define MAX_OPEN 4096 /* number of open rendezvous requests that a search for the request of a READ or FIN looks at */

static bool decode(const struct lint *l, const struct record *r, struct tmh *t, struct rvh *v)
{
    const struct tm_bytes *b = &l->tm[r->tm - 1];
    uint32_t have = b->len < sizeof(b->bytes) ? b->len : (uint32_t)sizeof(b->bytes);

    memset(v, 0, sizeof(*v));
    if (!tmh_decode(b->bytes, have, t))
        return false;
    rvh_decode(b->bytes + TMH_LEN, have - TMH_LEN, v);
    return true;
}

static bool has_rvh(const struct lint *l, const struct record *r)
{
    return l->tm[r->tm - 1].len >= TMH_LEN + RVH_LEN;
}

static struct rndv *add_rndv(struct lint *l, struct flow *flow, uint32_t number, const struct tmh *t,
                             const struct rvh *v)
{
    struct rndv *e = lint_grow(l, flow->rndv, flow->num_rndv, &flow->cap_rndv, sizeof(*e));

    if (!e)
        return NULL;
    flow->rndv = e;
    e += flow->num_rndv;
    *e = (struct rndv){.record = number, .tmh = *t, .rvh = *v, .memory = (uint32_t)flow->num_rndv++};
    return e;
}

static bool reads_from(const struct rndv *e, const struct record *r)
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

/* --- rendezvous that software finishes ------------------------------------------------------------------------------
 *
 * Software may fetch the data of an unexpected rendezvous itself. It uses a QP of its own, because the QP of the
 * request belongs to the device. So the READ and the FIN come on another connection between the same two addresses. */

/* True if the addresses allow a READ or FIN in this flow to belong to a request in the other flow. If both ends have
 * the same address, both flows may be the same one: a program may send to itself. */
static bool may_belong(const struct flow *flow, const struct flow *other)
{
    return other != flow->peer && (lint_may_pair(flow, other) ||
                                   (other == flow && memcmp(flow->key.src, flow->key.dst, sizeof(flow->key.src)) == 0));
}

/* Marks a request as done, because its FIN has come. This also shows that SENDs in the request's flow begin with
 * TMHs. */
static void finish(struct flow *other, struct rndv *e)
{
    struct rndv *m = &other->rndv[e->memory];

    m->offered -= m->offered < e->rvh.len ? m->offered : e->rvh.len;
    e->done = true;
    other->tm = true;
    while (other->first_rndv < other->num_rndv && other->rndv[other->first_rndv].done)
        other->first_rndv++;
}

/* Finishes the request that the FIN in this flow copies. Returns false if there is none. */
static bool finish_on_other_connection(struct lint *l, const struct flow *flow, const struct tmh *t,
                                       const struct rvh *v)
{
    for (size_t i = 0; i < l->num_flows; i++) {
        struct flow *other = l->flows[i];

        for (size_t k = other->first_rndv;
             may_belong(flow, other) && k < other->num_rndv && k < other->first_rndv + MAX_OPEN; k++) {
            if (other->rndv[k].done || !same_tmh(&other->rndv[k].tmh, t) || !same_rvh(&other->rndv[k].rvh, v))
                continue;
            finish(other, &other->rndv[k]);
            return true;
        }
    }
    return false;
}

static bool is_read_of_other_connection(struct lint *l, const struct flow *flow, const struct record *r)
{
    for (size_t i = 0; i < l->num_flows; i++) {
        struct flow *other = l->flows[i];

        for (size_t k = other->first_rndv;
             may_belong(flow, other) && k < other->num_rndv && k < other->first_rndv + MAX_OPEN; k++)
            if (!other->rndv[k].done && other->rndv[k].rvh.rkey == r->rkey && reads_from(&other->rndv[k], r))
                return true;
    }
    return false;
}

/* --- which QPs have tag matching ---------------------------------------------------------------------------------- */

static bool is_listed(const struct lint *l, uint32_t qpn)
{
    for (unsigned i = 0; i < l->options->num_tm_qps; i++)
        if (l->options->tm_qps[i] == qpn)
            return true;
    return false;
}

static void detect_send(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];
    struct tmh t;
    struct rvh v;

    if (!decode(l, r, &t, &v))
        return;
    if (t.opcode == TMH_RNDV && has_rvh(l, r) && v.len) {
        add_rndv(l, flow, number, &t, &v);
    } else if (t.opcode == TMH_FIN && (l->tm[r->tm - 1].len == TMH_LEN || has_rvh(l, r))) {
        for (size_t i = flow->peer->num_rndv, n = 0; i > 0 && n < 64; i--, n++)
            if (same_tmh(&flow->peer->rndv[i - 1].tmh, &t) && t.app_ctx | t.tag)
                flow->tm = flow->peer->tm = true;
        if (!flow->tm && t.app_ctx | t.tag)
            flow->tm = finish_on_other_connection(l, flow, &t, &v);
    }
}

static void detect_read(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];

    for (size_t i = flow->peer->num_rndv, n = 0; i > 0 && n < 64; i--, n++) {
        const struct rndv *e = &flow->peer->rndv[i - 1];

        if (e->rvh.rkey == r->rkey && reads_from(e, r))
            flow->tm = flow->peer->tm = true;
    }
}

void lint_tm_detect(struct lint *l)
{
    if (l->options->tm == LINT_TM_OFF)
        return;
    for (size_t i = 0; l->options->tm == LINT_TM_LISTED && i < l->num_flows; i++)
        l->flows[i]->tm = is_listed(l, l->flows[i]->key.qpn);
    for (size_t i = 0; l->options->tm == LINT_TM_AUTO && i < l->num_recs; i++) {
        struct flow *flow = l->flows[l->recs[i].flow];

        if (!flow->peer || l->recs[i].flags & RECORD_UNUSABLE)
            continue;
        if (l->recs[i].tm)
            detect_send(l, flow, (uint32_t)i);
        else if ((l->recs[i].opcode & OP_OPERATION_MASK) == OP_READ_REQUEST)
            detect_read(l, flow, (uint32_t)i);
    }
    for (size_t i = 0; i < l->num_flows; i++)
        l->flows[i]->num_rndv = l->flows[i]->first_rndv = 0;
}

/* --- READs --------------------------------------------------------------------------------------------------------
 *
 * Several open requests may offer the same memory, and a READ does not say which of them it serves. So READs are counted
 * for the memory. The first open request for it holds the counters. */

static void count_memory(struct flow *flow, struct rndv *e)
{
    for (size_t i = flow->first_rndv; i < flow->num_rndv - 1 && i < flow->first_rndv + MAX_OPEN; i++) {
        if (flow->rndv[i].done || !same_rvh(&flow->rndv[i].rvh, &e->rvh))
            continue;
        e->memory = flow->rndv[i].memory;
        break;
    }
    flow->rndv[e->memory].offered += e->rvh.len;
}

/* Finds the open rendezvous of a READ; NULL: none. *exact is true if key and address fit; otherwise one of them is
 * wrong. Several requests may offer the same address, and some of them may never get an answer. So this takes the first
 * request whose memory still has enough unread bytes. */
static struct rndv *find_rndv(struct flow *flow, const struct record *r, bool *exact)
{
    struct flow *other = flow->peer;
    struct rndv *near = NULL, *inside = NULL;

    for (size_t i = other->first_rndv; i < other->num_rndv && i < other->first_rndv + MAX_OPEN; i++) {
        struct rndv *e = &other->rndv[i], *m = &other->rndv[e->memory];

        if (e->done)
            continue;
        *exact = e->rvh.rkey == r->rkey && reads_from(e, r);
        if (*exact && r->dmalen <= e->rvh.len - (r->va - e->rvh.va) && m->asked + r->dmalen <= m->offered)
            return e;
        if (*exact && !inside)
            inside = e;
        if (!near && (reads_from(e, r) || (e->rvh.rkey == r->rkey && m->asked < m->offered)))
            near = e;
    }
    *exact = inside != NULL;
    return inside ? inside : near;
}

void lint_tm_read(struct lint *l, struct flow *flow, uint32_t number)
{
    struct record *r = &l->recs[number];
    bool exact;

    if (!flow->peer || !flow->peer->tm)
        return;
    struct rndv *e = find_rndv(flow, r, &exact);
    if (!e || (!exact && is_read_of_other_connection(l, flow, r)))
        return; /* the program's own READ, not one of a rendezvous */
    if (!exact)
        lint_report(l, LINT_TM_READ, r->frame,
                    "READ of va 0x%llx, rkey 0x%x; the request in frame %u offers va 0x%llx, rkey 0x%x",
                    (unsigned long long)r->va, r->rkey, l->recs[e->record].frame, (unsigned long long)e->rvh.va,
                    e->rvh.rkey);
    else if (r->dmalen > e->rvh.len - (r->va - e->rvh.va))
        lint_report(l, LINT_TM_READ, r->frame, "READ of %u bytes; the request in frame %u offers %u", r->dmalen,
                    l->recs[e->record].frame, e->rvh.len);
    flow->peer->rndv[e->memory].asked += r->dmalen;
    r->rndv = e->memory + 1;
}

void lint_tm_read_done(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];

    if (r->rndv)
        flow->peer->rndv[r->rndv - 1].fetched += r->dmalen;
}

/* Judges the READs of request e, whose FIN has come, and takes their bytes from the counters. If the READs can all be
 * those of other requests, e was served in another way. */
static void settle_reads(struct lint *l, struct flow *other, const struct rndv *e, const struct record *fin)
{
    struct rndv *m = &other->rndv[e->memory];
    uint64_t len = e->rvh.len;

    if (m->fetched < len && m->asked + len > m->offered)
        lint_report_unless(l, lint_may_lack_packets(l), LINT_TM_FIN_EARLY, fin->frame,
                           "FIN for the request in frame %u, but READs have fetched only %llu of its %u bytes",
                           l->recs[e->record].frame, (unsigned long long)m->fetched, e->rvh.len);
    m->asked -= m->asked < len ? m->asked : len;
    m->fetched -= m->fetched < len ? m->fetched : len;
}

/* --- SENDs -------------------------------------------------------------------------------------------------------- */

static void on_fin(struct lint *l, struct flow *flow, const struct record *r, const struct tmh *t, const struct rvh *v)
{
    struct flow *other = flow->peer;
    struct rndv *e = NULL;
    bool whole = has_rvh(l, r);

    size_t most = other->first_rndv + MAX_OPEN < other->num_rndv ? other->first_rndv + MAX_OPEN : other->num_rndv;

    for (size_t i = other->first_rndv; !e && i < most; i++) /* the request that the FIN copies */
        if (!other->rndv[i].done && same_tmh(&other->rndv[i].tmh, t) &&
            (!whole || other->rndv[i].no_rvh || same_rvh(&other->rndv[i].rvh, v)))
            e = &other->rndv[i];
    if (!e && whole && finish_on_other_connection(l, flow, t, v))
        return;
    if (!e) {
        for (size_t i = other->first_rndv; !e && i < most; i++) /* or a wrong copy of the oldest open one */
            if (!other->rndv[i].done)
                e = &other->rndv[i];
        if (!e) {
            lint_report_unless(l, l->options->incomplete || other->reported_midway, LINT_TM_FIN_UNASKED, r->frame,
                               "FIN with tag 0x%llx, but no rendezvous request is open", (unsigned long long)t->tag);
            return;
        }
        lint_report(l, LINT_TM_FIN_COPY, r->frame,
                    "FIN with tag 0x%llx, context 0x%x is no copy of the request in frame %u",
                    (unsigned long long)t->tag, t->app_ctx, l->recs[e->record].frame);
        finish(other, e);
        return;
    }
    settle_reads(l, other, e, r);
    finish(other, e);
}

void lint_tm_send(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];
    const struct tm_bytes *b = &l->tm[r->tm - 1];
    struct tmh t;
    struct rvh v;

    if (b->len == 0 || b->bytes[0] == TMH_NO_TAG)
        return;
    if (b->bytes[0] > TMH_EAGER) {
        lint_report(l, LINT_TM_OPCODE, r->frame, "the TMH has operation %u, which is not assigned", b->bytes[0]);
        return;
    }
    if (!decode(l, r, &t, &v) || (t.opcode == TMH_RNDV && !has_rvh(l, r))) {
        lint_report(l, LINT_TM_SHORT, r->frame, "%u bytes are too short for a TMH%s", b->len,
                    b->bytes[0] == TMH_RNDV ? " and an RVH" : "");
        if (b->len >= TMH_LEN) { /* keep the request, so that its READs and FIN can be judged */
            struct rndv *e = add_rndv(l, flow, number, &t, &v);

            if (e)
                e->no_rvh = true;
        }
        return;
    }
    if (t.opcode == TMH_RNDV) {
        struct rndv *e = add_rndv(l, flow, number, &t, &v);

        if (e)
            count_memory(flow, e);
    } else if (t.opcode == TMH_FIN && flow->peer)
        on_fin(l, flow, r, &t, &v);
}

void lint_tm_end(struct lint *l, struct flow *flow)
{
    for (size_t i = flow->first_rndv; flow->tm && i < flow->num_rndv; i++)
        if (!flow->rndv[i].done)
            lint_report(l, LINT_TM_NO_FIN, l->recs[flow->rndv[i].record].frame, "this rendezvous request gets no FIN");
}
