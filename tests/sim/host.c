// SPDX-License-Identifier: BSD-2-Clause
/* The owner of an engine: does what the top of engine.h asks, no more. Also plays the users: posts when requests are due, takes
 * completions, moves QPs. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xdb

/* --- posting -------------------------------------------------------------------------------------------------------- */

static void fill_sges(const struct end *e, const struct seg *seg, unsigned n, struct sge *sge)
{
    for (unsigned i = 0; i < n; i++) {
        sge[i] = (struct sge){seg_addr(e, &seg[i]), seg[i].len, seg_key(e, &seg[i])};
    }
}

/* The first segment that has bytes: a fault in an empty one would not count. */
static struct sge *first_used(struct sge *sge, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (sge[i].length > 0) {
            return &sge[i];
        }
    }
    return &sge[0];
}

#define NO_SUCH_KEY 0xdeadbeefu

static void plant_send(const struct end *e, const struct op *o, const struct region *g, struct send_wr *wr, struct sge *sge)
{
    const struct end *p = e->peer;
    uint64_t flat = p->space.va + g->off + o->roff; /* in keys of the whole arena */
    struct sge *local = first_used(sge, o->nseg);
    switch (o->plant) {
    case PLANT_BAD_RKEY:
        wr->rkey = NO_SUCH_KEY;
        break;
    case PLANT_OLD_RKEY:
        wr->rkey = p->key_old;
        wr->remote_addr = flat;
        break;
    case PLANT_RANGE:
        wr->remote_addr = g->iova + g->size;
        /* By one byte at least; a READ may be asked for in parts, and all of them must be wrong. */
        if (o->rregion != REG_CELLS && (o->opcode != WR_RDMA_READ || o->len <= e->mtu)) {
            wr->remote_addr -= o->len - 1 - o->roff % o->len;
        }
        break;
    case PLANT_WRAP:
        wr->remote_addr = o->rregion == REG_CELLS ? UINT64_MAX - 7 : UINT64_MAX - o->len / 2;
        break;
    case PLANT_PD:
        wr->rkey = p->key_other_pd;
        wr->remote_addr = o->rregion == REG_CELLS ? p->space.va : flat;
        break;
    case PLANT_MR_ACCESS:
        wr->rkey = p->key_no_access;
        wr->remote_addr = o->rregion == REG_CELLS ? p->space.va : flat;
        break;
    case PLANT_MISALIGNED:
        wr->remote_addr += 1 + o->wr_id % 7;
        break;
    case PLANT_LKEY:
        local->lkey = NO_SUCH_KEY;
        break;
    case PLANT_LRANGE:
        local->addr = e->reg[o->seg[0].region].iova + e->reg[o->seg[0].region].size - (local->length - 1);
        break;
    default:
        break;
    }
}

static void make_send_wr(struct end *e, int index, struct send_wr *wr, struct sge *sge)
{
    struct op *o = &e->op[index];
    const struct end *p = e->peer;
    const struct region *g = o->rregion == REG_CELLS ? &p->cells : &p->reg[o->rregion];
    *wr = (struct send_wr){.wr_id = o->wr_id, .slot = (uint32_t)(1000 * (e->index + 1) + index), .opcode = o->opcode,
                           .flags = o->flags, .num_sge = o->nseg, .rkey = g->key, .remote_addr = g->iova + o->roff,
                           .compare_add = o->compare_add, .swap = o->swap};
    memcpy(wr->imm, o->imm, 4);
    fill_sges(e, o->seg, o->nseg, sge);
    if (o->flags & SEND_INLINE) {
        wr->num_sge = 0;
        wr->inline_len = o->len;
    } else if (o->len == 0 && !op_takes_recv(o->opcode)) {
        wr->rkey = NO_SUCH_KEY; /* must not matter */
    }
    if (o->plant) {
        plant_send(e, o, g, wr, sge);
    }
}

static void post_send(struct end *e)
{
    struct sim *s = e->sim;
    struct op *o = &e->op[e->posted];
    struct send_wr wr;
    struct sge sge[MAX_SEGS];
    uint8_t data[ENGINE_MAX_INLINE];
    make_send_wr(e, e->posted, &wr, sge);
    if (o->flags & SEND_INLINE) {
        mem_gather(e, o->seg, o->nseg, data);
    }
    int err = qp_post_send(e->qp, &wr, sge, data, s->now);
    sim_require(s, err == 0, "end %d: post_send of request %d: %d", e->index, e->posted, err);
    memset(&wr, POISON, sizeof wr);
    memset(sge, POISON, sizeof sge);
    memset(data, POISON, sizeof data);
    o->posted = true;
    o->rel = e->rel_end;
    o->npsn = o->len == 0 || o->rregion == REG_CELLS ? 1 : (o->len + e->mtu - 1) / e->mtu;
    e->rel_end += o->npsn;
    e->posted++;
    capture_note(s, "end %d posts request %d: opcode %d, %u bytes, flags %#x, PSN %u+%u", e->index, e->posted - 1, o->opcode,
                 o->len, o->flags, (e->sq_psn + o->rel) & PSN_MASK, o->npsn);
}

/* A queue without room must say so, and nothing more. */
static void post_too_many(struct end *e)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED};
    int err = qp_post_send(e->qp, &wr, NULL, NULL, e->sim->now);
    sim_require(e->sim, err == -ENOMEM, "end %d: post_send to a full queue: %d", e->index, err);
}

static bool may_send(const struct end *e)
{
    return e->qp && !e->closed && qp_state(e->qp) >= QPS_RTS;
}

/* Returns how many were posted; *more is set if others are due but have to wait for the next turn. */
static int post_sends(struct end *e, bool *more)
{
    struct sim *s = e->sim;
    int n = 0;
    while (may_send(e) && e->posted < e->nops && e->op[e->posted].at <= s->now) {
        if (qp_send_room(e->qp) == 0) {
            if (prng_chance(&s->rng, 100)) {
                post_too_many(e);
            }
            break;
        }
        if ((uint32_t)n >= s->sc.post_chunk) {
            *more = true;
            break;
        }
        post_send(e);
        n++;
    }
    return n;
}

void host_post_recvs(struct end *e)
{
    struct sim *s = e->sim;
    while (e->rposted < e->offered && qp_recv_room(e->qp) > 0) {
        struct rcv *v = &e->rcv[e->rposted];
        struct sge sge[MAX_SEGS];
        struct recv_wr wr = {v->wr_id, (uint32_t)(1000 * (e->index + 1) + e->rposted), v->nseg};
        fill_sges(e, v->seg, v->nseg, sge);
        if (v->plant == PLANT_RECV_LKEY) {
            first_used(sge, v->nseg)->lkey = NO_SUCH_KEY;
        }
        int err = qp_post_recv(e->qp, &wr, sge);
        sim_require(s, err == 0, "end %d: post_recv %d: %d", e->index, e->rposted, err);
        memset(sge, POISON, sizeof sge);
        e->rposted++;
    }
}

static void offer_recvs(struct end *e)
{
    if (!e->qp || e->closed) {
        return;
    }
    while (e->offered < e->nrcv && e->rcv[e->offered].at <= e->sim->now && !e->rcv[e->offered].withheld) {
        e->offered++;
    }
    if (!e->refill) {
        host_post_recvs(e);
    } else if (qp_state(e->qp) == QPS_ERR && e->rposted < e->offered) {
        qp_kick(e->qp);
    }
}

static int post_all(struct host *h)
{
    struct sim *s = h->sim;
    bool more = false;
    int n = 0;
    for (int i = 0; i < s->sc.nends; i++) {
        if (s->end[i].host == h->index) {
            offer_recvs(&s->end[i]);
            n += post_sends(&s->end[i], &more);
        }
    }
    if (more) {
        evq_push(&s->events, (struct timed){.at = s->now + US, .kind = EV_POST, .n = h->index});
    }
    return n;
}

/* --- packets in ----------------------------------------------------------------------------------------------------- */

void host_packet(struct host *h, struct wirepkt *p)
{
    struct sim *s = h->sim;
    if (h->ninbox == h->cap_inbox) {
        h->cap_inbox = h->cap_inbox ? 2 * h->cap_inbox : 16;
        h->inbox = realloc(h->inbox, h->cap_inbox * sizeof *h->inbox);
        if (!h->inbox) {
            abort();
        }
    }
    h->inbox[h->ninbox++] = p;
    if (!h->wake_pending) {
        h->wake_pending = true;
        uint64_t at = s->now + prng_range(&s->rng, 0, s->sc.wake_ns);
        evq_push(&s->events, (struct timed){.at = at, .kind = EV_WAKE, .n = h->index});
    }
}

static bool icrc_is_right(struct host *h, const struct wirepkt *p)
{
    struct sim *s = h->sim;
    const struct icrc_ctx *ctx = &s->host[p->src].icrc[h->index][p->v6];
    uint16_t id = 0;
    if (s->sc.ip_ids && !p->corrupted) {
        bool ok = icrc_check_any_id(ctx, 0, p->data, p->len, &id);
        sim_require(s, ok && (p->v6 || id == p->ip_id), "host %d: IP ID %u not recovered from the ICRC (%u)", h->index, p->ip_id,
                    id);
        return true;
    }
    return icrc_check(ctx, p->ip_id, p->data, p->len);
}

static void rx_one(struct host *h, struct wirepkt *p)
{
    struct sim *s = h->sim;
    struct pkt k;
    struct rx_meta meta = {.ce = p->ce};
    if (!p->loop) {
        bool ok = icrc_is_right(h, p);
        sim_require(s, ok != p->corrupted, "packet %u: ICRC is %s", p->number, ok ? "right, but bits were flipped" : "wrong");
        if (!ok) {
            capture_packet(s, p, "corrupted, dropped");
            return;
        }
    }
    capture_packet(s, p, "arrives");
    enum pkt_error err = pkt_decode(p->data, p->len, &k);
    sim_require(s, err == PKT_OK, "packet %u can't be decoded: %s", p->number, pkt_error_name(err));
    memcpy(meta.src_gid, s->host[p->src].cfg.gids[p->v6], 16);
    engine_rx(h->e, &k, &meta, s->now);
}

/* --- packets out ---------------------------------------------------------------------------------------------------- */

static int host_of(struct sim *s, const uint8_t gid[16], bool *v6)
{
    for (int i = 0; i < s->sc.nhosts; i++) {
        for (int v = 0; v < 2; v++) {
            if (memcmp(s->host[i].cfg.gids[v], gid, 16) == 0) {
                *v6 = v;
                return i;
            }
        }
    }
    sim_fail(s, "a packet goes to an address that nobody has");
}

static uint64_t mix(uint64_t h, const void *p, size_t len)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
    }
    return h;
}

/* A packet that looks like one of the peer's, but comes from the sender's other address: it must not have any effect. */
static void ship_stranger(struct host *h, const struct wirepkt *real)
{
    struct sim *s = h->sim;
    struct wirepkt *p = net_alloc(real->len);
    memcpy(p, real, sizeof *p + real->len);
    p->v6 = !real->v6;
    if (prng_chance(&s->rng, 700)) { /* another PSN, near by */
        p->data[11] = (uint8_t)(p->data[11] + prng_range(&s->rng, 0, 20) - 10);
    }
    for (uint32_t i = BTH_LEN + 16; i + ICRC_LEN < p->len; i++) {
        p->data[i] ^= 0xff;
    }
    icrc_store(p->data + p->len - ICRC_LEN, icrc_compute(&h->icrc[p->dst][p->v6], p->ip_id, p->data, p->len - ICRC_LEN));
    net_send(&s->net, p, s->now);
}

static void ship(struct host *h, const struct tx_batch *b, uint32_t index)
{
    struct sim *s = h->sim;
    const struct tx_pkt *t = &b->pkt[index];
    bool v6 = false;
    struct wirepkt *p = net_alloc(t->len);
    memcpy(p->data, b->buf + t->off, t->len);
    p->src = h->index;
    p->dst = host_of(s, t->av->dgid, &v6);
    p->v6 = v6;
    p->loop = p->dst == h->index;
    p->ip_id = s->sc.ip_ids ? (uint16_t)prng_range(&s->rng, 0, 0xffff) : 0;
    p->number = s->net.sent;
    if (!p->loop) {
        icrc_store(p->data + p->len - ICRC_LEN, icrc_compute(&h->icrc[p->dst][v6], p->ip_id, p->data, p->len - ICRC_LEN));
    }
    uint32_t body = p->len - ICRC_LEN;
    s->trace = mix(s->trace, p->data, body < 64 ? body : 64);
    s->trace = mix(s->trace, &s->now, sizeof s->now);
    s->totals.packets++;
    capture_packet(s, p, t->retransmit ? "sent again" : "sent");
    if (!p->loop && prng_chance(&s->rng, s->sc.strangers)) {
        ship_stranger(h, p);
    }
    net_send(&s->net, p, s->now);
}

/* What receives the engine may use for the packets that come next. */
static void note_receives(struct host *h)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        e->ready = e->host != h->index ? e->ready : e->refill ? e->offered : e->rposted;
    }
}

static void rx_direct(struct host *h, const struct tx_batch *b, uint32_t index, const struct pkt *k)
{
    struct sim *s = h->sim;
    bool v6 = false;
    struct rx_meta meta = {.ce = false};
    int self = host_of(s, b->pkt[index].av->dgid, &v6);
    memcpy(meta.src_gid, s->host[self].cfg.gids[v6], 16);
    s->totals.packets++;
    engine_rx(h->e, k, &meta, s->now);
}

static uint32_t send_batch(struct host *h)
{
    struct sim *s = h->sim;
    static struct tx_batch b;
    static struct pkt k[TX_BATCH_PKTS];
    b = (struct tx_batch){.buf = h->txbuf, .cap = h->txcap};
    memset(h->txbuf, POISON, 512);
    uint32_t n = engine_tx(h->e, &b, s->now);
    sim_require(s, n == b.n && n <= TX_BATCH_PKTS && b.used <= b.cap, "host %d: engine_tx returns %u, n %u, used %zu", h->index, n,
                b.n, b.used);
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tx_pkt *t = &b.pkt[i];
        sim_require(s, t->off == at && t->len >= BTH_LEN + ICRC_LEN && t->len <= b.used - at,
                    "host %d: packet %u of the batch is at %u + %u", h->index, i, t->off, t->len);
        at += t->len;
        enum pkt_error err = pkt_decode(b.buf + t->off, t->len, &k[i]);
        sim_require(s, err == PKT_OK, "host %d: sends what can't be decoded: %s", h->index, pkt_error_name(err));
        observe_tx(h, t, b.buf + t->off, &k[i]);
    }
    sim_require(s, at == b.used, "host %d: %zu bytes in the batch, %zu in its packets", h->index, b.used, at);
    note_receives(h);
    for (uint32_t i = 0; i < n; i++) {
        bool v6;
        if (s->sc.direct_loop && host_of(s, b.pkt[i].av->dgid, &v6) == h->index) {
            rx_direct(h, &b, i, &k[i]);
        } else {
            ship(h, &b, i);
        }
    }
    return n;
}

/* --- results -------------------------------------------------------------------------------------------------------- */

static int take_completions(struct host *h, uint32_t most)
{
    struct sim *s = h->sim;
    int n = 0;
    const struct completion *c;
    while ((uint32_t)n < most && (c = engine_peek_completion(h->e)) != NULL) {
        struct completion copy = *c;
        engine_drop_completion(h->e);
        s->trace = mix(s->trace, &copy.slot, sizeof copy.slot);
        s->trace = mix(s->trace, &copy.status, sizeof copy.status);
        check_completion(h, &copy);
        n++;
    }
    return n;
}

static int take_events(struct host *h)
{
    struct event ev;
    int n = 0;
    while (engine_pop_event(h->e, &ev)) {
        check_event(h, &ev);
        n++;
    }
    return n;
}

static int take_results(struct host *h)
{
    mem_flush(h);
    int n = take_events(h);
    return h->sim->sc.poll_ns == 0 ? n + take_completions(h, UINT32_MAX) : n;
}

/* Returns how many results came. */
static int service(struct host *h)
{
    struct sim *s = h->sim;
    int results = 0, round = 0;
    for (;;) {
        sim_require(s, round++ < 20000, "host %d: there's no end of packets and completions", h->index);
        results += take_results(h);
        if (send_batch(h) > 0) {
            continue;
        }
        int more = take_results(h);
        results += more;
        if (more == 0) {
            break;
        }
    }
    if (s->sc.poll_ns && !h->poll_pending && engine_peek_completion(h->e)) {
        h->poll_pending = true;
        evq_push(&s->events, (struct timed){.at = s->now + s->sc.poll_ns, .kind = EV_POLL, .n = h->index});
    }
    return results;
}

void host_poll(struct host *h)
{
    h->poll_pending = false;
    take_completions(h, h->sim->sc.poll_max);
}

/* --- a turn --------------------------------------------------------------------------------------------------------- */

void host_step(struct host *h)
{
    struct sim *s = h->sim;
    size_t n = h->ninbox;
    note_receives(h);
    for (size_t i = 0; i < n; i++) {
        rx_one(h, h->inbox[i]);
    }
    if (s->now >= engine_deadline(h->e)) {
        engine_expire(h->e, s->now);
    }
    int posted, results;
    do {
        posted = post_all(h);
        results = service(h);
        if (n > 0) { /* deferred writes are done: the packets' memory goes */
            for (size_t i = 0; i < n; i++) {
                memset(h->inbox[i]->data, POISON, h->inbox[i]->len);
                free(h->inbox[i]);
            }
            h->ninbox = n = 0;
        }
    } while (posted > 0 || results > 0);
}

static void move(struct end *e, uint8_t state, uint32_t mask)
{
    const char *why = NULL;
    struct qp_attr a = {.state = state, .sqd_async_notify = true};
    int err = qp_modify(e->qp, &a, QPA_STATE | mask, e->sim->now, &why);
    sim_require(e->sim, err == 0, "end %d: qp_modify to %d: %d (%s)", e->index, state, err, why ? why : "?");
}

void host_step_end(struct end *e, enum end_step step)
{
    struct sim *s = e->sim;
    if (!e->qp || e->closed) {
        return;
    }
    bool dead = qp_state(e->qp) == QPS_ERR;
    switch (step) {
    case STEP_RTR:
    case STEP_RTS:
        if (!dead) {
            build_connect(e, step);
        }
        break;
    case STEP_KILL:
        e->killed = true;
        move(e, QPS_ERR, 0);
        break;
    case STEP_RESET:
        move(e, QPS_RESET, 0);
        e->closed = true;
        break;
    case STEP_SQD:
        if (qp_state(e->qp) == QPS_RTS) {
            e->sqd_pending = true;
            move(e, QPS_SQD, QPA_EN_SQD_ASYNC_NOTIFY);
        }
        break;
    case STEP_RESUME:
        if (qp_state(e->qp) == QPS_SQD) {
            e->sqd_pending = false; /* perhaps it was not drained yet */
            move(e, QPS_RTS, 0);
        }
        break;
    case STEP_CLOSE:
        e->killed = true;
        if (dead || prng_chance(&s->rng, 600)) {
            move(e, QPS_ERR, 0);
        } else {
            move(e, QPS_RESET, 0);
            e->closed = true;
        }
        break;
    }
    capture_note(s, "end %d: step %d, state %d", e->index, step, qp_state(e->qp));
}

bool end_idle(const struct end *e)
{
    int receives = 0;
    if (e->closed) {
        return true;
    }
    if (e->failed) {
        return e->sdone == e->nops && e->rdone == e->offered;
    }
    for (int i = 0; i < e->peer->nops; i++) {
        receives = e->peer->op[i].recv >= 0 && e->peer->op[i].retired && e->peer->op[i].status == WC_SUCCESS
                       ? e->peer->op[i].recv + 1
                       : receives;
    }
    return e->sdone == e->nops && e->rdone >= receives;
}
