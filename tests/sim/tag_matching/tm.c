// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/tag_matching/tm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/bare.h"

#define US 1000u
#define MOST_NS 5000000000ull /* virtual time; the timeouts are 67 ms */
#define POLL_NS (20 * US)
#define PD 1u

/* --- output ------------------------------------------------------------------------------------ */

void tms_fail(struct tms *s, const char *format, ...)
{
    va_list args;
    if (s->failure[0])
        return;
    va_start(args, format);
    vsnprintf(s->failure, sizeof(s->failure), format, args);
    va_end(args);
}

void tms_say(const struct tms *s, const char *format, ...)
{
    va_list args;
    if (!s->verbose)
        return;
    printf("%10.3f us  ", (double)s->now / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* --- memory ------------------------------------------------------------------------------------ */

uint64_t tms_va(const struct tms *s, int host, int region)
{
    return s->host[host].va + (uint64_t)region * TMS_REGION;
}

uint8_t *tms_bytes(const struct tms *s, int host, int region)
{
    return s->host[host].bytes + (size_t)region * TMS_REGION;
}

uint8_t tms_byte(int msg, uint32_t i)
{
    return (uint8_t)((uint32_t)msg * 37 + i * 11 + (i >> 8));
}

static uint8_t *piece_at(const struct tms_host *h, const struct mem_segment *p)
{
    uint64_t size = (uint64_t)TMS_REGIONS * TMS_REGION;
    if (p->va < h->va || p->len > size || p->va - h->va > size - p->len)
        abort();
    return h->bytes + (p->va - h->va);
}

static int up_read(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    const struct tms_host *h = ctx;
    unsigned at = 0;
    size_t in = 0;
    for (unsigned i = 0; i < nsrc; i++) {
        const uint8_t *from = piece_at(h, &src[i]);
        size_t left = src[i].len;
        while (left && at < ndst) {
            size_t n = dst[at].len - in < left ? dst[at].len - in : left;
            memcpy((uint8_t *)dst[at].p + in, from, n);
            from += n;
            left -= n;
            in += n;
            if (in == dst[at].len) {
                at++;
                in = 0;
            }
        }
    }
    return 0;
}

static int up_write(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                    size_t len)
{
    const struct tms_host *h = ctx;
    (void)qpn, (void)len;
    for (unsigned i = 0; i < ndst; i++) {
        memcpy(piece_at(h, &dst[i]), src, dst[i].len);
        src += dst[i].len;
    }
    return 0;
}

/* --- building ---------------------------------------------------------------------------------- */

static void make_host(struct tms *s, int i)
{
    static const struct owner_ops owner = {0};
    static const struct mem_ops ops = {.read = up_read, .write = up_write};
    struct tms_host *h = &s->host[i];
    h->va = 0x1000000ull * (uint64_t)(i + 1);
    h->bytes = calloc(TMS_REGIONS, TMS_REGION);
    engine_config_defaults(&h->cfg);
    h->cfg.max_qp = TMS_QPS;
    h->cfg.max_mr = 2;
    h->cfg.max_srq = 1;
    h->cfg.max_peers = 4;
    h->cfg.completion_slots = (uint32_t)prng_pick(&s->rng, 64, 1024);
    h->cfg.event_slots = 16;
    h->cfg.num_gids = 1;
    bare_gid(i, h->cfg.gids[0]);
    h->mem = bare_zeroed(engine_size(&h->cfg));
    h->e = engine_init(h->mem, &h->cfg, &ops, h, &owner, h);
    struct mr_init mr = {.pd = PD,
                         .va = h->va,
                         .iova = h->va,
                         .length = (uint64_t)TMS_REGIONS * TMS_REGION,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ};
    if (!h->e || !h->bytes || mr_register(h->e, &mr, &h->key) != 0)
        abort();
}

static void make_srq(struct tms *s)
{
    struct tm_params p = {.max_num_tags = s->slots, .max_ops = TM_MAX_OPS, .trace_slots = 64};
    struct srq_init init = {.pd = PD, .max_wr = TMS_BUFS, .max_sge = 1, .cq = &s->srq, .owner = s};
    s->tm_mem = bare_zeroed(tm_size(&p));
    init.tm = s->tm = tm_init(s->tm_mem, &p);
    s->srq_mem = bare_zeroed(srq_size(TMS_BUFS, 1));
    if (!s->tm || srq_create(s->host[0].e, &init, s->srq_mem, &s->srq) != 0)
        abort();
}

static struct qp *make_qp(struct tms *s, int i, int host, struct srq *srq, void **mem)
{
    struct tms_conn *c = &s->conn[i];
    struct qp_init init = {
        .type = QPT_RC, .pd = PD, .srq = srq, .caps = {64, 8, 1, 1, 32}, .send_cq = c, .recv_cq = c, .owner = c};
    struct qp *qp;
    *mem = bare_zeroed(qp_size(&init));
    if (qp_create(s->host[host].e, &init, *mem, &qp) != 0)
        abort();
    return qp;
}

static void make_conn(struct tms *s, int i)
{
    struct tms_conn *c = &s->conn[i];
    uint32_t psn = (uint32_t)prng_pick(&s->rng, 0, 0xfffff0, 1000);
    struct qp_attr a = {.port = 1,
                        .access = ACCESS_REMOTE_READ,
                        .path_mtu = (uint8_t)(s->mtu == 256 ? 1 : 3),
                        .timeout = 14,
                        .retry_cnt = 7,
                        .rnr_retry = 7,
                        .min_rnr_timer = 1,
                        .max_rd_atomic = (uint8_t)prng_range(&s->rng, 1, 4),
                        .max_dest_rd_atomic = 16,
                        .rq_psn = psn,
                        .sq_psn = psn};
    c->host = 1 + i % (TMS_HOSTS - 1);
    c->from = make_qp(s, i, c->host, NULL, &c->from_mem);
    c->to = make_qp(s, i, 0, s->srq, &c->to_mem);
    bare_connect(c->from, c->to, 0, &a);
    bare_connect(c->to, c->from, c->host, &a);
}

static void make(struct tms *s)
{
    struct net_faults f = {.delay_ns = 2 * US, .reorder_ns = 30 * US, .jitter_ns = 3 * US};
    s->conns = (int)prng_range(&s->rng, 1, TMS_QPS);
    s->mtu = (uint32_t)prng_pick(&s->rng, 256, 1024);
    if (prng_chance(&s->rng, 700)) {
        f.loss = (uint32_t)prng_pick(&s->rng, 0, 10, 50, 100);
        f.dup = (uint32_t)prng_pick(&s->rng, 0, 20, 100);
        f.reorder = (uint32_t)prng_pick(&s->rng, 0, 20);
    }
    net_init(&s->net, &s->events, &f, s->seed);
    for (int i = 0; i < TMS_HOSTS; i++)
        make_host(s, i);
    tms_draw_messages(s);
    tms_draw_receives(s);
    make_srq(s);
    for (int i = 0; i < s->conns; i++)
        make_conn(s, i);
    s->kill = TMS_NONE;
    if (prng_chance(&s->rng, 250)) {
        s->kill = (int)prng_range(&s->rng, 0, (uint64_t)s->conns - 1);
        s->kill_at = prng_range(&s->rng, 1, 600) * US;
        s->kill_way = (uint8_t)prng_range(&s->rng, 0, 3);
    }
}

static void unmake(struct tms *s)
{
    struct timed ev;
    while (evq_pop(&s->events, UINT64_MAX, &ev))
        free(ev.p);
    free(s->events.heap);
    for (int i = 0; i < s->conns; i++) {
        free(s->conn[i].from_mem);
        free(s->conn[i].to_mem);
    }
    free(s->tm_mem);
    free(s->srq_mem);
    for (int i = 0; i < TMS_HOSTS; i++) {
        free(s->host[i].mem);
        free(s->host[i].bytes);
    }
}

/* --- running ----------------------------------------------------------------------------------- */

static void receive(struct tms *s, struct wirepkt *p)
{
    struct tms_host *h = &s->host[p->dst];
    bare_receive(h->e, p, &s->net, s->now);
    h->touched = true;
}

static void poll(struct tms *s, int host)
{
    const struct completion *c;
    while ((c = engine_peek_completion(s->host[host].e)) != NULL && prng_chance(&s->rng, 800)) {
        struct completion copy = *c;
        engine_drop_completion(s->host[host].e);
        if (host == 0)
            tms_recv_completion(s, &copy);
        else
            tms_send_completion(s, &copy);
    }
}

static void kill_conn(struct tms *s)
{
    struct tms_conn *c = &s->conn[s->kill];
    struct qp_attr a = {.state = s->kill_way == 2 ? QPS_RESET : QPS_ERR};
    c->dead = true;
    tms_say(s, "connection %d dies, way %u", s->kill, s->kill_way);
    if (s->kill_way == 3) {
        c->gone = true;
        qp_destroy(c->to);
    } else {
        qp_modify(s->kill_way ? c->to : c->from, &a, QPA_STATE, NULL);
    }
    if (s->kill_way >= 2)
        tms_recv_requests_vanish(s, s->kill);
    s->host[0].touched = s->host[c->host].touched = true;
}

static void wake(struct tms *s, int host)
{
    if (s->kill != TMS_NONE && !s->conn[s->kill].dead && s->now >= s->kill_at)
        kill_conn(s);
    poll(s, host);
    if (host == 0)
        tms_recv_step(s);
    else
        tms_send_step(s, host);
    s->host[host].touched = true;
    evq_push(&s->events, (struct timed){.at = s->now + prng_range(&s->rng, 1, POLL_NS), .kind = EV_POLL, .n = host});
}

/* At the end the program learns that a peer is dead, and destroys its QP, which may be in the middle of a message.
 * True if there was such a QP. */
static bool bury(struct tms *s)
{
    struct tms_conn *c = s->kill != TMS_NONE ? &s->conn[s->kill] : NULL;
    if (!c || c->gone)
        return false;
    qp_destroy(c->to);
    s->host[0].touched = true;
    return c->gone = true;
}

static void run(struct tms *s)
{
    for (int i = 0; i < TMS_HOSTS; i++)
        evq_push(&s->events, (struct timed){.at = prng_range(&s->rng, 0, POLL_NS), .kind = EV_POLL, .n = i});
    while (!s->failure[0] && (!tms_settled(s) || bury(s))) {
        struct timed ev;
        uint64_t t = evq_next(&s->events);
        for (int i = 0; i < TMS_HOSTS; i++) {
            uint64_t d = engine_deadline(s->host[i].e);
            t = d < t ? d : t;
        }
        s->now = t > s->now ? t : s->now;
        if (s->now > MOST_NS) {
            tms_unsettled(s);
            return;
        }
        while (evq_pop(&s->events, s->now, &ev)) {
            if (ev.kind == EV_PACKET)
                receive(s, ev.p);
            else
                wake(s, ev.n);
        }
        for (int i = 0; i < TMS_HOSTS; i++) {
            struct tms_host *h = &s->host[i];
            if (!h->touched && engine_deadline(h->e) > s->now)
                continue;
            h->touched = false;
            engine_expire(h->e, s->now);
            bare_transmit(h->e, i, &s->net, s->now);
        }
    }
}

int tms_run(struct tms *s, uint64_t seed, bool verbose)
{
    memset(s, 0, sizeof(*s));
    s->seed = seed;
    s->verbose = verbose;
    prng_seed(&s->rng, seed);
    make(s);
    run(s);
    if (!s->failure[0])
        tms_check(s);
    unmake(s);
    return s->failure[0] ? -1 : 0;
}
