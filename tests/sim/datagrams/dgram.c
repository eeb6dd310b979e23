// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable QPs: drawing, building and posting. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define POISON 0xdb

/* --- drawing ----------------------------------------------------------------------------------- */

static void draw_op(struct sim *s, struct dg_end *e, struct dg_op *o)
{
    struct prng *r = &s->dg.rng;
    bool imm = prng_chance(r, 400);
    *o = (struct dg_op){.opcode = imm ? WR_SEND_WITH_IMM : WR_SEND, .to = e->peer};
    o->flags = (uint8_t)((prng_chance(r, 700) ? SEND_SIGNALED : 0) | (prng_chance(r, 200) ? SEND_SOLICITED : 0));
    if (e->ud) {
        o->to = (int)prng_range(r, 0, (uint64_t)s->dg.n - 1);
        while (!s->dg.end[o->to].ud) {
            o->to = (o->to + 1) % s->dg.n;
        }
        if (prng_chance(r, 250)) {
            o->to = DG_ENDS + (int)prng_range(r, 0, DG_GROUPS - 1);
        }
        o->len = (uint32_t)prng_pick(r, 0, 1, 24, 25, e->mtu, prng_range(r, 0, e->mtu));
    } else {
        if (prng_chance(r, 400)) {
            o->opcode = imm ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
        }
        o->len = (uint32_t)prng_pick(r, 0, 64, e->mtu, e->mtu + 1, prng_range(r, 0, 12ull * e->mtu));
    }
    if (o->len < 4 && o->opcode == WR_SEND) {
        o->opcode = WR_SEND_WITH_IMM; /* the receiver must be able to identify the request */
    }
    if (o->len <= e->caps.max_inline && prng_chance(r, 500)) {
        o->flags |= SEND_INLINE;
    }
    if (prng_chance(r, 30) && !(o->flags & SEND_INLINE) && o->len > 0) {
        o->wrong = (uint8_t)(e->ud ? prng_pick(r, DG_BAD_LKEY, DG_TOO_LONG, DG_BAD_QKEY)
                                   : prng_pick(r, DG_BAD_LKEY, DG_BAD_RKEY));
        if (o->wrong == DG_BAD_RKEY && o->opcode != WR_RDMA_WRITE && o->opcode != WR_RDMA_WRITE_WITH_IMM) {
            o->wrong = DG_FINE;
        }
        if (o->wrong == DG_TOO_LONG) {
            o->len = (128u << s->host[e->host].cfg.active_mtu) + 1;
        }
    }
}

static void draw_end(struct sim *s, struct dg_end *e)
{
    struct prng *r = &s->dg.rng;
    e->caps.max_send_wr = (uint32_t)prng_pick(r, 1, 4, 16, DG_OPS);
    e->caps.max_recv_wr = (uint32_t)prng_pick(r, 2, 16, DG_RCVS);
    e->caps.max_send_sge = e->caps.max_recv_sge = 1;
    e->caps.max_inline = (uint32_t)prng_pick(r, 0, 64);
    e->sig_all = prng_chance(r, 200);
    e->refill = prng_chance(r, 500);
    e->ample = e->refill || e->caps.max_recv_wr == DG_RCVS;
    e->mtu = 128u << s->sc.mtu_code;
    e->sq_psn = (uint32_t)prng_range(r, 0, PSN_MASK);
    e->tclass = (uint8_t)prng_pick(r, 0, 0x20, 0xb8);
    e->hops = (uint8_t)prng_pick(r, 1, 64, 255);
    e->kill_at = prng_chance(r, 40) ? prng_range(r, 0, 300 * US) : UINT64_MAX;
    e->groups = (unsigned)prng_range(r, 0, (1u << DG_GROUPS) - 1);
    e->nops = (int)prng_range(r, 0, DG_OPS);
    e->nrcv = DG_RCVS;
    for (int i = 0; i < DG_ENDS; i++) {
        e->last_from[i] = -1;
    }
}

static uint64_t draw_ops(struct sim *s, struct dg_end *e, uint32_t *tgt)
{
    struct prng *r = &s->dg.rng;
    uint64_t at = 0;
    for (int i = 0; i < e->nops; i++) {
        struct dg_op *o = &e->op[i];
        draw_op(s, e, o);
        at += prng_chance(r, 300) ? prng_range(r, 0, 100 * US) : 0;
        o->at = at;
        o->off = e->data_len;
        e->data_len += o->len;
        *tgt += o->len;
        if (e->ud) {
            continue;
        }
        struct dg_end *p = &s->dg.end[e->peer];
        p->rcv_cap = p->rcv_cap < o->len ? o->len : p->rcv_cap;
    }
    return at;
}

/* One SRQ for most QPs of a host. Some SRQs have too few requests, or too short ones. */
static void draw_pool(struct sim *s, int host)
{
    struct prng *r = &s->dg.rng;
    struct dg_pool *p = &s->dg.pool[host];
    uint32_t longest = 1;
    if (!prng_chance(r, 500)) {
        return;
    }
    *p = (struct dg_pool){.refill = prng_chance(r, 500), .pd = 90 + (uint32_t)host, .space = 300 + (uint32_t)host};
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *e = &s->dg.end[i];
        if (e->host == host && prng_chance(r, 800)) {
            p->on = true;
            p->mixed |= !e->ud;
            longest = e->rcv_cap > longest ? e->rcv_cap : longest;
            e->pool = p;
            e->nrcv = 0;
            e->rcv_cap = 0;
        }
    }
    bool shorter = prng_chance(r, 200);
    p->max_wr = (uint32_t)prng_pick(r, 2, 16, DG_POOL_RCVS);
    p->cap = shorter ? (uint32_t)prng_range(r, 1, longest) : longest;
    p->ample = !shorter && (p->refill || p->max_wr == DG_POOL_RCVS);
    for (int i = 0; i < s->dg.n; i++) {
        if (s->dg.end[i].pool == p) {
            s->dg.end[i].ample = p->ample;
        }
    }
}

void dgram_draw(struct sim *s)
{
    struct dgram *d = &s->dg;
    struct prng *r = &d->rng;
    prng_seed(r, s->sc.seed ^ 0x6467726d);
    for (int i = 0; s->sc.dgrams && i < s->sc.nhosts; i++) {
        s->host[i].cfg.ecn = prng_chance(r, 500);
        s->host[i].cfg.cnp_interval_ns = prng_pick(r, 0, 5 * US, 50 * US);
    }
    if (s->sc.dgrams == 0 || !prng_chance(r, s->sc.dgrams)) {
        return;
    }
    d->qkey = (uint32_t)prng_range(r, 0, 0x7fffffff);
    for (int g = 0; g < DG_GROUPS; g++) {
        static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239};
        memcpy(d->group[g], v4, 16);
        d->group[g][15] = (uint8_t)(g + 1);
    }
    int pairs = (int)prng_range(r, 0, 2), uds = (int)prng_pick(r, 0, 1, 2);
    for (int i = 0; i < 2 * pairs + uds; i++) {
        struct dg_end *e = &d->end[d->n++];
        *e = (struct dg_end){.sim = s, .index = i, .ud = i >= 2 * pairs, .peer = i ^ 1};
        e->host = (int)prng_range(r, 0, (uint64_t)s->sc.nhosts - 1);
        e->v6 = !e->ud && prng_chance(r, 300);
        e->v6 = i % 2 && !e->ud ? d->end[e->peer].v6 : e->v6;
        draw_end(s, e);
    }
    for (int i = 0; i < d->n; i++) {
        uint32_t *tgt = d->end[i].ud ? &(uint32_t){0} : &d->end[d->end[i].peer].tgt_len;
        draw_ops(s, &d->end[i], tgt);
        d->end[i].rcv_cap = d->end[i].ud ? 40 + d->end[i].mtu : d->end[i].rcv_cap;
        d->end[i].window = d->end[i].ud ? 0 : (uint8_t)prng_pick(r, 0, MW_TYPE_1, MW_TYPE_2);
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        draw_pool(s, i);
    }
}

/* --- building ---------------------------------------------------------------------------------- */

/* Fills in the bytes of a message: first its sender, then bytes that only this message has. */
static void fill(const struct dg_end *e, int index, uint8_t *to)
{
    uint32_t x = (uint32_t)(e->index * 1000 + index) * 2654435761u + 12345;
    for (uint32_t i = 0; i < e->op[index].len; i++) {
        x = x * 1664525 + 1013904223;
        to[i] = i == 0 ? (uint8_t)e->index : i == 1 ? (uint8_t)index : i == 2 ? 0xd6 : (uint8_t)(x >> 24);
    }
}

static uint32_t reg(struct dg_end *e, uint32_t off, uint32_t len, uint32_t access)
{
    struct mr_init init = {.pd = e->pd, .space = e->space, .va = e->va + off, .iova = e->va + off};
    uint32_t key = 0;
    init.length = len;
    init.access = access;
    int err = mr_register(e->sim->host[e->host].e, &init, &key);
    sim_require(e->sim, err == 0, "datagram end %d: mr_register: %d", e->index, err);
    return key;
}

static void modify(struct dg_end *e, uint8_t state, uint32_t mask)
{
    struct sim *s = e->sim;
    const struct dg_end *p = &s->dg.end[e->peer];
    const char *why = NULL;
    struct qp_attr a = {.state = state, .port = 1, .qkey = s->dg.qkey, .sq_psn = e->sq_psn};
    a.path_mtu = (uint8_t)s->sc.mtu_code;
    a.access = ACCESS_REMOTE_WRITE;
    if (!e->ud) {
        a.dest_qpn = p->qpn;
        a.rq_psn = p->sq_psn;
        a.av = (struct av){.sgid_index = e->v6, .hop_limit = e->hops, .traffic_class = e->tclass};
        memcpy(a.av.dgid, s->host[p->host].cfg.gids[e->v6], 16);
    }
    int err = qp_modify(e->qp, &a, QPA_STATE | mask, &why);
    sim_require(s, err == 0, "datagram end %d: qp_modify to %u: %d (%s)", e->index, state, err, why ? why : "?");
}

static void make_pool(struct sim *s, int host)
{
    struct dg_pool *p = &s->dg.pool[host];
    struct srq_init init = {.pd = p->pd, .max_wr = p->max_wr, .max_sge = 1, .owner = p};
    uint32_t whole = DG_POOL_RCVS * p->cap;
    size_t size = (srq_size(p->max_wr, 1) + 63) / 64 * 64;
    p->va = 0x5000000000ull + ((uint64_t)host << 33);
    p->mem = malloc(whole);
    p->srqmem = aligned_alloc(64, size);
    if (!p->mem || !p->srqmem) {
        abort();
    }
    memset(p->mem, POISON, whole);
    memset(p->srqmem, 0, size);
    struct mr_init mr = {.pd = p->pd, .space = p->space, .va = p->va, .iova = p->va, .length = whole};
    mr.access = ACCESS_LOCAL_WRITE;
    int err = mr_register(s->host[host].e, &mr, &p->key);
    sim_require(s, err == 0, "datagram pool %d: mr_register: %d", host, err);
    err = srq_create(s->host[host].e, &init, p->srqmem, &p->srq);
    sim_require(s, err == 0, "datagram pool %d: srq_create: %d", host, err);
}

/* Binds the window through the QP itself, which must be in RTS and must not have sent anything. */
static void bind_window(struct dg_end *e)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    if (!e->window || e->tgt_len == 0) {
        e->window = 0;
        return;
    }
    int err = mw_alloc(en, e->pd, e->window, &e->window_key);
    sim_require(s, err == 0, "datagram end %d: mw_alloc: %d", e->index, err);
    struct send_wr wr = {.opcode = WR_BIND_MW, .flags = SEND_SIGNALED};
    wr.bind = (struct mw_bind){.mw_key = e->window_key,
                               .new_key = e->window == MW_TYPE_1 ? e->window_key ^ 0x5a : 0,
                               .mr_key = e->tgt_key,
                               .access = ACCESS_REMOTE_WRITE,
                               .addr = e->va + e->data_len + e->rcv_len,
                               .length = e->tgt_len};
    uint8_t buf[256];
    struct tx_batch b = {.buf = buf, .cap = sizeof(buf)};
    err = qp_post_send(e->qp, &wr, NULL, NULL);
    sim_require(s, err == 0 && engine_tx(en, &b, s->now) == 0, "datagram end %d: a bind", e->index);
    const struct completion *c = engine_peek_completion(en);
    sim_require(s, c && c->status == WC_SUCCESS, "datagram end %d: bind: status %d", e->index, c ? c->status : -1);
    engine_drop_completion(en);
    e->window_key = e->window == MW_TYPE_1 ? wr.bind.new_key : e->window_key;
}

static void make_end(struct dg_end *e)
{
    struct sim *s = e->sim;
    struct engine *en = s->host[e->host].e;
    e->space = 200 + (uint32_t)e->index;
    e->pd = e->ud ? 50 + (uint32_t)e->index : 80 + (uint32_t)e->host;
    e->va = 0x40000000ull + ((uint64_t)e->index << 33);
    e->rcv_len = (uint32_t)e->nrcv * e->rcv_cap;
    uint32_t whole = e->data_len + e->rcv_len + e->tgt_len;
    e->mem = malloc(whole + 1);
    if (!e->mem) {
        abort();
    }
    memset(e->mem, POISON, whole);
    for (int i = 0; i < e->nops; i++) {
        fill(e, i, e->mem + e->op[i].off);
    }
    e->data_key = reg(e, 0, e->data_len, 0);
    e->rcv_key = reg(e, e->data_len, e->rcv_len, ACCESS_LOCAL_WRITE);
    e->tgt_key =
        reg(e, e->data_len + e->rcv_len, e->tgt_len, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_MW_BIND);
    struct qp_init init = {.type = e->ud ? QPT_UD : QPT_UC, .sq_sig_all = e->sig_all, .pd = e->pd, .caps = e->caps};
    init.send_cq = e->op;
    init.recv_cq = e->last_from;
    init.owner = e;
    init.srq = e->pool ? e->pool->srq : NULL;
    size_t size = (qp_size(&init) + 63) / 64 * 64;
    e->qpmem = aligned_alloc(64, size);
    if (!e->qpmem) {
        abort();
    }
    memset(e->qpmem, 0, size);
    int err = qp_create(en, &init, e->qpmem, &e->qp);
    sim_require(s, err == 0, "datagram end %d: qp_create: %d", e->index, err);
    e->qpn = qp_number(e->qp);
}

void dgram_build(struct sim *s)
{
    struct dgram *d = &s->dg;
    for (int i = 0; i < s->sc.nhosts; i++) {
        if (d->pool[i].on) {
            make_pool(s, i);
        }
    }
    for (int i = 0; i < d->n; i++) {
        make_end(&d->end[i]);
    }
    for (int i = 0; i < d->n; i++) {
        struct dg_end *e = &d->end[i];
        uint32_t path = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
        modify(e, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | (e->ud ? QPA_QKEY : QPA_ACCESS_FLAGS));
        modify(e, QPS_RTR, e->ud ? 0 : path);
        modify(e, QPS_RTS, QPA_SQ_PSN);
        bind_window(e);
        for (int g = 0; e->ud && g < DG_GROUPS; g++) {
            sim_require(s, !(e->groups >> g & 1) || mcast_attach(e->qp, d->group[g]) == 0, "mcast_attach");
        }
        evq_push(&s->events, (struct timed){.at = 0, .kind = EV_POST, .n = e->host});
        for (int k = 0; k < e->nops; k++) {
            evq_push(&s->events, (struct timed){.at = e->op[k].at, .kind = EV_POST, .n = e->host});
        }
        if (e->kill_at != UINT64_MAX) {
            evq_push(&s->events, (struct timed){.at = e->kill_at, .kind = EV_POST, .n = e->host});
        }
    }
}

void dgram_destroy(struct sim *s)
{
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *e = &s->dg.end[i];
        struct engine *en = s->host[e->host].e;
        const uint32_t keys[] = {e->data_key, e->rcv_key, e->tgt_key};
        sim_require(s, !e->window || mr_deregister(en, e->tgt_key) != 0, "datagram end %d: a region with a window goes",
                    i);
        sim_require(s, !e->window || mw_dealloc(en, e->window_key) == 0, "datagram end %d: mw_dealloc", i);
        for (int k = 0; k < 3; k++) {
            sim_require(s, mr_deregister(en, keys[k]) == 0, "datagram end %d: mr_deregister", i);
        }
        qp_destroy(e->qp);
        e->qp = NULL;
        memset(e->qpmem, POISON, 64);
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        struct dg_pool *p = &s->dg.pool[i];
        struct engine *en = s->host[i].e;
        if (p->on) {
            sim_require(s, srq_posted(p->srq) == (uint32_t)(p->rposted - p->ndone),
                        "datagram pool %d: has %u requests, must have %d", i, srq_posted(p->srq),
                        p->rposted - p->ndone);
            sim_require(s, srq_destroy(p->srq) == 0 && mr_deregister(en, p->key) == 0, "datagram pool %d: its end", i);
            memset(p->srqmem, POISON, 64);
        }
    }
}

void dgram_free(struct sim *s)
{
    for (int i = 0; i < s->dg.n; i++) {
        free(s->dg.end[i].mem);
        free(s->dg.end[i].qpmem);
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        free(s->dg.pool[i].mem);
        free(s->dg.pool[i].srqmem);
    }
}

/* --- posting ----------------------------------------------------------------------------------- */

static void post_recvs(struct dg_end *e)
{
    while (e->rposted < e->nrcv && qp_recv_room(e->qp) > 0) {
        struct sge sge = {e->va + e->data_len + (uint64_t)e->rposted * e->rcv_cap, e->rcv_cap, e->rcv_key};
        struct recv_wr wr = {7000 + (uint64_t)e->rposted, (uint32_t)e->rposted, 1};
        int err = qp_post_recv(e->qp, &wr, &sge);
        sim_require(e->sim, err == 0, "datagram end %d: post_recv %d: %d", e->index, e->rposted, err);
        e->rposted++;
    }
}

static void post_pool(struct sim *s, struct dg_pool *p)
{
    while (p->rposted < DG_POOL_RCVS && srq_room(p->srq) > 0) {
        struct sge sge = {p->va + (uint64_t)p->rposted * p->cap, p->cap, p->key};
        struct recv_wr wr = {7000 + (uint64_t)p->rposted, (uint32_t)p->rposted, 1};
        int err = srq_post_recv(p->srq, &wr, &sge);
        sim_require(s, err == 0, "datagram pool: srq_post_recv %d: %d", p->rposted, err);
        p->rposted++;
    }
}

bool dgram_refill_srq(struct host *h, void *srq_owner)
{
    struct dg_pool *p = srq_owner;
    struct sim *s = h->sim;
    if (p < s->dg.pool || p >= s->dg.pool + NET_HOSTS) {
        return false;
    }
    sim_require(s, p == &s->dg.pool[h->index], "host %d: refill for a datagram pool elsewhere", h->index);
    if (p->refill) {
        post_pool(s, p);
    }
    return true;
}

bool dgram_refill(struct host *h, void *qp_owner)
{
    struct dg_end *e = qp_owner;
    struct sim *s = h->sim;
    if (e < s->dg.end || e >= s->dg.end + DG_ENDS) {
        return false;
    }
    sim_require(s, e->host == h->index, "host %d: refill for a datagram end elsewhere", h->index);
    if (e->refill) {
        post_recvs(e);
    }
    return true;
}

/* Uses a key that must not work: that of a window bound through another QP, if there is one; else a key that does not
 * exist. */
static void use_bad_key(const struct dg_end *p, uint32_t len, struct send_wr *wr)
{
    wr->rkey = 0xdeadbeefu;
    for (int i = 0; i < p->sim->dg.n; i++) {
        const struct dg_end *q = &p->sim->dg.end[i];
        if (q != p && q->host == p->host && q->window == MW_TYPE_2 && q->tgt_len >= len) {
            wr->rkey = q->window_key;
            wr->remote_addr = q->va + q->data_len + q->rcv_len;
        }
    }
}

static void post_send(struct dg_end *e)
{
    struct sim *s = e->sim;
    struct dg_op *o = &e->op[e->posted];
    struct sge sge = {e->va + o->off, o->len, o->wrong == DG_BAD_LKEY ? 0xdeadbeefu : e->data_key};
    struct send_wr wr = {.wr_id = 9000 + (uint64_t)e->posted, .slot = (uint32_t)e->posted, .opcode = o->opcode};
    wr.flags = o->flags;
    wr.num_sge = 1;
    memcpy(wr.imm, (uint8_t[4]){(uint8_t)e->index, (uint8_t)e->posted, 0xd6, 0}, 4);
    if (o->flags & SEND_INLINE) {
        wr.num_sge = 0;
        wr.inline_len = o->len;
    }
    if (e->ud) {
        bool group = o->to >= DG_ENDS;
        const struct dg_end *to = &s->dg.end[group ? 0 : o->to];
        bool v6 = !group && e->posted % 3 == 0;
        wr.ud.av = (struct av){.sgid_index = v6, .hop_limit = e->hops, .traffic_class = e->tclass};
        memcpy(wr.ud.av.dgid, group ? s->dg.group[o->to - DG_ENDS] : s->host[to->host].cfg.gids[v6], 16);
        wr.ud.qpn = group ? QPN_MULTICAST : to->qpn;
        wr.ud.qkey = o->wrong == DG_BAD_QKEY ? s->dg.qkey ^ 1 : e->posted % 2 ? s->dg.qkey : 0x80000000u;
    } else {
        const struct dg_end *p = &s->dg.end[e->peer];
        wr.remote_addr = p->va + p->data_len + p->rcv_len + o->off;
        wr.rkey = p->window ? p->window_key : p->tgt_key;
        if (o->wrong == DG_BAD_RKEY) {
            use_bad_key(p, o->len, &wr);
        }
    }
    int err = qp_post_send(e->qp, &wr, &sge, e->mem + o->off);
    sim_require(s, err == 0, "datagram end %d: post_send %d: %d", e->index, e->posted, err);
    capture_note(s, "datagram end %d posts request %d: opcode %u, %u bytes to %d, fault %u", e->index, e->posted,
                 o->opcode, o->len, o->to, o->wrong);
    e->posted++;
}

static bool is_due(const struct dg_end *e)
{
    return e->posted < e->nops && e->op[e->posted].at <= e->sim->now && qp_send_room(e->qp) > 0;
}

/* The user returns the QP to RTS when it has seen all failures. */
static void come_back(struct dg_end *e)
{
    if (qp_state(e->qp) == QPS_SQE && (e->sdone == e->posted || prng_chance(&e->sim->dg.rng, 200))) {
        modify(e, QPS_RTS, 0);
        e->broken = false;
        e->flush_end = e->posted;
    }
}

bool dgram_can_post(const struct host *h)
{
    for (int i = 0; i < h->sim->dg.n; i++) {
        const struct dg_end *e = &h->sim->dg.end[i];
        if (e->host == h->index && is_due(e)) {
            return true;
        }
    }
    return false;
}

int dgram_post(struct host *h)
{
    struct sim *s = h->sim;
    int n = 0;
    if (s->dg.pool[h->index].on && !s->dg.pool[h->index].refill) {
        post_pool(s, &s->dg.pool[h->index]);
    }
    for (int i = 0; i < s->dg.n; i++) {
        struct dg_end *e = &s->dg.end[i];
        if (e->host != h->index) {
            continue;
        }
        if (s->now >= e->kill_at && !e->killed) {
            e->killed = true;
            modify(e, QPS_ERR, 0);
        }
        if (!e->refill || qp_state(e->qp) == QPS_ERR) {
            post_recvs(e);
        }
        come_back(e);
        while (is_due(e)) {
            post_send(e);
            n++;
        }
    }
    return n;
}
