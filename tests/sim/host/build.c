// SPDX-License-Identifier: BSD-2-Clause
/* Builds the objects of a scenario: arenas, engines, keys, QPs. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define CANARY 48 /* bytes around and between regions */

static void *zalloc(size_t len)
{
    size_t whole = (len + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole ? whole : 64);
    if (!p) {
        abort();
    }
    return memset(p, 0, whole ? whole : 64);
}

static void make_space(struct sim *s, struct space *sp, uint32_t id, uint32_t len)
{
    sp->id = id;
    sp->len = len;
    sp->va = 0x10000000u + ((uint64_t)id << 32) + 8 * prng_range(&s->rng, 0, 4096);
    sp->mem = malloc(len);
    sp->want = malloc(len);
    if (!sp->mem || !sp->want) {
        abort();
    }
    prng_fill(&s->rng, sp->mem, len);
    memcpy(sp->want, sp->mem, len);
}

static void make_arena(struct end *e)
{
    struct sim *s = e->sim;
    uint32_t off = CANARY;
    uint32_t data = 0;
    for (int i = 0; i < REG_COUNT; i++) {
        off = i == REG_TGT ? (off + 7) & ~7u : off; /* this region needs aligned addresses */
        e->reg[i].off = off;
        e->reg[i].size = e->room[i] ? e->room[i] : 1;
        off += e->reg[i].size + CANARY + (uint32_t)prng_range(&s->rng, 0, 7);
    }
    make_space(s, &e->space, 1 + (uint32_t)e->index, off);
    for (int i = 0; i < REG_COUNT; i++) {
        uint64_t va = e->space.va + e->reg[i].off;
        e->reg[i].iova = prng_chance(&s->rng, 300) ? prng_next(&s->rng) >> 1 : va;
        e->reg[i].iova &= i == REG_TGT ? ~(uint64_t)7 : UINT64_MAX;
    }
    for (int i = 0; i < e->nops; i++) {
        data += e->op[i].len;
    }
    e->data = malloc(data + 1);
    e->ends = zalloc(data / e->mtu + MAX_OPS);
    if (!e->data) {
        abort();
    }
    data = 0;
    uint32_t packets = 0;
    for (int i = 0; i < e->nops; i++) {
        e->op[i].data = e->data + data;
        e->op[i].ends = e->ends + packets;
        data += e->op[i].len;
        packets += op_packets(e, &e->op[i]);
    }
}

static void make_host(struct host *h)
{
    struct sim *s = h->sim;
    h->mem = zalloc(engine_size(&h->cfg));
    h->e = engine_init(h->mem, &h->cfg, &host_mem_ops, h, &host_owner_ops, h);
    sim_require(s, h->e, "engine_init refuses its configuration");
    h->txbuf = malloc(h->txcap);
    make_space(s, &h->cells, 100 + (uint32_t)h->index, CANARY + 8 * MAX_CELLS + 8 + CANARY);
    for (int i = 0; i < s->sc.nhosts; i++) {
        for (int v6 = 0; v6 < 2; v6++) {
            struct icrc_flow f = {.src_port = (uint16_t)(0xc000 + h->index), .dst_port = ROCE_PORT, .is_v6 = v6};
            memcpy(f.src, v6 ? h->cfg.gids[1] : h->cfg.gids[0], 16);
            memcpy(f.dst, v6 ? s->host[i].cfg.gids[1] : s->host[i].cfg.gids[0], 16);
            icrc_ctx_init(&h->icrc[i][v6], &f);
        }
    }
}

static uint32_t reg_mr(struct end *e, uint32_t pd, const struct space *sp, uint32_t off, uint32_t len, uint64_t iova,
                       uint32_t access)
{
    struct mr_init init = {
        .pd = pd, .space = sp->id, .va = sp->va + off, .iova = iova, .length = len, .access = access};
    uint32_t key = 0;
    int err = mr_register(e->sim->host[e->host].e, &init, &key);
    sim_require(e->sim, err == 0, "end %d: mr_register: %d", e->index, err);
    return key;
}

/* STEP_KEY removes a key that is used for nothing else. */
static void make_fleeting_key(struct end *e, const uint32_t access[REG_COUNT])
{
    const struct op *mine = e->plant >= 0 ? &e->op[e->plant] : NULL;
    const struct op *peers = e->peer->plant >= 0 ? &e->peer->op[e->peer->plant] : NULL;
    int region = mine && mine->plant == PLANT_LDEREG                                     ? mine->seg[0].region
                 : peers && (peers->plant == PLANT_DEREG || peers->plant == PLANT_REREG) ? peers->rregion
                                                                                         : -1;
    e->key_fleeting_free = region < 0;
    if (region >= 0) {
        const struct region *g = &e->reg[region];
        e->key_fleeting = reg_mr(e, e->pd, &e->space, g->off, g->size, g->iova, access[region]);
    }
}

static void make_keys(struct end *e)
{
    static const uint32_t access[REG_COUNT] = {
        [REG_SRC] = 0,
        [REG_DST] = ACCESS_LOCAL_WRITE,
        [REG_RCV] = ACCESS_LOCAL_WRITE,
        [REG_TGT] = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL,
        [REG_RD] = ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL,
    };
    const uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    struct host *h = &e->sim->host[e->host];
    struct space *sp = &e->space;
    e->key_old = reg_mr(e, e->pd, sp, 0, sp->len, sp->va, all);
    for (int i = 0; i < REG_COUNT; i++) {
        struct region *g = &e->reg[i];
        bool shaped = i != REG_SRC && (e->sq_psn + (uint32_t)i) % 4 == 0;
        g->key = reg_mr(e, e->pd, sp, g->off, g->size, g->iova, access[i] | (shaped ? ACCESS_MW_BIND : 0));
        if (shaped) {
            shape_make(e, g, access[i]);
        }
        g->key2 = reg_mr(e, e->pd, sp, g->off, g->size, g->iova, access[i]);
    }
    struct region *c = &e->cells;
    c->off = CANARY;
    c->size = 8 * MAX_CELLS + 8;
    c->iova = h->cells.va + CANARY;
    c->key = c->key2 = reg_mr(e, e->pd, &h->cells, c->off, c->size, c->iova, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_ATOMIC);
    e->key_other_pd = reg_mr(e, e->pd + 100, sp, 0, sp->len, sp->va, all);
    e->key_no_access = reg_mr(e, e->pd, sp, 0, sp->len, sp->va, ACCESS_LOCAL_WRITE);
    make_fleeting_key(e, access);
    windows_build(e);
    sim_require(e->sim, mr_deregister(h->e, e->key_old) == 0, "end %d: mr_deregister failed", e->index);
}

static void modify(struct end *e, const struct qp_attr *a, uint32_t mask)
{
    const char *why = NULL;
    int err = qp_modify(e->qp, a, mask, &why);
    sim_require(e->sim, err == 0, "end %d: qp_modify to state %d: %d (%s)", e->index, a->state, err, why ? why : "?");
}

struct qp_init build_init(struct end *e)
{
    if (e->type == QPT_XRC_RECV) {
        return (struct qp_init){.type = e->type, .xrcd = e->xrcd, .owner = e};
    }
    return (struct qp_init){.type = e->type,
                            .sq_sig_all = e->sig_all,
                            .pd = e->pd,
                            .srq = e->pool ? e->pool->srq : NULL,
                            .caps = e->caps,
                            .send_cq = e->op,
                            .recv_cq = e->type == QPT_RC ? e->rcv : NULL,
                            .owner = e};
}

static void make_qp(struct end *e)
{
    struct sim *s = e->sim;
    struct qp_init init = build_init(e);
    size_t size = qp_size(&init);
    sim_require(s, size > 0, "end %d: qp_size refuses the caps", e->index);
    e->qpmem = zalloc(size);
    int err = qp_create(s->host[e->host].e, &init, e->qpmem, &e->qp);
    sim_require(s, err == 0, "end %d: qp_create: %d", e->index, err);
    e->qpn = qp_number(e->qp);
    sim_require(s, qp_find(s->host[e->host].e, e->qpn) == e->qp, "end %d: qp_find", e->index);
    counters_attach(e);
    struct qp_attr a = e->attr;
    a.state = QPS_INIT;
    modify(e, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
}

void build_connect(struct end *e, enum end_step step)
{
    struct sim *s = e->sim;
    struct qp_attr a = e->attr;
    bool sends = e->type != QPT_XRC_RECV, receives = e->type != QPT_XRC_SEND;
    uint32_t mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    mask |= receives ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0;
    a.state = QPS_RTR;
    if (step == STEP_RTS) {
        a.state = QPS_RTS;
        mask = QPA_STATE | QPA_TIMEOUT | QPA_SQ_PSN;
        mask |= sends ? QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC : 0;
    }
    a.dest_qpn = e->peer->qpn;
    a.rq_psn = e->peer->sq_psn;
    a.sq_psn = e->sq_psn;
    a.av.sgid_index = e->v6 ? 1 : 0;
    a.av.hop_limit = 64;
    memcpy(a.av.dgid, s->host[e->peer->host].cfg.gids[a.av.sgid_index], 16);
    modify(e, &a, mask);
    if (step == STEP_RTS) {
        e->una_changed = s->now;
    }
}

void build(struct sim *s)
{
    for (int i = 0; i < s->sc.nhosts; i++) {
        make_host(&s->host[i]);
    }
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        e->pd = 1 + (uint32_t)i;
        e->rel_resp = UINT32_MAX;
        make_arena(e);
        make_keys(e);
    }
    for (int i = 0; i < s->npools; i++) {
        pools_build(s, i);
    }
    for (int i = 0; i < s->sc.nends; i++) {
        make_qp(&s->end[i]);
    }
    oracle_model(s);
    dgram_build(s);
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        evq_push(&s->events, (struct timed){.at = e->rtr_at, .kind = EV_STEP, .n = i, .v = STEP_RTR});
        if (e->rts_at != NEVER) {
            evq_push(&s->events, (struct timed){.at = e->rts_at, .kind = EV_STEP, .n = i, .v = STEP_RTS});
        }
        for (int k = 0; k < e->nops; k++) {
            evq_push(&s->events, (struct timed){.at = e->op[k].at, .kind = EV_POST, .n = e->host});
        }
        for (int k = 0; k < e->nrcv; k++) {
            evq_push(&s->events, (struct timed){.at = e->rcv[k].at, .kind = EV_POST, .n = e->host});
        }
    }
}

void build_free(struct sim *s)
{
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        for (int k = 0; k < REG_COUNT; k++) {
            shape_free(&e->reg[k]);
        }
        free(e->space.mem);
        free(e->space.want);
        free(e->data);
        free(e->ends);
        free(e->qpmem);
    }
    pools_free(s);
    dgram_free(s);
    for (int i = 0; i < s->sc.nhosts; i++) {
        struct host *h = &s->host[i];
        for (size_t k = 0; k < h->ninbox; k++) {
            free(h->inbox[k]);
        }
        free(h->inbox);
        free(h->deferred);
        free(h->txbuf);
        free(h->cells.mem);
        free(h->cells.want);
        free(h->mem);
    }
    struct timed ev;
    while (evq_pop(&s->events, UINT64_MAX, &ev)) {
        free(ev.p);
    }
    free(s->events.heap);
}
