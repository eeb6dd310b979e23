// SPDX-License-Identifier: BSD-2-Clause
/* The owner of an engine: it does exactly what the comment at the top of engine.h requires. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define POISON 0xdb

/* --- packets in -------------------------------------------------------------------------------- */

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
        sim_require(s, ok && (p->v6 || id == p->ip_id), "host %d: IP ID %u not recovered from the ICRC (%u)", h->index,
                    p->ip_id, id);
        return true;
    }
    return icrc_check(ctx, p->ip_id, p->data, p->len);
}

/* Records the receives that the engine had when it refused a packet of an end with a receive queue. Its RNR NAK may leave
 * much later, behind a response that DCQCN holds back, and the user may have posted receives by then. */
static void note_refusal(struct host *h, uint32_t qpn)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        struct end *e = &s->end[i];
        if (e->host == h->index && e->qpn == qpn) {
            e->refused = 1 + (e->refill ? e->offered : e->rposted);
        }
    }
}

/* run: NULL, or the run that the packet is the first one of */
static void deliver(struct host *h, const struct pkt *k, const struct pkt_run *run, const struct rx_meta *meta)
{
    const struct engine_counters *c = engine_counters(h->e);
    uint64_t refused = c->send_rnr_err;
    pool_rx(h, k, run, meta);
    if (c->send_rnr_err != refused) {
        note_refusal(h, k->dest_qpn);
    }
}

static void rx_one(struct host *h, struct wirepkt *p)
{
    struct sim *s = h->sim;
    struct pkt k;
    struct rx_meta meta = {.ce = p->ce, .traffic_class = p->tclass, .hop_limit = p->hops, .like_pumice = true};
    dgram_flies(s, p, true);
    if (!p->loop) {
        bool ok = icrc_is_right(h, p);
        sim_require(s, ok != p->corrupted, "packet %u: ICRC is %s", p->number,
                    ok ? "right, but bits were flipped" : "wrong");
        if (!ok) {
            capture_packet(s, p, "corrupted, dropped");
            return;
        }
    }
    capture_packet(s, p, "arrives");
    enum pkt_error err = pkt_decode(p->data, p->len, &k);
    sim_require(s, err == PKT_OK || p->rogue, "packet %u can't be decoded: %s", p->number, pkt_error_name(err));
    if (err != PKT_OK) {
        return;
    }
    memcpy(meta.src_gid, s->host[p->src].cfg.gids[p->v6 ^ (p->stranger == STRANGER_SOURCE)], 16);
    memcpy(meta.dst_gid,
           p->group ? s->dg.group[p->group - 1] : h->cfg.gids[p->v6 ^ (p->stranger == STRANGER_DESTINATION)], 16);
    deliver(h, &k, NULL, &meta);
}

/* --- packets out ------------------------------------------------------------------------------- */

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

/* Returns the number of the multicast group, from 1; 0: it is not a group. */
static int group_of(const struct sim *s, const uint8_t gid[16])
{
    for (int g = 0; g < DG_GROUPS; g++) {
        if (s->dg.n > 0 && memcmp(s->dg.group[g], gid, 16) == 0) {
            return g + 1;
        }
    }
    return 0;
}

static uint64_t mix(uint64_t h, const void *p, size_t len)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
    }
    return h;
}

static bool is_rogue(const struct host *h, uint32_t qpn)
{
    for (int i = 0; i < h->sim->sc.nends; i++) {
        const struct end *e = &h->sim->end[i];
        if (e->host == h->index && e->qpn == qpn) {
            return e->rogue;
        }
    }
    return false;
}

static void ship_to(struct host *h, const struct tx_batch *b, uint32_t index, int dst, bool v6, int group)
{
    struct sim *s = h->sim;
    const struct tx_pkt *t = &b->pkt[index];
    struct wirepkt *p = net_alloc(t->len);
    memcpy(p->data, b->buf + t->off, t->len);
    p->src = h->index;
    p->dst = dst;
    p->v6 = v6;
    p->group = group;
    p->tclass = t->av->traffic_class;
    p->hops = t->av->hop_limit;
    p->loop = p->dst == h->index;
    p->ip_id = s->sc.ip_ids ? (uint16_t)prng_range(&s->rng, 0, 0xffff) : 0;
    p->number = s->net.sent;
    if (!p->loop) {
        icrc_store(p->data + p->len - ICRC_LEN,
                   icrc_compute(&h->icrc[p->dst][v6], p->ip_id, p->data, p->len - ICRC_LEN));
    }
    uint32_t body = p->len - ICRC_LEN;
    s->trace = mix(s->trace, p->data, body < 64 ? body : 64);
    s->trace = mix(s->trace, &s->now, sizeof s->now);
    s->totals.packets++;
    capture_packet(s, p, t->retransmit ? "sent again" : "sent");
    dgram_flies(s, p, false);
    bool closed = (p->data[0] & OP_SERVICE_MASK) != OP_SERVICE_UD; /* a datagram may come from any address */
    if (!p->loop && closed && prng_chance(&s->rng, s->sc.strangers)) {
        rogue_stranger(h, p);
    }
    uint8_t service = p->data[0] & OP_SERVICE_MASK;
    if (!p->loop && (service == OP_SERVICE_RC || service == OP_SERVICE_XRC) && s->sc.forged &&
        prng_chance(&s->rng, s->sc.forged)) {
        rogue_psn(h, p);
    }
    if (is_rogue(h, t->src_qpn) && prng_chance(&s->rng, s->sc.rogues)) {
        rogue_peer(h, p);
    }
    net_send(&s->net, p, s->now);
}

static void deliver_run(struct host *h, const struct pkt_run *run, const struct rx_meta *meta)
{
    struct totals *t = &h->sim->totals;
    uint32_t qpn = run->first.dest_qpn;
    t->runs++;
    t->handed += run->n;
    t->packets += run->n - 1;
    if (!dgram_counts_packets(h, qpn) && !pool_counts_packets(h, qpn)) {
        deliver(h, &run->first, run, meta);
        return;
    }
    for (uint32_t i = 0; i < run->n; i++) {
        struct pkt k;
        pkt_run_packet(run, i, &k);
        deliver(h, &k, NULL, meta);
    }
}

static void rx_direct(struct host *h, const struct tx_batch *b, uint32_t index, const struct pkt *k)
{
    struct sim *s = h->sim;
    bool v6 = false;
    const struct av *av = b->pkt[index].av;
    struct rx_meta meta = {.traffic_class = av->traffic_class,
                           .hop_limit = av->hop_limit,
                           .like_pumice = true,
                           .src_qpn = b->pkt[index].src_qpn};
    int group = group_of(s, av->dgid);
    memcpy(meta.dst_gid, av->dgid, 16);
    if (group == 0) {
        host_of(s, av->dgid, &v6);
    }
    memcpy(meta.src_gid, h->cfg.gids[v6], 16);
    s->totals.packets++;
    if (b->pkt[index].run) {
        deliver_run(h, b->pkt[index].run, &meta);
    } else {
        deliver(h, k, NULL, &meta);
    }
}

/* Sends to a group: a copy to each other host, and one back to the own engine, as engine.h requires. */
static void ship_group(struct host *h, const struct tx_batch *b, uint32_t index, const struct pkt *k, int group)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nhosts; i++) {
        if (i != h->index || !s->sc.direct_loop) {
            ship_to(h, b, index, i, false, group);
        }
    }
    if (s->sc.direct_loop) {
        rx_direct(h, b, index, k);
    }
}

static void ship(struct host *h, const struct tx_batch *b, uint32_t index, const struct pkt *k)
{
    struct sim *s = h->sim;
    const struct av *av = b->pkt[index].av;
    int group = group_of(s, av->dgid);
    bool v6 = false;
    if (group) {
        ship_group(h, b, index, k, group);
        return;
    }
    int dst = host_of(s, av->dgid, &v6);
    sim_require(s, dst == h->index || (!b->pkt[index].run && !b->pkt[index].plain),
                "host %d: a packet to another host is not encoded", h->index);
    if (s->sc.direct_loop && dst == h->index) {
        rx_direct(h, b, index, k);
    } else {
        ship_to(h, b, index, dst, v6, 0);
    }
}

/* Checks a packet of an entry that was not encoded as if it had been. */
static void observe_plain(struct host *h, const struct tx_pkt *entry, struct pkt k)
{
    static uint8_t bytes[PKT_HEADERS_MAX + PKT_MTU_MAX + ICRC_LEN];
    sim_require(h->sim, k.payload_len <= PKT_MTU_MAX, "host %d: hands over a packet that is too long", h->index);
    size_t header_len = pkt_encode(&k, bytes);
    memcpy(bytes + header_len, k.payload, k.payload_len);
    memset(bytes + header_len + k.payload_len, 0, k.pad);
    struct tx_pkt t = *entry;
    t.off = 0;
    t.len = (uint32_t)header_len + k.payload_len + k.pad + ICRC_LEN;
    t.psn = k.psn;
    t.header_len = (uint16_t)header_len;
    enum pkt_error err = pkt_decode(bytes, t.len, &k);
    sim_require(h->sim, err == PKT_OK, "host %d: hands over what can't be decoded: %s", h->index, pkt_error_name(err));
    observe_tx(h, &t, bytes, &k);
}

static uint32_t entries(const struct tx_pkt *t)
{
    return t->run ? t->run->n : 1;
}

/* Checks the packets of a batch, and decodes them into k. A run is checked packet by packet. */
static void observe_batch(struct host *h, const struct tx_batch *b, struct pkt *k)
{
    struct sim *s = h->sim;
    size_t at = 0;
    uint32_t i = 0;
    for (; i < b->n; i += entries(&b->pkt[i])) {
        const struct tx_pkt *t = &b->pkt[i];
        sim_require(s, t->off == at && t->len >= BTH_LEN + ICRC_LEN && t->len <= b->used - at,
                    "host %d: packet %u of the batch is at %u + %u", h->index, i, t->off, t->len);
        at += t->len;
        for (uint32_t n = 0; t->run && n < t->run->n; n++) {
            pkt_run_packet(t->run, n, &k[i]);
            observe_plain(h, t, k[i]);
        }
        if (t->plain) {
            observe_plain(h, t, *t->plain);
            k[i] = *t->plain;
        }
        if (t->run || t->plain) {
            continue;
        }
        enum pkt_error err = pkt_decode(b->buf + t->off, t->len, &k[i]);
        sim_require(s, err == PKT_OK, "host %d: sends what can't be decoded: %s", h->index, pkt_error_name(err));
        observe_tx(h, t, b->buf + t->off, &k[i]);
    }
    sim_require(s, at == b->used && i == b->n, "host %d: %zu bytes in the batch, %zu in its packets", h->index, b->used,
                at);
}

static uint32_t send_batch(struct host *h, bool hold_acks)
{
    struct sim *s = h->sim;
    static struct tx_batch b;
    static struct pkt k[TX_BATCH_PKTS];
    b.buf = h->txbuf; /* field by field: the batch is long */
    b.cap = h->txcap;
    b.used = b.last.len = b.last.bytes = b.last.pkts = 0;
    b.n = b.acks = b.runs = 0;
    b.held = false;
    b.hold_acks = hold_acks;
    b.hand_over = s->sc.hand_over;
    b.gso = h->gso;
    memset(h->txbuf, POISON, 512);
    uint32_t n = engine_tx(h->e, &b, s->now);
    sim_require(s, n == b.n && n <= TX_BATCH_PKTS && b.used <= b.cap, "host %d: engine_tx returns %u, n %u, used %zu",
                h->index, n, b.n, b.used);
    observe_batch(h, &b, k);
    for (uint32_t i = 0; i < n; i += entries(&b.pkt[i])) {
        sim_require(s, s->sc.hand_over || (!b.pkt[i].run && !b.pkt[i].plain), "host %d: hands packets over unasked",
                    h->index);
        ship(h, &b, i, &k[i]);
    }
    return n;
}

/* --- results ----------------------------------------------------------------------------------- */

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
        s->trace = mix(s->trace, &s->now, sizeof s->now);
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
    mem_report_faults(h);
    counters_take(h);
    int n = take_events(h);
    n += h->sim->sc.poll_ns == 0 ? take_completions(h, UINT32_MAX) : 0;
    return n + user_leave(h);
}

/* Returns the number of results. */
static int service(struct host *h)
{
    struct sim *s = h->sim;
    int results = 0, round = 0;
    for (;;) {
        sim_require(s, round++ < 20000, "host %d: there's no end of packets and completions", h->index);
        results += take_results(h);
        bool hold = prng_chance(&s->rng, s->sc.hold_acks);
        if (send_batch(h, hold) > 0 || (hold && send_batch(h, false) > 0)) {
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

/* --- one step ---------------------------------------------------------------------------------- */

void host_step(struct host *h)
{
    struct sim *s = h->sim;
    size_t n = h->ninbox;
    for (size_t i = 0; i < n; i++) {
        rx_one(h, h->inbox[i]);
    }
    if (s->now >= engine_deadline(h->e)) {
        engine_expire(h->e, s->now);
    }
    int posted, results;
    do {
        posted = user_post(h);
        results = service(h);
        if (n > 0) { /* deferred writes are done, so free the packets' memory */
            for (size_t i = 0; i < n; i++) {
                memset(h->inbox[i]->data, POISON, h->inbox[i]->len);
                free(h->inbox[i]);
            }
            h->ninbox = n = 0;
        }
        /* An unsignaled datagram frees its slot when it is sent, and no completion tells the user. */
    } while (posted > 0 || results > 0 || dgram_can_post(h));
}
