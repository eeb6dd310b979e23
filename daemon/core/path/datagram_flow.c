// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/datagram_flow.h"

#include <errno.h>
#include <string.h>

#include "wire/gid.h"

/* An address that does not answer probes: a quarter of the window is released in this interval. */
#define PACE_NS 250000u
#define RETRY_NS 1000000000u /* such an address gets a probe at most once in this interval */
/* An address that has answered before is given up after this many misses in a row. The wait doubles each time, up to
 * flow_wait_ns << WAIT_SHIFT_MAX. That is one second in all: on a busy machine, the other process may not run for so long,
 * and packets that its socket has no room for are lost. */
#define ANSWER_WAITS 20u
#define WAIT_SHIFT_MAX 5u
/* After this many misses, an address that has not answered is no longer probed. */
#define MISSES_UNPROBED 3u

void datagram_flow_table_init(struct datagram_flow_table *t, const struct engine_config *cfg,
                              struct timer_wheel *timers, struct peer_window_table *peers,
                              struct engine_counters *counters)
{
    *t = (struct datagram_flow_table){.cfg = cfg, .timers = timers, .peers = peers, .counters = counters};
    list_init(&t->due);
}

/* --- sending ---------------------------------------------------------------------------------- */

static uint64_t quarter(const struct datagram_flow_table *t)
{
    return t->cfg->peer_window_bytes / 4;
}

/* If several addresses share an entry, only the entry's own address is probed, if packets were sent there. */
static bool can_probe(const struct peer_window *p)
{
    return !gid_is_multicast(p->gid) && memcmp(p->flow.av.dgid, p->gid, sizeof(p->gid)) == 0;
}

static void probe_soon(struct datagram_flow_table *t, struct peer_window *p)
{
    struct datagram_flow *f = &p->flow;
    if (can_probe(p) && list_empty(&f->due) && f->count < FLOW_PROBES)
        list_append(&t->due, &f->due);
}

/* How long to wait for an answer. */
static uint64_t answer_wait_ns(const struct datagram_flow_table *t, const struct datagram_flow *f)
{
    return f->unprobed ? PACE_NS : t->cfg->flow_wait_ns << (f->misses < WAIT_SHIFT_MAX ? f->misses : WAIT_SHIFT_MAX);
}

void datagram_flow_charge(struct datagram_flow_table *t, struct peer_window *p, const struct av *av, uint64_t cost,
                          uint64_t now)
{
    struct datagram_flow *f = &p->flow;
    peer_window_charge(p, cost);
    if (datagram_flow_is_idle(f)) {
        f->probed = f->charged;
        timer_wheel_set(t->timers, &f->timer, now + answer_wait_ns(t, f));
    }
    if (memcmp(p->gid, av->dgid, sizeof(p->gid)) == 0)
        f->av = *av;
    f->charged += cost;
    if (f->charged - f->probed < quarter(t))
        return;
    if (!f->unprobed || now - f->probed_at >= RETRY_NS)
        probe_soon(t, p);
}

static void release(struct peer_window *p, uint64_t mark)
{
    struct datagram_flow *f = &p->flow;
    if (mark <= f->released)
        return;
    uint64_t bytes = mark - f->released;
    f->released = mark;
    peer_window_release(p, bytes);
}

/* Removes the oldest n probes. */
static void forget(struct datagram_flow *f, unsigned n)
{
    f->count = (uint8_t)(f->count - n);
    memmove(f->probe, f->probe + n, f->count * sizeof(f->probe[0]));
}

static bool append(struct tx_batch *b, const struct av *av, const struct probe *probe, uint32_t psn)
{
    struct pkt p = {
        .opcode = OP_SERVICE_UD | OP_SEND_ONLY,
        .migreq = true,
        .pkey = PKEY_DEFAULT,
        .dest_qpn = PROBE_QPN,
        .psn = psn & PSN_MASK,
        .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
    };
    uint32_t len = probe->kind == PROBE_ASK ? probe->size : PROBE_LEN;
    uint8_t *payload;
    p.pad = (uint8_t)pkt_pad(len);
    if (!tx_append(b, &p, av, PROBE_QPN, len, &payload))
        return false;
    probe_encode(probe, payload);
    memset(payload + PROBE_LEN, 0, len - PROBE_LEN);
    return true;
}

/* The probe also covers the packets before it in the batch. */
static bool send_probe(struct datagram_flow_table *t, struct tx_batch *b, struct datagram_flow *f, uint64_t now)
{
    struct probe probe = {.kind = PROBE_ASK, .purpose = PROBE_FLOW, .sequence = t->sequence + 1, .size = PROBE_LEN};
    if (!append(b, &f->av, &probe, probe.sequence))
        return false;
    t->counters->flow_probes_sent++;
    t->sequence++;
    f->probe[f->count++] = (struct datagram_probe){.sequence = probe.sequence, .mark = f->charged};
    f->probed = f->charged;
    f->probed_at = now;
    if (f->count == 1)
        timer_wheel_set(t->timers, &f->timer, now + answer_wait_ns(t, f));
    return true;
}

bool datagram_flow_tx(struct datagram_flow_table *t, struct tx_batch *b, uint64_t now)
{
    for (; t->head != t->tail; t->head++) {
        const struct datagram_answer *a = &t->answer[t->head % FLOW_ANSWER_SLOTS];
        if (!append(b, &a->av, &a->probe, a->probe.sequence))
            return false;
    }
    while (!list_empty(&t->due)) {
        struct datagram_flow *f = list_entry(t->due.next, struct datagram_flow, due);
        if (!send_probe(t, b, f, now))
            return false;
        list_remove(&f->due);
    }
    return true;
}

/* --- the owner's checks ----------------------------------------------------------------------- */

static int send_later(struct datagram_flow_table *t, const struct av *av, const struct probe *probe)
{
    if (t->tail - t->head == FLOW_ANSWERS)
        return -EAGAIN;
    t->answer[t->tail++ % FLOW_ANSWER_SLOTS] = (struct datagram_answer){.av = *av, .probe = *probe};
    return 0;
}

int datagram_flow_check(struct datagram_flow_table *t, const struct av *av, uint32_t size, uint32_t sequence,
                        uint64_t token)
{
    struct probe probe = {
        .kind = PROBE_ASK, .purpose = PROBE_CHECK, .sequence = sequence, .size = size, .token = token};
    if (size < PROBE_LEN || size > PKT_MTU_MAX || gid_is_multicast(av->dgid) || av->sgid_index >= t->cfg->num_gids)
        return -EINVAL;
    return send_later(t, av, &probe);
}

int datagram_flow_ask_features(struct datagram_flow_table *t, const struct av *av, uint32_t sequence, uint64_t token)
{
    struct probe probe = {
        .kind = PROBE_ASK, .purpose = PROBE_FEATURES, .sequence = sequence, .size = PROBE_LEN, .token = token};
    return send_later(t, av, &probe);
}

bool datagram_flow_pop_check(struct datagram_flow_table *t, struct check *c)
{
    if (t->seen_head == t->seen_tail)
        return false;
    *c = t->seen[t->seen_head++ % FLOW_CHECKS];
    return true;
}

static void saw(struct datagram_flow_table *t, const struct probe *probe, const struct rx_meta *meta)
{
    if (t->seen_tail - t->seen_head == FLOW_CHECKS)
        return;
    struct check *c = &t->seen[t->seen_tail++ % FLOW_CHECKS];
    *c = (struct check){.answer = probe->kind == PROBE_ANSWER,
                        .icrc_ids = probe->icrc_ids,
                        .sequence = probe->sequence,
                        .size = probe->size,
                        .token = probe->token};
    memcpy(c->peer, meta->src_gid, sizeof(c->peer));
}

/* --- time ------------------------------------------------------------------------------------- */

/* No answer came in time. */
static void missed(struct datagram_flow_table *t, struct peer_window *p)
{
    struct datagram_flow *f = &p->flow;
    if (f->misses < UINT8_MAX)
        f->misses++;
    if (f->answers && f->misses < ANSWER_WAITS) {
        forget(f, f->count - 1u); /* makes room for one more probe; the answer to the newest one covers all */
        probe_soon(t, p);
        return;
    }
    f->unprobed = f->misses >= MISSES_UNPROBED;
    f->answers = false;
    release(p, f->probe[f->count - 1].mark);
    forget(f, f->count);
}

void datagram_flow_expire(struct datagram_flow_table *t, struct peer_window *p, uint64_t now)
{
    struct datagram_flow *f = &p->flow;
    if (f->unprobed) {
        uint64_t left = f->charged - f->released;
        release(p, f->released + (left < quarter(t) ? left : quarter(t)));
        if (f->count && now - f->probed_at >= t->cfg->flow_wait_ns)
            forget(f, f->count);
    } else if (f->count) {
        missed(t, p);
    } else if (f->charged - f->released >= quarter(t) / 4 && can_probe(p)) {
        probe_soon(t, p);
    } else {
        release(p, f->charged);
    }
    timer_wheel_set(t->timers, &f->timer, datagram_flow_is_idle(f) ? NEVER : now + answer_wait_ns(t, f));
}

/* --- receiving -------------------------------------------------------------------------------- */

/* Index of the address that the packet was sent to; 0 if the address is not the device's. */
static uint8_t address_index(const struct datagram_flow_table *t, const uint8_t gid[16])
{
    for (uint8_t i = 0; i < t->cfg->num_gids; i++)
        if (memcmp(t->cfg->gids[i], gid, 16) == 0)
            return i;
    return 0;
}

static void answer(struct datagram_flow_table *t, const struct probe *probe, const struct rx_meta *meta)
{
    if (t->tail - t->head == FLOW_ANSWERS || gid_is_multicast(meta->src_gid) || gid_is_multicast(meta->dst_gid))
        return;
    struct datagram_answer *a = &t->answer[t->tail++ % FLOW_ANSWER_SLOTS];
    *a = (struct datagram_answer){.probe = *probe};
    a->probe.kind = PROBE_ANSWER;
    a->probe.icrc_ids = true; /* the owner of the engine writes them when it computes the ICRCs */
    memcpy(a->av.dgid, meta->src_gid, sizeof(a->av.dgid));
    a->av.sgid_index = address_index(t, meta->dst_gid);
    a->probe.sacks = t->cfg->selective;
    t->counters->flow_answers_sent++;
}

/* Few sequence numbers are under way. So a forged or late answer matches none of them, or matches one only once. */
static void answered(struct datagram_flow_table *t, struct peer_window *p, uint32_t sequence, uint64_t now)
{
    struct datagram_flow *f = &p->flow;
    for (unsigned i = 0; i < f->count; i++) {
        if (f->probe[i].sequence != sequence)
            continue;
        t->counters->flow_answers_rcvd++;
        uint64_t mark = f->probe[i].mark;
        forget(f, i + 1);
        f->answers = true;
        f->unprobed = false;
        f->misses = 0;
        release(p, mark);
        if (f->charged - f->probed >= quarter(t))
            probe_soon(t, p);
        timer_wheel_set(t->timers, &f->timer, datagram_flow_is_idle(f) ? NEVER : now + answer_wait_ns(t, f));
        return;
    }
}

bool datagram_flow_is_own(const struct pkt *p)
{
    return p->opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p->deth.qkey == PROBE_QKEY && pkey_matches(p->pkey);
}

bool datagram_flow_rx(struct datagram_flow_table *t, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct probe probe;
    if (!datagram_flow_is_own(p) || !probe_decode(p->payload, p->payload_len, &probe))
        return false;
    if (probe.purpose == PROBE_CHECK)
        saw(t, &probe, meta);
    if (probe.kind == PROBE_ASK) {
        answer(t, &probe, meta);
    } else if (probe.purpose == PROBE_FLOW || probe.purpose == PROBE_FEATURES) {
        struct peer_window *from = peer_window_lookup(t->peers, meta->src_gid);
        if (from && probe.purpose == PROBE_FLOW)
            answered(t, from, probe.sequence, now);
        else if (from)
            peer_features_answered(&from->features, &probe, now);
    }
    return true;
}
