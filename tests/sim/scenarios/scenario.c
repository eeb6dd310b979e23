// SPDX-License-Identifier: BSD-2-Clause
/* Draws an exchange from a seed. First it draws the kind of exchange (calm, lossy, errors, back-pressure …), then
 * everything within the limits of this kind: an exchange must either be sure to succeed, or fail only with the
 * planted fault. */
#include "tests/sim/sim.h"

#include <string.h>

enum kind {
    KIND_CALM, /* nothing is lost; everything else varies */
    KIND_LOSSY, /* a few per cent of each fault */
    KIND_MASK, /* lost by mask */
    KIND_HEAVY, /* so many faults that retries may run out */
    KIND_FLOOD, /* many small requests, and users that poll completions slowly */
    KIND_PLANT, /* one request is wrong, nothing is lost */
    KIND_PLANT_LOSSY, /* one request is wrong, and packets are also lost */
    KIND_DEAD, /* the path dies */
    KIND_WINDOWS, /* memory windows, with or without losses; in some exchanges one request is wrong */
    KIND_ROGUE, /* the first pair's packets are damaged; the other pairs must not be affected */
};
static const struct {
    enum kind kind;
    uint32_t weight;
} kinds[] = {
    {KIND_CALM, 14}, {KIND_LOSSY, 20}, {KIND_MASK, 12},       {KIND_HEAVY, 5}, {KIND_ROGUE, 8},
    {KIND_FLOOD, 5}, {KIND_PLANT, 17}, {KIND_PLANT_LOSSY, 6}, {KIND_DEAD, 5},  {KIND_WINDOWS, 8},
};

static enum kind draw_kind(struct prng *r)
{
    uint64_t n = prng_range(r, 0, 99);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (n < kinds[i].weight) {
            return kinds[i].kind;
        }
        n -= kinds[i].weight;
    }
    return KIND_CALM;
}

/* --- network ----------------------------------------------------------------------------------- */

static void draw_net(struct sim *s, enum kind kind)
{
    struct prng *r = &s->rng;
    struct net_faults *f = &s->sc.net;
    f->delay_ns = prng_pick(r, 0, 1, 1 * US, 10 * US, 50 * US);
    f->jitter_ns = prng_pick(r, 0, 1 * US, 20 * US);
    f->reorder_ns = prng_pick(r, 2 * US, 50 * US, 400 * US);
    f->ce = prng_chance(r, 100) ? 200 : 0;
    s->sc.lossless =
        kind == KIND_CALM || kind == KIND_FLOOD || kind == KIND_PLANT || (kind == KIND_WINDOWS && prng_chance(r, 300));
    switch (kind) {
    case KIND_CALM:
    case KIND_PLANT:
    case KIND_FLOOD:
        break;
    case KIND_WINDOWS:
        if (s->sc.lossless) {
            break;
        }
        /* fall through */
    case KIND_LOSSY:
    case KIND_PLANT_LOSSY:
        f->loss = (uint32_t)prng_pick(r, 0, 5, 20, 50);
        f->corrupt = (uint32_t)prng_pick(r, 0, 0, 5, 20);
        f->dup = (uint32_t)prng_pick(r, 0, 10, 50, 200);
        f->reorder = (uint32_t)prng_pick(r, 0, 10, 50, 200);
        if (prng_chance(r, 50)) {
            f->reorder_ns = 20 * MS; /* packets that arrive so late that they count as lost */
            f->reorder = f->reorder > 20 ? 20 : f->reorder;
        }
        /* Copies that arrive when windows are unbound, or bound again. */
        if (kind == KIND_WINDOWS) {
            f->dup = (uint32_t)prng_pick(r, 50, 200, 500);
            f->reorder_ns = prng_pick(r, 50 * US, 400 * US, 2 * MS);
        }
        break;
    case KIND_MASK:
        for (uint64_t n = prng_range(r, 1, 5); n > 0; n--) {
            f->mask |= (uint64_t)1 << prng_range(r, 0, 63);
        }
        f->mask_once = prng_chance(r, 300);
        break;
    case KIND_ROGUE:
        f->loss = (uint32_t)prng_pick(r, 0, 0, 20);
        f->reorder = (uint32_t)prng_pick(r, 0, 0, 50);
        s->sc.rogues = (uint32_t)prng_pick(r, 50, 200, 500);
        break;
    case KIND_HEAVY:
        f->loss = (uint32_t)prng_pick(r, 100, 200, 300);
        f->dup = (uint32_t)prng_pick(r, 0, 200);
        f->reorder = (uint32_t)prng_pick(r, 0, 200);
        s->sc.may_exhaust = true;
        break;
    case KIND_DEAD:
        f->dead_from = prng_range(r, 0, 300 * US);
        f->dead_until = UINT64_MAX;
        s->sc.may_exhaust = true;
        break;
    }
}

/* --- hosts ------------------------------------------------------------------------------------- */

static void draw_host(struct sim *s, struct host *h, enum kind kind)
{
    struct prng *r = &s->rng;
    struct engine_config *c = &h->cfg;
    engine_config_defaults(c);
    c->max_qp = 16;
    c->max_mr = 256;
    c->max_srq = 2 * MAX_POOLS; /* including those of datagrams */
    c->max_peers = (uint32_t)prng_pick(r, 1, 2, 16); /* 16 are enough for all hosts */
    c->completion_slots = kind == KIND_FLOOD ? 64 : (uint32_t)prng_pick(r, 64, 256, 1024);
    c->event_slots = 64;
    c->window_pkts = (uint32_t)prng_pick(r, 1, 2, 5, 16, 128, 4096);
    c->peer_window_bytes = prng_pick(r, 9000, 20000, 65536, 1 << 20);
    c->ack_delay_ns = prng_pick(r, 0, 0, 10 * US, 50 * US);
    c->min_timeout_ns = prng_pick(r, 500 * US, 1 * MS, 4 * MS);
    c->probe_min_ns = prng_pick(r, 50 * US, 200 * US, 1 * MS);
    c->crowd_timeout_ns = c->min_timeout_ns == 4 * MS ? 10 * MS : 0;
    c->read_copy_bytes = (uint32_t)prng_pick(r, 0, 300, 5000, READ_COPIES);
    c->e2e_credits = prng_chance(r, 400);
    c->selective = prng_chance(r, 750);
    c->reorder_bytes = (uint32_t)prng_pick(r, 5000, 20000, 140000, 140000);
    c->max_resends = (uint32_t)prng_pick(r, 0, 1, 3, 16);
    c->burst_bytes = (uint32_t)prng_pick(r, 4096, 4096, 16384, 61440);
    c->active_mtu = (uint8_t)prng_range(r, s->sc.mtu_code, 5);
    c->first_qpn = (uint32_t)prng_pick(r, 17, 0xfffffe, prng_range(r, 17, 0xfffffe));
    if (s->sc.seed % 2) /* the others count up */
        c->number_secret = (struct permute_secret){{s->sc.seed, (uint64_t)h->index}};
    h->txcap = prng_pick(r, 65536, 131072);
    h->gso = (struct gso_run){.bytes = (uint32_t)prng_pick(r, 0, 5000, 65000), .pkts = 64};
    h->gso.whole = h->gso.bytes == 65000;
}

static void host_addresses(struct host *h)
{
    struct engine_config *c = &h->cfg;
    memset(c->gids, 0, sizeof c->gids);
    c->gids[0][10] = c->gids[0][11] = 0xff; /* ::ffff:10.0.0.n */
    c->gids[0][12] = 10;
    c->gids[0][15] = (uint8_t)(h->index + 1);
    c->gids[1][0] = 0xfd; /* fd00::n */
    c->gids[1][15] = (uint8_t)(h->index + 1);
    c->num_gids = 2;
}

/* --- ends -------------------------------------------------------------------------------------- */

static void draw_caps(struct sim *s, struct end *e, enum kind kind)
{
    struct prng *r = &s->rng;
    e->caps.max_send_wr = (uint32_t)prng_pick(r, 1, 2, 5, 16, MAX_OPS);
    e->caps.max_recv_wr = (uint32_t)prng_pick(r, 1, 3, 16, MAX_OPS);
    if (kind == KIND_PLANT || kind == KIND_PLANT_LOSSY || kind == KIND_FLOOD) {
        e->caps.max_recv_wr = MAX_OPS;
    }
    e->caps.max_send_sge = (uint32_t)prng_range(r, 1, MAX_SEGS);
    e->caps.max_recv_sge = (uint32_t)prng_range(r, 1, MAX_SEGS);
    e->caps.max_inline = (uint32_t)prng_pick(r, 0, 32, 200);
    e->sig_all = prng_chance(r, 250);
    e->refill = prng_chance(r, 300);
}

static uint32_t draw_psn(struct prng *r)
{
    return (uint32_t)(prng_chance(r, 500) ? 0x1000000 - prng_range(r, 1, 40) : prng_range(r, 0, PSN_MASK)) & PSN_MASK;
}

static void draw_attr(struct sim *s, struct end *e, enum kind kind)
{
    struct prng *r = &s->rng;
    struct qp_attr *a = &e->attr;
    a->access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL;
    a->port = 1;
    a->path_mtu = (uint8_t)s->sc.mtu_code;
    a->timeout = (uint8_t)prng_pick(r, 0, 8, 10, 12, 14);
    a->retry_cnt = 7;
    a->rnr_retry = 7;
    a->min_rnr_timer = (uint8_t)prng_pick(r, 1, 5, 12, 16);
    a->max_rd_atomic = (uint8_t)prng_pick(r, 1, 1, 2, 4, 16, 100);
    a->max_dest_rd_atomic = 16;
    if (kind != KIND_CALM) {
        a->timeout = a->timeout ? a->timeout : 9;
    }
    if (kind == KIND_HEAVY || kind == KIND_DEAD) {
        a->timeout = (uint8_t)prng_pick(r, 8, 9, 10);
        a->retry_cnt = (uint8_t)prng_range(r, 0, 7);
    }
    e->sq_psn = draw_psn(r);
    e->mtu = 128u << s->sc.mtu_code;
    e->v6 = prng_chance(r, 400);
    e->plant = -1;
    e->type = QPT_RC;
}

/* Sets the attributes on which two peers must agree. */
static void connect_pair(struct sim *s, struct end *a, struct end *b, enum kind kind)
{
    struct prng *r = &s->rng;
    a->peer = b;
    b->peer = a;
    b->v6 = a->v6;
    for (int i = 0; i < 2; i++) {
        struct end *e = i ? b : a;
        e->leaves = (kind == KIND_CALM || kind == KIND_LOSSY || kind == KIND_MASK) && a != b && prng_chance(r, 100);
        e->rogue = kind == KIND_ROGUE && a->index == 0;
        if (e->rogue) {
            e->attr.timeout = (uint8_t)prng_pick(r, 8, 9, 10);
            e->attr.retry_cnt = (uint8_t)prng_range(r, 0, 7);
            e->attr.rnr_retry = (uint8_t)prng_range(r, 0, 6);
        }
        if (prng_chance(r, 300) || e->peer->attr.max_rd_atomic > e->attr.max_dest_rd_atomic) {
            e->attr.max_dest_rd_atomic = e->peer->attr.max_rd_atomic;
        }
        /* If an end connects late, its peer needs a timeout; otherwise lost first packets would never be sent again. */
        if (e->peer->attr.timeout != 0 && a != b && kind != KIND_HEAVY && kind != KIND_DEAD && prng_chance(r, 200)) {
            e->rtr_at = prng_range(r, 0, 1 * MS);
            e->rts_at = e->rtr_at + prng_range(r, 0, 1 * MS);
        }
    }
}

static void draw_ends(struct sim *s, enum kind kind)
{
    struct prng *r = &s->rng;
    bool pools = s->sc.mtu_code <= 3 && prng_chance(r, 550), windows = kind == KIND_WINDOWS;
    int pairs = pools && windows ? 2 : pools ? (int)prng_range(r, 2, MAX_ENDS / 2) : (int)prng_pick(r, 1, 1, 2, 3);
    pairs = kind == KIND_ROGUE && pairs == 1 ? 2 : pairs;
    for (int i = 0; i < pairs; i++) {
        bool self = kind != KIND_PLANT && kind != KIND_PLANT_LOSSY && kind != KIND_WINDOWS && prng_chance(r, 40);
        struct end *a = &s->end[s->sc.nends++];
        struct end *b = self ? a : &s->end[s->sc.nends++];
        int hosts = s->sc.nhosts;
        a->host = pools && prng_chance(r, 700) ? 0 : (int)prng_range(r, 0, (uint64_t)hosts - 1);
        b->host =
            self || prng_chance(r, 150) ? a->host : (a->host + 1 + (int)prng_range(r, 0, (uint64_t)hosts - 2)) % hosts;
        for (int k = 0; k < (self ? 1 : 2); k++) {
            struct end *e = k ? b : a;
            e->sim = s;
            e->index = (int)(e - s->end);
            draw_caps(s, e, kind);
            draw_attr(s, e, kind);
        }
        connect_pair(s, a, b, kind);
    }
    if (pools) {
        pools_draw(s, !windows); /* a target can't bind windows */
    }
}

/* --- work -------------------------------------------------------------------------------------- */

static void draw_recv_times(struct sim *s, struct end *e, enum kind kind)
{
    struct prng *r = &s->rng;
    bool late = kind != KIND_PLANT && kind != KIND_PLANT_LOSSY && kind != KIND_FLOOD && prng_chance(r, 350);
    uint64_t when = 0;
    for (int i = 0; i < e->nrcv; i++) {
        when += late && prng_chance(r, 300) ? prng_range(r, 1, 500 * US) : 0;
        e->rcv[i].at = when;
    }
}

/* Some QPs are drained in the middle, and continue later. */
static void draw_drains(struct sim *s, enum kind kind)
{
    struct prng *r = &s->rng;
    for (int i = 0; i < s->sc.nends; i++) {
        if ((kind == KIND_CALM || kind == KIND_LOSSY || kind == KIND_FLOOD || kind == KIND_WINDOWS) &&
            s->end[i].type != QPT_XRC_RECV && prng_chance(r, 100)) {
            uint64_t at = s->end[i].rts_at + prng_range(r, 0, 300 * US);
            evq_push(&s->events, (struct timed){.at = at, .kind = EV_STEP, .n = i, .v = STEP_SQD});
            at += prng_range(r, 1, 500 * US);
            evq_push(&s->events, (struct timed){.at = at, .kind = EV_STEP, .n = i, .v = STEP_RESUME});
        }
    }
}

/* Returns the fault if this end's requests can have it, else a fault that all requests can have. */
static enum plant fitting(struct end *e, enum plant plant)
{
    switch (plant) {
    /* With an SRQ it is not known beforehand which message gets which receive. */
    case PLANT_RECV_SHORT:
    case PLANT_RECV_LKEY:
    case PLANT_RNR:
    case PLANT_WRITE_FAULT:
        return has_rq(e->peer) ? plant : PLANT_BAD_RKEY;
    case PLANT_XRC_DOMAIN:
        return e->type == QPT_XRC_SEND && pool_alien(e->sim, e->peer) ? plant : PLANT_PD;
    case PLANT_WINDOW: /* windows.c plants these */
    case PLANT_BIND:
    case PLANT_LOCAL_INV:
        return PLANT_INVALIDATE;
    case PLANT_XRC_NUMBER:
        return e->type == QPT_XRC_SEND ? plant : PLANT_OLD_RKEY;
    /* The peer owns the memory. */
    case PLANT_DEREG:
    case PLANT_REREG:
        return e->type == QPT_RC ? plant : PLANT_XRC_NUMBER;
    default:
        return plant;
    }
}

static void draw_work(struct sim *s, enum kind kind)
{
    struct prng *r = &s->rng;
    int planted = -1;
    if (kind == KIND_PLANT || kind == KIND_PLANT_LOSSY) {
        planted = (int)prng_range(r, 0, (uint64_t)s->sc.nends - 1);
        planted = s->end[planted].type == QPT_XRC_RECV ? s->end[planted].peer->index : planted;
    }
    s->sc.big = s->npools == 0 && prng_chance(r, 20);
    bool small = kind == KIND_FLOOD || prng_chance(r, 200);
    int most = kind == KIND_FLOOD ? MAX_OPS / 2 : small ? 30 : s->sc.mtu_code > 3 ? 6 : 10;
    most = s->sc.big ? 3 : most;
    for (int i = 0; i < s->sc.nends && kind == KIND_WINDOWS; i += 2) {
        windows_draw(&s->end[i], &s->end[i + 1], i == 0 && prng_chance(r, 400));
    }
    for (int i = 0; i < s->sc.nends && kind != KIND_WINDOWS; i++) {
        struct end *e = &s->end[i];
        int n = (int)prng_range(r, kind == KIND_FLOOD && !s->sc.big ? 20 : 0, (uint64_t)most);
        /* faults that depend on time are exact only if nothing is lost */
        int most_plant = kind == KIND_PLANT ? PLANT_COUNT - 1 : PLANT_INVALIDATE;
        enum plant plant = i == planted ? (enum plant)prng_range(r, PLANT_NONE + 1, (uint64_t)most_plant) : PLANT_NONE;
        if (plant && e->type == QPT_XRC_SEND && prng_chance(r, 400)) {
            plant = (enum plant)prng_pick(r, PLANT_XRC_DOMAIN, PLANT_XRC_DOMAIN, PLANT_XRC_NUMBER);
        }
        plant = fitting(e, plant);
        n = e->type == QPT_XRC_RECV ? 0 : n;
        if (plant == PLANT_WRITE_FAULT) {
            s->sc.defer = false; /* otherwise earlier requests of the same batch fail too */
        }
        n = plant && n == 0 ? 1 : n;
        if (n > 0) {
            ops_draw(e, n, small, plant);
        }
        if (plant >= PLANT_DEREG) {
            struct end *owner = plant == PLANT_LDEREG ? e : e->peer;
            e->rtr_at = e->rts_at = e->peer->rtr_at = e->peer->rts_at = 0; /* otherwise packets are lost */
            uint64_t at = prng_range(r, 0, 400 * US);
            evq_push(&s->events, (struct timed){.at = at, .kind = EV_STEP, .n = owner->index, .v = STEP_KEY});
        }
    }
    pools_draw_recvs(s, planted < 0 && kind != KIND_WINDOWS, kind == KIND_FLOOD || planted >= 0);
    for (int i = 0; i < s->sc.nends; i++) {
        draw_recv_times(s, &s->end[i], kind);
    }
    draw_drains(s, kind);
    /* Requests are flushed while completions wait. */
    if (kind == KIND_FLOOD && prng_chance(r, 150)) {
        int i = (int)prng_range(r, 0, (uint64_t)s->sc.nends - 1);
        evq_push(&s->events, (struct timed){.at = prng_range(r, 0, 500 * US), .kind = EV_STEP, .n = i, .v = STEP_KILL});
    }
}

/* An end that shares receives with others is reset in the middle of a message. */
static void draw_reset(struct sim *s)
{
    struct end *e = &s->end[prng_range(&s->rng, 0, (uint64_t)s->sc.nends - 1)];
    e->resets = !has_rq(e) && e->type != QPT_XRC_SEND && !e->leaves && !e->peer->leaves;
}

void scenario_draw(struct sim *s)
{
    struct prng *r = &s->rng;
    prng_seed(r, s->sc.seed);
    enum kind kind = draw_kind(r);
    s->sc.name = "random";
    s->sc.nhosts = (int)prng_range(r, 2, MAX_HOSTS);
    s->sc.mtu_code = (uint32_t)prng_pick(r, 1, 1, 1, 2, 3, 3, 4, 5);
    s->sc.defer = prng_chance(r, 500);
    s->sc.ip_ids = prng_chance(r, 200);
    s->sc.wake_ns = prng_pick(r, 0, 0, 1 * US, 20 * US);
    s->sc.poll_ns = kind == KIND_FLOOD ? prng_pick(r, 5 * US, 50 * US, 200 * US) : 0;
    s->sc.poll_max = (uint32_t)prng_pick(r, 1, 8, 100);
    s->sc.post_chunk = (uint32_t)prng_pick(r, 1, 4, 100);
    s->sc.limit_ns = (kind == KIND_ROGUE ? 200ull : kind == KIND_HEAVY || kind == KIND_DEAD ? 20ull : 2ull) * S_NS;
    s->sc.hold_acks = (uint32_t)prng_pick(r, 0, 300, 900);
    s->sc.strangers = (uint32_t)prng_pick(r, 0, 0, 50, 300);
    s->sc.forged = (uint32_t)prng_pick(r, 0, 0, 0, 200);
    s->sc.direct_loop = prng_chance(r, 500);
    s->sc.kill_peer = prng_chance(r, 500);
    if (kind == KIND_FLOOD && s->sc.poll_max == 1) {
        s->sc.poll_ns = 5 * US; /* otherwise the peer may run out of retries */
    }
    draw_net(s, kind);
    for (int i = 0; i < s->sc.nhosts; i++) {
        s->host[i].sim = s;
        s->host[i].index = i;
        draw_host(s, &s->host[i], kind);
        host_addresses(&s->host[i]);
        s->sc.limit_ns +=
            s->host[i].cfg.e2e_credits ? 20ull * S_NS : 0; /* a wait for a credit may take half a second */
    }
    bool all = true;
    for (int i = 0; i < s->sc.nhosts; i++) {
        all = all && s->host[i].cfg.selective;
    }
    for (int i = 0; i < s->sc.nhosts; i++) {
        s->host[i].cfg.selective_assumed = all && s->sc.seed % 4 < 2; /* the others ask at the first gap */
    }
    draw_ends(s, kind);
    draw_work(s, kind);
    s->sc.dgrams = kind == KIND_PLANT || kind == KIND_PLANT_LOSSY ? 0 : 350;
    dgram_draw(s);
    if (s->npools > 0 && (kind == KIND_LOSSY || kind == KIND_MASK) && prng_chance(r, 400)) {
        draw_reset(s);
    }
}

void scenario_defaults(struct sim *s, uint64_t seed)
{
    s->sc = (struct scenario){.seed = seed, .name = "script", .nhosts = 2, .nends = 2, .mtu_code = 1, .lossless = true};
    s->sc.limit_ns = 60ull * S_NS;
    s->sc.post_chunk = 100;
    s->sc.net.delay_ns = 10 * US;
    prng_seed(&s->rng, seed);
    for (int i = 0; i < 2; i++) {
        struct host *h = &s->host[i];
        h->sim = s;
        h->index = i;
        engine_config_defaults(&h->cfg);
        h->cfg.max_qp = 16;
        h->cfg.max_mr = 256;
        h->cfg.max_srq = 4;
        h->cfg.completion_slots = 256;
        h->cfg.active_mtu = 5;
        h->cfg.read_copy_bytes = READ_COPIES;
        h->cfg.reorder_bytes = 400000;
        h->txcap = 131072;
        host_addresses(h);
        struct end *e = &s->end[i];
        e->sim = s;
        e->index = e->host = i;
        e->peer = &s->end[1 - i];
        e->caps = (struct qp_caps){MAX_OPS, MAX_OPS, MAX_SEGS, MAX_SEGS, 64};
        draw_attr(s, e, KIND_CALM);
        e->attr.timeout = 12; /* 16.8 ms */
        e->attr.min_rnr_timer = 12; /* 0.64 ms */
        e->attr.max_rd_atomic = e->attr.max_dest_rd_atomic = 4;
        e->v6 = false;
    }
}
