// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/tx.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/loop/decision_memory.h"
#include "daemon/loop/fault_watch.h"
#include "daemon/loop/rx.h"
#include "daemon/monitor/capture.h"
#include "daemon/monitor/error_log.h"
#include "daemon/net/gso.h"
#include "wire/bth.h"
#include "wire/gid.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

/* The packets of a batch that go to this device itself. */
struct sorted {
    /* A packet to this device. A duplicated packet is in the list twice. */
    struct inside {
        unsigned index;
        bool ce;
        uint32_t faults; /* that struck it, as in enum pm_record_flags */
    } inside[2 * TX_BATCH_PKTS];
    unsigned n;
};

static void keep_inside(struct sorted *s, unsigned index, bool ce, uint32_t faults)
{
    s->inside[s->n++] = (struct inside){index, ce, faults};
}

/* A packet to a multicast group goes to the network, and to the group's members on this device. */
static bool comes_back(const struct device *d, const struct tx_pkt *p)
{
    return !TAILQ_EMPTY(&d->groups) && !d->settings->loopback_wire && gid_is_multicast(p->av->dgid);
}

/* Must the packet not leave, because it aims at another user's QP of this daemon? See connections.h. */
static bool is_refused(struct device *d, const struct tx_batch *b, const struct tx_pkt *p)
{
    const uint8_t *bth = b->buf + p->off;

    if (!d->connections || (bth_opcode(bth) & OP_SERVICE_MASK) == OP_SERVICE_UD)
        return false;
    return connections_refuse(d->connections, &d->connections_view, p->av->dgid, bth_dest_qpn(bth), p->src_qpn);
}

static void drop_refused(struct device *d, const struct tx_batch *b, const struct tx_pkt *p)
{
    d->io.tx_bad_peer++;
    error_log_bad_peer(d, p, b->buf + p->off);
}

/* The entries of the batch that the packet or run takes. */
static unsigned entries(const struct tx_pkt *p)
{
    return p->run ? p->run->n : 1;
}

/* Does the packet or run stay within the device? All others are encoded. */
static bool stays_inside(const struct device *d, const struct tx_pkt *p)
{
    return p->run || p->plain || device_keeps_inside(d, p->av->dgid);
}

/* The index of the first packet from `first` on that is refused; b->n: none is. */
static unsigned next_refused(struct device *d, const struct tx_batch *b, unsigned first)
{
    if (!d->connections)
        return b->n;
    while (first < b->n && (stays_inside(d, &b->pkt[first]) || !is_refused(d, b, &b->pkt[first])))
        first += entries(&b->pkt[first]);
    return first;
}

/* Queues a message of n packets for sending. */
static void send_out(struct device *d, const struct tx_batch *b, unsigned first, unsigned n, bool ce, uint32_t faults)
{
    uint8_t *out = udp_add(&d->udp, b->buf, &b->pkt[first], n, ce);

    if (out && capture_on(d))
        capture_sent(d, &b->pkt[first], n, out, ce, faults);
}

/* Queues one packet, corrupted or cut short. */
static void send_damaged(struct device *d, const struct tx_batch *b, unsigned i, const struct fault_verdict *v,
                         uint32_t faults)
{
    uint8_t *out = udp_add(&d->udp, b->buf, &b->pkt[i], 1, v->ce);
    struct tx_pkt pkt = b->pkt[i];

    if (!out)
        return;
    if (v->action == FAULT_TRUNCATE) {
        pkt.len = (uint32_t)fault_truncated_len(v, pkt.len);
        udp_truncate(&d->udp, pkt.len);
    } else {
        fault_corrupt(v, out, pkt.len);
    }
    if (capture_on(d))
        capture_sent(d, &pkt, 1, out, v->ce, faults);
}

/* --- without faults ---------------------------------------------------------------------------- */

static void sort_plain(struct device *d, const struct tx_batch *b, unsigned from, struct sorted *s)
{
    unsigned i = from, refused = next_refused(d, b, from);

    while (i < b->n) {
        if (i == refused) {
            drop_refused(d, b, &b->pkt[i]);
            refused = next_refused(d, b, ++i);
            continue;
        }
        if (stays_inside(d, &b->pkt[i])) {
            keep_inside(s, i, false, 0);
            i += entries(&b->pkt[i]);
            continue;
        }
        unsigned n = tx_run_length(b, i, refused);
        send_out(d, b, i, n, false, 0);
        if (comes_back(d, &b->pkt[i])) {
            for (unsigned j = i; j < i + n; j++)
                keep_inside(s, j, false, 0);
        }
        i += n;
    }
}

/* --- unkind ACKs ------------------------------------------------------------------------------- */

/* The longest delay of an ACK: half of the shortest timeout that a QP of Pumice has. The allowed delay is much longer
 * (local_ca_ack_delay). */
#define LATE_ACK_NS (500 * NS_PER_US)

static bool delays_packets(const struct device *d)
{
    return fault_on(&d->fault) || decisions_on(&d->decisions) || unkind_is(&d->unkind, UNKIND_ACKS) || d->netem;
}

/* Does nothing want to see the packets that stay within the device? Then the engine does not make them (pkt_run.h). */
static bool nobody_looks(const struct device *d)
{
    return !capture_on(d) && !delays_packets(d) && !d->unkind.kinds && !d->settings->loopback_wire;
}

/* An unkind NIC may acknowledge late. NAKs are not late. */
static uint64_t ack_delay(struct device *d, const uint8_t *p)
{
    uint8_t opcode = bth_opcode(p);

    if (!unkind_is(&d->unkind, UNKIND_ACKS) || !(op_table[opcode].properties & OP_IS_RESPONSE) ||
        (opcode & OP_OPERATION_MASK) != OP_ACK || (p[BTH_LEN] & AETH_KIND_MASK) != AETH_ACK)
        return 0;
    uint64_t draw = unkind_next(&d->unkind, UNKIND_ACKS, bth_dest_qpn(p));
    if (draw % 2)
        return 0;
    d->unkind.counters.unkind_acks++;
    return (draw >> 8) % LATE_ACK_NS;
}

/* --- with faults ------------------------------------------------------------------------------- */

static bool damages(const struct fault_verdict *v)
{
    return v->action == FAULT_CORRUPT || v->action == FAULT_TRUNCATE;
}

/* The notes that a capture has about a packet with this verdict. */
static uint32_t faults_of(const struct fault_verdict *v)
{
    return (damages(v) ? PM_RECORD_DAMAGED : 0u) | (v->action == FAULT_DUPLICATE ? PM_RECORD_TWICE : 0u) |
           (v->delay_ns && v->action != FAULT_DROP ? PM_RECORD_LATE : 0u) | (v->ce ? PM_RECORD_MARKED : 0u);
}

/* Sends one packet according to its verdict. Within the device there is no ICRC that would reveal a damaged packet,
 * so the packet is dropped instead. */
static void apply(struct device *d, const struct tx_batch *b, unsigned i, const struct fault_verdict *v,
                  struct sorted *s)
{
    const struct tx_pkt *p = &b->pkt[i];
    unsigned copies = v->action == FAULT_DUPLICATE ? 2 : 1;

    uint32_t faults = faults_of(v);
    bool inside = device_keeps_inside(d, p->av->dgid), damaged = damages(v);

    if (v->action == FAULT_DROP || (inside && damaged)) {
        d->io.rx_icrc_errors += damaged;
        if (capture_on(d))
            capture_lost(d, p, b->buf + p->off, faults);
        return;
    }
    if (inside) {
        while (copies--)
            keep_inside(s, i, v->ce, faults);
        return;
    }
    if (is_refused(d, b, p)) {
        drop_refused(d, b, p);
        return;
    }
    if (damaged) {
        send_damaged(d, b, i, v, faults);
        return;
    }
    while (copies--) {
        send_out(d, b, i, 1, v->ce, faults);
        if (comes_back(d, p))
            keep_inside(s, i, v->ce, faults);
    }
}

/* made: for a recording */
static void decide(struct device *d, const struct tx_batch *b, unsigned i, uint64_t now, struct fault_verdict *v,
                   struct pm_decision *made)
{
    const uint8_t *p = b->buf + b->pkt[i].off;
    struct fault_pkt fp = {
        .src_gid = d->gids.entry[b->pkt[i].av->sgid_index].gid,
        .dst_gid = b->pkt[i].av->dgid,
        .src_qpn = b->pkt[i].src_qpn,
    };

    if (fault_on(&d->fault) || decisions_on(&d->decisions))
        fault_pkt_read(&fp, p, b->pkt[i].len);
    if (decisions_on(&d->decisions))
        decision_memory_decide(d, &b->pkt[i], p, &fp, now, v, made);
    else if (fault_on(&d->fault))
        fault_decide(&d->fault, &fp, now, v);
    v->delay_ns += ack_delay(d, p);
}

/* Passes the next link of an emulated network at the time *at, and sets *at to the time of arrival. False: the packet is
 * lost. */
static bool pass_link(struct device *d, const struct tx_pkt *pkt, struct netem_trip *trip, struct fault_verdict *v,
                      uint64_t *at)
{
    uint64_t random = fault_mix(d->settings->seed + d->net_hops++ + ((uint64_t)d->index << 56));
    struct netem_passage p = netem_pass(d->netem, trip, pkt->len, !gid_is_v4(pkt->av->dgid), random, *at);

    d->io.net_packets += trip->next == 1;
    d->io.net_dropped += p.lost;
    /* Packets that are not ECN-capable can't be marked. */
    if (p.marked && d->settings->ecn && !v->ce) {
        v->ce = true;
        d->io.net_marked++;
    }
    *at = p.arrival;
    return !p.lost;
}

/* Writes down what happened to a packet, after a network may have lost or marked it. */
static void record(struct device *d, const struct pm_decision *made, bool marked, bool lost)
{
    struct pm_decision all = *made;

    if (!decisions_on(&d->decisions))
        return;
    all.marked = marked;
    if (lost)
        all = (struct pm_decision){.packet = made->packet, .strike = PM_STRIKE_LOST};
    decisions_record(&d->decisions, &all);
}

/* Does the packet leave later, because of a fault or because it passes an emulated network? */
static bool waits(struct device *d, const struct tx_batch *b, unsigned i, const struct fault_verdict *v,
                  struct netem_trip *trip)
{
    const struct av *av = b->pkt[i].av;

    if (v->action == FAULT_DROP)
        return false;
    if (d->netem && !device_keeps_inside(d, av->dgid))
        netem_begin(d->netem, d->gids.entry[av->sgid_index].gid, av->dgid, trip);
    return v->delay_ns || trip->hops;
}

/* Puts the packet into the delay queue. */
static void hold(struct device *d, const struct tx_batch *b, unsigned i, struct fault_verdict *v,
                 struct netem_trip *trip, const struct pm_decision *made, uint64_t now)
{
    const struct tx_pkt *pkt = &b->pkt[i];
    struct delay_queue_entry *e = NULL;
    uint64_t due = now + v->delay_ns;
    bool lost = !v->delay_ns && !pass_link(d, pkt, trip, v, &due);

    if (!lost) {
        e = delay_queue_push(&d->delay_queue, pkt, b->buf + pkt->off, v, trip, due);
        lost = !e;
        d->io.fault_queue_full += lost;
    }
    if (e && trip->hops)
        e->made = *made; /* to be written down when it has passed the last link */
    else
        record(d, made, v->ce, lost);
    if (lost && capture_on(d))
        capture_lost(d, pkt, b->buf + pkt->off, faults_of(v));
}

/* Does an entry of the delay queue that is due pass a further link? Then it is back in the queue, or lost. */
static bool travels_on(struct device *d, struct delay_queue_entry *e)
{
    uint64_t at = e->due;

    if (e->trip.next == e->trip.hops) {
        record(d, &e->made, e->verdict.ce, false);
        return false;
    }
    e->pkt.av = &e->av;
    if (pass_link(d, &e->pkt, &e->trip, &e->verdict, &at)) {
        delay_queue_put_back(&d->delay_queue, e, at);
        return true;
    }
    record(d, &e->made, false, true);
    if (capture_on(d))
        capture_lost(d, &e->pkt, e->data, faults_of(&e->verdict));
    free(e);
    return true;
}

/* The limits of GSO sends. The loopback interface hands such a send to the receiver as one datagram. A network may
 * divide it. */
static struct gso_run run_limits(struct device *d, uint64_t now)
{
    if (!udp_gso(&d->udp, now))
        return (struct gso_run){0};
    return (struct gso_run){.bytes = GSO_MAX_BYTES, .pkts = GSO_MAX_SEGMENTS, .whole = d->netdev.loopback};
}

/* Sends the packets first … end - 1, without those that are apart. */
static void send_runs(struct device *d, const struct tx_batch *b, unsigned first, unsigned end)
{
    while (first < end) {
        if (b->pkt[first].apart) {
            first++;
            continue;
        }
        unsigned span = tx_run_length(b, first, end), n = span;

        while (b->pkt[first + n - 1].apart)
            n--;
        send_out(d, b, first, n, false, 0);
        first += span;
    }
}

/* Sends the plain packets first … end - 1, so that no later one overtakes them. */
static void send_before(struct device *d, struct tx_batch *b, unsigned first, unsigned end, uint64_t now)
{
    b->gso = run_limits(d, now);
    send_runs(d, b, first, end);
    for (unsigned i = first; i < end; i++)
        b->pkt[i].apart = true;
}

/* Does the packet need nothing but to be sent to the network? */
static bool is_plain(struct device *d, const struct tx_batch *b, unsigned i, const struct fault_verdict *v)
{
    return v->action == FAULT_PASS && !v->ce && !device_keeps_inside(d, b->pkt[i].av->dgid) &&
           !comes_back(d, &b->pkt[i]) && !is_refused(d, b, &b->pkt[i]);
}

/* Takes the verdict of each packet from `from` on and follows it. Packets without a fault still leave together by GSO,
 * without those between them that are late or lost: faults of the network must not cost the sender system calls. The
 * plain delayed packets before `from` go out with them. A packet with any other fault ends the run. In a capture all
 * packets stay in their order. */
static void sort_faulty(struct device *d, struct tx_batch *b, unsigned from, struct sorted *s, uint64_t now)
{
    unsigned first = 0; /* of the packets that were not sent yet */

    for (unsigned i = from; i < b->n; i++) {
        struct fault_verdict v = {.action = FAULT_PASS};
        struct netem_trip trip = {.hops = 0};
        struct pm_decision made = {.strike = PM_STRIKE_NONE};

        decide(d, b, i, now, &v, &made);
        if (v.delay_ns == 0 && !d->netem && is_plain(d, b, i, &v))
            continue;
        bool late = waits(d, b, i, &v, &trip);
        if (capture_on(d) || !(late || v.action == FAULT_DROP)) {
            send_runs(d, b, first, i);
            first = i + 1;
        }
        if (late) {
            hold(d, b, i, &v, &trip, &made, now);
        } else {
            record(d, &made, v.ce, false);
            apply(d, b, i, &v, s);
        }
        b->pkt[i].apart = true;
    }
    send_runs(d, b, first, b->n);
}

/* Adds packets whose delay is over to the batch, in the order in which they are due. Leaves those to the caller that need
 * nothing but to be sent. Sends the others according to their verdicts, and what is due before them. All that was sent
 * is `apart`. avs: memory for the addresses. */
static void take_delayed(struct device *d, struct tx_batch *b, struct sorted *s, struct av *avs, uint64_t now)
{
    struct delay_queue_entry *e;
    unsigned first = 0; /* of the packets that are left to the caller */

    while (b->n < TX_BATCH_PKTS && b->cap - b->used >= BTH_LEN + PKT_HEADERS_MAX + PKT_MTU_MAX + 2 * ICRC_LEN &&
           (e = delay_queue_pop(&d->delay_queue, now)) != NULL) {
        struct tx_pkt *p = &b->pkt[b->n];

        if (travels_on(d, e))
            continue;
        memcpy(b->buf + b->used, e->data, e->pkt.len);
        avs[b->n] = e->av;
        *p = e->pkt;
        p->av = &avs[b->n];
        p->off = (uint32_t)b->used;
        b->used += p->len;
        b->n++;
        if (capture_on(d) || !is_plain(d, b, b->n - 1, &e->verdict)) {
            send_before(d, b, first, b->n - 1, now);
            first = b->n;
            apply(d, b, b->n - 1, &e->verdict, s);
            p->apart = true;
        }
        free(e);
    }
}

/* --- how long ACKs wait ------------------------------------------------------------------------ */

static uint64_t *wait_counter(struct io_counters *io, uint64_t us)
{
    return us <= 20     ? &io->ack_waits_20us
           : us <= 100  ? &io->ack_waits_100us
           : us <= 500  ? &io->ack_waits_500us
           : us <= 2000 ? &io->ack_waits_2ms
                        : &io->ack_waits_long;
}

/* Counts how long the ACKs of the batch, which was sent, were due. */
static void count_ack_waits(struct device *d, const struct tx_batch *b)
{
    uint64_t now = b->acks ? clock_ns() : 0;

    for (uint32_t i = 0; i < b->acks; i++) {
        uint64_t us = (now - b->ack_due[i]) / NS_PER_US;

        (*wait_counter(&d->io, us))++;
        d->io.ack_wait_us += us;
        if (us > d->io.max_ack_wait_us)
            d->io.max_ack_wait_us = us;
    }
}

/* --- a batch ----------------------------------------------------------------------------------- */

unsigned device_tx(struct device *d, uint64_t now)
{
    struct av avs[TX_BATCH_PKTS];
    struct tx_batch *b = &d->tx;
    struct sorted s;

    if (udp_flush(&d->udp) != 0)
        return 0; /* udp still needs the batch's buffer */
    b->n = b->acks = b->runs = 0;
    b->used = 0;
    b->hand_over = nobody_looks(d);
    s.n = 0;
    b->last.len = 0; /* the engine's packets join the delayed ones only in tx_run_length */
    if (delay_queue_deadline(&d->delay_queue) <= now)
        take_delayed(d, b, &s, avs, now);
    unsigned delayed = b->n;
    if (engine_tx(d->engine, b, now) == 0 && delayed == 0)
        return 0;
    if (capture_on(d))
        capture_made(d, b, delayed);
    /* Not in empty passes: the first packets after a pause must be preceded by a new look for sniffers. */
    b->gso = run_limits(d, now);
    if (delays_packets(d)) {
        sort_faulty(d, b, delayed, &s, now);
    } else {
        send_runs(d, b, 0, delayed);
        sort_plain(d, b, delayed, &s);
    }
    udp_flush(&d->udp); /* if the socket is full, the next call sends the rest */
    fault_watch_daemon(d);
    count_ack_waits(d, b);
    for (unsigned i = 0; i < s.n; i++) {
        const struct tx_pkt *p = &b->pkt[s.inside[i].index];

        if (capture_on(d))
            capture_inside(d, p, b->buf + p->off, s.inside[i].ce, s.inside[i].faults);
        device_rx_loopback(d, p, s.inside[i].ce, b->buf + p->off, now);
    }
    return b->n;
}
