// SPDX-License-Identifier: BSD-2-Clause
/* SRQs: their users, and a model of the receive that each message takes.
 *
 * pool_rx passes packets to a QP with a pool into the engine one by one and observes it. The expected PSN before and
 * after shows which packets were accepted, and so which messages have taken a receive: the oldest one. The
 * results of the engine must agree with this model: completions, RNR NAKs, limit events, and the number of receives
 * left. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define POISON 0xdb

/* --- drawing ----------------------------------------------------------------------------------- */

static struct pool *add_pool(struct sim *s, struct end *home, uint32_t xrcd)
{
    struct pool *p = &s->pool[s->npools];
    *p = (struct pool){.sim = s, .index = s->npools++, .host = home->host, .home = home, .xrcd = xrcd};
    p->refill = prng_chance(&s->rng, 300);
    p->resizes = prng_chance(&s->rng, 300);
    p->first = xrcd && prng_chance(&s->rng, 500);
    return p;
}

#define ROGUE_DOMAIN 9000u /* no other end uses this domain */

/* The rogue pair has its own SRQs and its own domain. Its packets must not touch those of other pairs, whatever they
 * name. */
static void draw_rogue_pools(struct sim *s)
{
    struct end *ini = &s->end[0], *tgt = ini->peer;
    int first = s->npools;
    if (!ini->rogue || !prng_chance(&s->rng, 800)) {
        return;
    }
    if (ini != tgt && prng_chance(&s->rng, 700)) {
        ini->type = QPT_XRC_SEND;
        tgt->type = QPT_XRC_RECV;
        tgt->xrcd = ROGUE_DOMAIN;
        tgt->host = prng_chance(&s->rng, 500) ? ini->host : tgt->host;
        add_pool(s, tgt, ROGUE_DOMAIN);
        if (ini->host == tgt->host) { /* with two pools, a message may change its SRQ number */
            add_pool(s, ini, ROGUE_DOMAIN);
        }
    } else {
        tgt->pool = add_pool(s, tgt, 0);
    }
    for (int i = first; i < s->npools; i++) {
        s->pool[i].rogue = true;
    }
}

static void draw_types(struct sim *s)
{
    struct prng *r = &s->rng;
    uint32_t share = (uint32_t)prng_pick(r, 0, 500, 1000);
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *ini = &s->end[i];
        struct end *tgt = ini->peer;
        if (tgt->index > i && !ini->rogue && prng_chance(r, share)) {
            ini->type = QPT_XRC_SEND;
            tgt->type = QPT_XRC_RECV;
            tgt->rts_at = prng_chance(r, 300) ? NEVER : tgt->rts_at; /* a QP can receive without RTS */
        }
    }
}

/* Up to three SRQs on a host with XRC targets, in one or two domains. */
static void draw_xrc_pools(struct sim *s, int host)
{
    struct prng *r = &s->rng;
    bool targets = false;
    int first = s->npools, most = (int)prng_range(r, 1, 3);
    uint32_t domains = (uint32_t)prng_range(r, 1, 2);
    for (int i = 0; i < s->sc.nends; i++) {
        targets |= s->end[i].host == host && s->end[i].type == QPT_XRC_RECV && !s->end[i].rogue;
    }
    for (int i = 0; i < s->sc.nends && targets; i++) {
        struct end *e = &s->end[i];
        int n = s->npools - first;
        if (e->host == host && e->type != QPT_RC && !e->rogue && n < most && s->npools < MAX_POOLS) {
            add_pool(s, e, 1000u * (uint32_t)(host + 1) + (uint32_t)n % domains);
        }
    }
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host == host && e->type == QPT_XRC_RECV && !e->rogue) {
            if (s->npools == first) { /* there is no room for a pool: make it an ordinary connection */
                e->type = e->peer->type = QPT_RC;
                e->rts_at = e->rts_at == NEVER ? e->rtr_at : e->rts_at;
                continue;
            }
            e->xrcd = s->pool[prng_range(r, (uint64_t)first, (uint64_t)s->npools - 1)].xrcd;
        }
    }
}

static void draw_basic_pool(struct sim *s, int host)
{
    struct pool *p = NULL;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host == host && e->type == QPT_RC && !e->rogue && s->npools < MAX_POOLS + (p != NULL) &&
            prng_chance(&s->rng, 700)) {
            p = p ? p : add_pool(s, e, 0);
            e->pool = p;
        }
    }
}

void pools_draw(struct sim *s, bool xrc)
{
    draw_rogue_pools(s);
    if (xrc) {
        draw_types(s);
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        draw_xrc_pools(s, i);
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        draw_basic_pool(s, i);
    }
}

void pool_script(struct sim *s, bool xrc)
{
    struct end *e = &s->end[1];
    struct pool *p = add_pool(s, e, xrc ? 7 : 0);
    p->refill = p->resizes = p->first = false;
    if (xrc) {
        e->type = QPT_XRC_RECV;
        e->peer->type = QPT_XRC_SEND;
        e->xrcd = p->xrcd;
    } else {
        e->pool = p;
    }
}

struct pool *pool_draw(struct end *e)
{
    struct sim *s = e->sim;
    const struct end *p = e->peer;
    if (p->type != QPT_XRC_RECV) {
        return p->pool;
    }
    if (e->nops > 0 && prng_chance(&s->rng, 500)) {
        return e->op[e->nops - 1].pool;
    }
    for (;;) { /* one exists: the domain was chosen from the pools */
        struct pool *q = &s->pool[prng_range(&s->rng, 0, (uint64_t)s->npools - 1)];
        if (q->host == p->host && q->xrcd == p->xrcd) {
            return q;
        }
    }
}

struct pool *pool_alien(struct sim *s, const struct end *target)
{
    for (int i = 0; i < s->npools; i++) {
        if (s->pool[i].host == target->host && s->pool[i].xrcd != target->xrcd) {
            return &s->pool[i];
        }
    }
    return NULL;
}

/* Each message may take any receive of its pool, so all must be long enough. */
void pools_draw_recvs(struct sim *s, bool limits, bool ample)
{
    struct prng *r = &s->rng;
    for (int i = 0; i < s->npools; i++) {
        struct pool *p = &s->pool[i];
        uint32_t most = 0;
        int n = (int)prng_pick(r, 0, 0, 3);
        for (int k = 0; k < s->sc.nends; k++) {
            const struct end *e = &s->end[k];
            for (int j = 0; j < e->nops; j++) {
                const struct op *o = &e->op[j];
                if (o->pool == p && op_takes_recv(o->opcode)) {
                    most = o->opcode != WR_RDMA_WRITE_WITH_IMM && o->len > most ? o->len : most;
                    n++;
                }
            }
        }
        for (int k = 0; k < n; k++) {
            ops_draw_recv(p->home, most);
        }
        p->max_wr = ample ? MAX_RCV : (uint32_t)prng_pick(r, 2, 5, 16, MAX_RCV);
        p->limit = limits && !p->rogue && n > 0 && prng_chance(r, 700) ? (uint32_t)prng_range(r, 1, (uint64_t)n) : 0;
        p->rearms = (int)prng_pick(r, 0, 1, 5);
    }
}

/* --- life -------------------------------------------------------------------------------------- */

static void *memory(const struct pool *p, uint32_t max_wr)
{
    size_t len = srq_size(max_wr, p->home->caps.max_recv_sge);
    sim_require(p->sim, len > 0, "pool %d: srq_size refuses", p->index);
    void *m = aligned_alloc(64, (len + 63) / 64 * 64);
    if (!m) {
        abort();
    }
    return memset(m, 0, len);
}

void pools_build(struct sim *s, int index)
{
    struct pool *p = &s->pool[index];
    struct srq_init init = {.pd = p->home->pd,
                            .xrcd = p->xrcd,
                            .max_wr = p->max_wr,
                            .max_sge = p->home->caps.max_recv_sge,
                            .cq = p->xrcd ? p : NULL,
                            .owner = p};
    p->mem = memory(p, p->max_wr);
    int err = srq_create(s->host[p->host].e, &init, p->mem, &p->srq);
    sim_require(s, err == 0, "pool %d: srq_create: %d", index, err);
    p->number = srq_number(p->srq);
    srq_set_limit(p->srq, p->limit);
    p->plenty = !p->resizes && !p->rogue && p->max_wr >= (uint32_t)p->home->nrcv;
    for (int i = 0; i < p->home->nrcv; i++) {
        p->plenty = p->plenty && p->home->rcv[i].at == 0;
    }
}

void pools_free(struct sim *s)
{
    for (int i = 0; i < s->npools; i++) {
        free(s->pool[i].mem);
    }
}

void pools_destroy(struct sim *s, bool first)
{
    for (int i = 0; i < s->npools; i++) {
        struct pool *p = &s->pool[i];
        if (p->first != first) {
            continue;
        }
        sim_require(s, srq_destroy(p->srq) == 0, "pool %d: srq_destroy", i);
        memset(p->mem, POISON, srq_size(p->max_wr, p->home->caps.max_recv_sge));
    }
}

struct pool *pool_of(struct host *h, const void *owner)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->npools; i++) {
        if (&s->pool[i] == owner && s->pool[i].host == h->index) {
            return &s->pool[i];
        }
    }
    sim_fail(s, "host %d: something of an SRQ that it doesn't have", h->index);
}

/* --- posting ----------------------------------------------------------------------------------- */

void pool_fill(struct pool *p)
{
    struct end *e = p->home;
    while (e->rposted < e->offered && srq_room(p->srq) > 0) {
        const struct rcv *v = &e->rcv[e->rposted];
        struct sge sge[MAX_SEGS];
        struct recv_wr wr = {v->wr_id, (uint32_t)(1000 * (e->index + 1) + e->rposted), v->nseg};
        for (unsigned i = 0; i < v->nseg; i++) {
            sge[i] = (struct sge){seg_addr(e, &v->seg[i]), v->seg[i].len, seg_key(e, &v->seg[i])};
        }
        int err = srq_post_recv(p->srq, &wr, sge);
        sim_require(p->sim, err == 0, "pool %d: srq_post_recv %d: %d", p->index, e->rposted, err);
        memset(sge, POISON, sizeof sge);
        e->rposted++;
    }
}

static void resize(struct pool *p)
{
    struct prng *r = &p->sim->rng;
    uint32_t outstanding = p->max_wr - srq_room(p->srq);
    uint32_t max_wr = (uint32_t)prng_range(r, outstanding ? outstanding : 1, MAX_RCV);
    struct srq *bigger = NULL;
    void *mem = memory(p, max_wr);
    int err = srq_resize(p->srq, max_wr, mem, &bigger);
    sim_require(p->sim, err == 0, "pool %d: srq_resize from %u to %u: %d", p->index, p->max_wr, max_wr, err);
    memset(p->mem, POISON, srq_size(p->max_wr, p->home->caps.max_recv_sge));
    free(p->mem);
    p->mem = mem;
    p->srq = bigger;
    p->max_wr = max_wr;
}

void pools_post(struct host *h)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->npools; i++) {
        struct pool *p = &s->pool[i];
        struct end *e = p->home;
        if (p->host != h->index) {
            continue;
        }
        if (p->resizes && prng_chance(&s->rng, 30)) {
            resize(p);
        }
        while (e->offered < e->nrcv && e->rcv[e->offered].at <= s->now) {
            e->offered++;
        }
        if (!p->refill) {
            pool_fill(p);
        }
    }
}

/* --- the model --------------------------------------------------------------------------------- */

static uint32_t queued(const struct pool *p)
{
    return (uint32_t)(p->home->rposted - p->next + p->nback);
}

/* The number of receives that the engine has if it asks for all that fit into `room`. */
static uint32_t available(const struct pool *p, uint32_t room)
{
    uint32_t more = p->refill ? (uint32_t)(p->home->offered - p->home->rposted) : 0;
    return queued(p) + (more < room ? more : room);
}

/* A message has asked for a receive. */
static void check_limit(struct pool *p, uint32_t room)
{
    if (available(p, room) < p->limit) {
        p->limit = 0;
        p->due++;
    }
}

static void taken(struct end *e, struct op *o, bool ends)
{
    struct sim *s = e->sim;
    struct pool *p = o->pool;
    sim_require(s, queued(p) > 0, "end %d: has taken a receive of pool %d, which has none", e->index, p->index);
    o->recv = p->nback > 0 ? p->back[--p->nback] : p->next++;
    capture_note(s, "end %d: message %d takes receive %d of pool %d", e->index, (int)(o - e->peer->op), o->recv,
                 p->index);
    check_limit(p, srq_room(p->srq) - ends); /* a completing message frees its place only afterwards */
}

static void refused(struct end *e, struct op *o)
{
    struct sim *s = e->sim;
    struct pool *p = o->pool;
    sim_require(s, op_takes_recv(o->opcode), "end %d: RNR NAK for what needs no receive", e->index);
    sim_require(s, available(p, srq_room(p->srq)) == 0, "end %d: RNR NAK, but pool %d has %u receives", e->index,
                p->index, queued(p));
    check_limit(p, srq_room(p->srq));
}

static struct op *op_at(struct end *requester, uint32_t rel)
{
    for (int i = 0; i < requester->posted; i++) {
        struct op *o = &requester->op[i];
        if (rel >= o->rel && rel < o->rel + o->npsn) {
            return o;
        }
    }
    return NULL;
}

static struct end *watched(struct host *h, uint32_t qpn)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host == h->index && e->qpn == qpn && e->qp && !e->closed) {
            return has_rq(e) || e->type == QPT_XRC_SEND || e->rogue ? NULL : e;
        }
    }
    return NULL;
}

bool pool_counts_packets(struct host *h, uint32_t qpn)
{
    const struct end *e = watched(h, qpn);
    return e && e->resets;
}

void pool_rx(struct host *h, const struct pkt *k, const struct pkt_run *run, const struct rx_meta *meta)
{
    struct sim *s = h->sim;
    struct end *e = watched(h, k->dest_qpn);
    struct qp_info before, after;
    if (e) {
        qp_info(e->qp, &before);
    }
    dgram_rx(h, k, run, meta);
    if (!e) {
        return;
    }
    qp_info(e->qp, &after);
    uint32_t end = psn_rel(e->peer, after.epsn);
    struct op *o = NULL;
    bool last = true;
    /* A packet that fills a gap lets those behind it pass, too. A run has several. */
    for (uint32_t rel = psn_rel(e->peer, before.epsn); rel < end; rel++) {
        o = op_at(e->peer, rel);
        sim_require(s, o, "end %d: accepts PSN %u, which was never sent", e->index, rel);
        bool first = rel == o->rel, write = o->opcode == WR_RDMA_WRITE_WITH_IMM;
        last = rel + 1 == o->rel + o->npsn;
        if (op_takes_recv(o->opcode) && (write ? last : first)) {
            taken(e, o, o->rel + o->npsn <= end);
        }
    }
    if (after.counters.send_rnr_err != before.counters.send_rnr_err) {
        o = op_at(e->peer, end);
        sim_require(s, o, "end %d: refuses PSN %u, which was never sent", e->index, end);
        refused(e, o);
        return;
    }
    if (o && e->resets && !last && o->recv >= 0 && prng_chance(&s->rng, 300)) {
        e->resets = false;
        uint64_t when = s->now + prng_range(&s->rng, 0, 2 * US);
        evq_push(&s->events, (struct timed){.at = when, .kind = EV_STEP, .n = e->index, .v = STEP_RESET});
    }
}

void pool_left(struct end *e)
{
    for (int i = 0; i < e->peer->posted; i++) {
        struct op *o = &e->peer->op[i];
        if (o->pool && o->recv >= 0 && !o->returned && !o->pool->home->rcv[o->recv].done) {
            o->pool->back[o->pool->nback++] = o->recv;
            o->returned = true;
        }
    }
}

void pool_event(struct pool *p, uint8_t type)
{
    struct sim *s = p->sim;
    sim_require(s, type == EVENT_SRQ_LIMIT_REACHED && p->due > 0, "pool %d: event %u, which nothing explains", p->index,
                type);
    p->due--;
    capture_note(s, "pool %d: limit reached", p->index);
    sim_require(s, srq_limit(p->srq) == 0, "pool %d: the limit is still armed", p->index);
    if (p->rearms > 0) {
        p->rearms--;
        p->limit = (uint32_t)prng_range(&s->rng, 1, (uint64_t)p->home->nrcv);
        srq_set_limit(p->srq, p->limit);
    }
}

/* For rogue pools only the number of receives is known, not which ones they are. */
static void check_rogues(struct sim *s)
{
    uint32_t known = 0, found = 0;
    for (int i = 0; i < s->npools; i++) {
        const struct pool *p = &s->pool[i];
        known += p->rogue ? (uint32_t)(p->home->rposted - p->done) : 0;
        found += p->rogue ? srq_posted(p->srq) : 0;
    }
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        struct qp_info info;
        if (e->rogue && e->qp && !has_rq(e)) {
            qp_info(e->qp, &info);
            found += info.rq_posted;
        }
    }
    sim_require(s, found == known, "rogues' pools: %u receives are there, must be %u", found, known);
}

void pools_check_step(struct sim *s)
{
    check_rogues(s);
    for (int i = 0; i < s->npools; i++) {
        struct pool *p = &s->pool[i];
        if (p->rogue) {
            continue;
        }
        sim_require(s, srq_posted(p->srq) == queued(p), "pool %d: holds %u receives, must be %u", i, srq_posted(p->srq),
                    queued(p));
        sim_require(s, srq_limit(p->srq) == p->limit, "pool %d: limit %u, must be %u", i, srq_limit(p->srq), p->limit);
        sim_require(s, p->due == 0, "pool %d: no event tells that the limit was reached", i);
    }
}

/* A pool with plenty of receives never delays a message: initiators that send only to such pools never get an RNR
 * NAK. */
static void check_waits(struct end *e)
{
    struct qp_info i;
    bool plenty = !has_rq(e->peer) && e->qp && !e->closed;
    for (int k = 0; k < e->nops && plenty; k++) {
        plenty = e->op[k].pool && e->op[k].pool->plenty;
    }
    if (plenty) {
        qp_info(e->qp, &i);
        sim_require(e->sim, i.counters.rcvd_rnr_err == 0, "end %d: was told to wait, but its pools have receives",
                    e->index);
    }
}

void pools_check_end(struct sim *s)
{
    for (int i = 0; i < s->sc.nends; i++) {
        check_waits(&s->end[i]);
    }
    for (int i = 0; i < s->npools; i++) {
        struct pool *p = &s->pool[i];
        sim_require(s, !p->rogue || srq_posted(p->srq) == (uint32_t)(p->home->rposted - p->done),
                    "pool %d: a receive was taken and never completed", i);
        for (int k = 0; k < p->next; k++) {
            bool back = false;
            for (int n = 0; n < p->nback; n++) {
                back |= p->back[n] == k;
            }
            sim_require(s, p->home->rcv[k].done != back, "pool %d: receive %d was taken and never completed", i, k);
        }
    }
    pools_check_step(s);
}
