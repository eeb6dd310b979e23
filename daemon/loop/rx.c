// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/rx.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/loop/decision_memory.h"
#include "daemon/monitor/capture.h"
#include "daemon/monitor/error_log.h"
#include "daemon/monitor/peer_identity.h"
#include "daemon/objects/qp/mcast_group.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

/* A datagram of this length holds many packets. It is part of a long message, or of many messages, and more are
 * expected within BULK_NS. */
#define BULK_BYTES 32768u
#define BULK_NS (200 * NS_PER_US)

/* All its packets are counted, and the first one is reported. The datagram is not empty. */
static void drop_datagram(struct device *d, const struct udp_datagram *dg, uint64_t *counter, enum drop_cause cause)
{
    uint64_t packets = (dg->len + dg->segment - 1) / dg->segment;

    d->io.rx_packets += packets;
    *counter += packets;
    error_log_undecoded(d, cause, dg->peer->gid, dg->data, dg->segment);
}

/* May packets come from this address and port? */
static bool admit_source(struct device *d, const struct udp_datagram *dg, uint64_t now)
{
    struct peer_addr *p = dg->peer;

    if (p->refused_by != d->peers_version) { /* once for each change of the list, not for each datagram */
        p->refused = !device_admits(d, p->gid);
        p->refused_by = d->peers_version;
    }
    if (__builtin_expect(p->refused, 0)) {
        drop_datagram(d, dg, &d->io.rx_not_listed, DROP_NOT_LISTED);
        return false;
    }
    /* Packets from the device's own address are its own. Another process can't have its port. */
    if (p->other_port && (gid_table_has(&d->gids, p->gid) || peer_is_pumice(peer_identity_check(d, p->gid, now)))) {
        drop_datagram(d, dg, &d->io.rx_bad_port, DROP_PORT);
        return false;
    }
    return true;
}

/* An IPv4 packet's ICRC is right for this IP ID. Is it the ID that its sender has used? A Pumice daemon writes it into
 * the packet, so the check is complete. Daemons before that used the IDs of a GSO send: a damaged packet has one of them
 * by chance once in 2^26. Any of the 2^16 IDs is right once in 2^16. IPv6 has no ID. */
static bool is_its_id(struct device *d, const struct peer_addr *from, const uint8_t *p, uint16_t ip_id, uint64_t now)
{
    if (ip_id == bth_icrc_id(p) || from->other_port || from->icrc.flow.is_v6)
        return true;
    enum peer_kind kind = peer_identity_check(d, from->gid, now);
    return kind == PEER_OTHER || (kind == PEER_PUMICE_OLD && ip_id < GSO_MAX_SEGMENTS);
}

bool device_rx_withholds(struct device *d, const struct pkt *p)
{
    const struct fault_pkt fp = {.src_gid = d->rx_meta->src_gid,
                                 .dst_gid = d->rx_meta->dst_gid,
                                 .dest_qpn = p->dest_qpn,
                                 .psn = p->psn,
                                 .opcode = p->opcode};

    if (decisions_on(&d->decisions))
        return decision_memory_refuses(d, &fp, d->now);
    return fault_refuses(&d->fault, &fp, d->now);
}

static void give_to_engine(struct device *d, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    bool withhold = __builtin_expect(fault_receives(&d->fault) || d->decisions.receives, 0);

    if (withhold) {
        d->rx_meta = meta;
        engine_withhold_recv(d->engine, true);
    }
    engine_rx(d->engine, p, meta, now);
    if (withhold)
        engine_withhold_recv(d->engine, false);
}

static void process_packet(struct device *d, const struct udp_datagram *dg, const struct rx_meta *meta,
                           const uint8_t *p, size_t len, uint64_t now)
{
    uint16_t ip_id;
    struct pkt pkt;

    d->io.rx_packets++;
    d->io.rx_bytes += len;
    if (len < BTH_LEN + ICRC_LEN) {
        d->io.rx_malformed++;
        error_log_undecoded(d, DROP_MALFORMED, meta->src_gid, p, len);
        return;
    }
    uint8_t marked = bth_icrc_id(p);
    bool right = icrc_check_any_id(&dg->peer->icrc, marked, p, len, &ip_id) && is_its_id(d, dg->peer, p, ip_id, now);
    if (capture_on(d))
        capture_received(d, meta, dg->peer->icrc.flow.src_port, right ? ip_id : marked, p, (uint32_t)len);
    if (!right) {
        d->io.rx_icrc_errors++;
        error_log_undecoded(d, DROP_ICRC, meta->src_gid, p, len);
        return;
    }
    if (pkt_decode(p, len, &pkt) != PKT_OK) {
        d->io.rx_malformed++;
        error_log_undecoded(d, DROP_MALFORMED, meta->src_gid, p, len);
        return;
    }
    if (__builtin_expect(marked && !dg->peer->like_pumice, 0))
        dg->peer->like_pumice = ip_id == marked && !dg->peer->other_port;
    give_to_engine(d, &pkt, meta, now);
}

/* Passes the datagrams that udp_recv has received to the engine. peers: the cache of the socket. gid: the address of the
 * socket, which is that of `group`; group NULL: one of the device's addresses. Returns the number of packets, but at
 * least 1 if there was any datagram. */
static unsigned process_batch(struct device *d, unsigned datagrams, struct peers *peers, const uint8_t gid[16],
                              const struct mcast_group *group, uint64_t now)
{
    unsigned packets = 0;

    for (unsigned i = 0; i < datagrams; i++) {
        struct udp_datagram dg;
        struct rx_meta meta = {.src_qpn = 0};
        unsigned index = 0;

        udp_datagram(&d->udp, i, peers, &dg);
        if (group && mcast_group_is_echo(d, dg.peer->gid))
            continue;
        if (__builtin_expect(fault_link_down(&d->fault), 0)) {
            d->fault.counters.fault_link_dropped += dg.len ? (dg.len + dg.segment - 1) / dg.segment : 0;
            continue;
        }
        if (dg.len == 0 || !admit_source(d, &dg, now))
            continue;
        memcpy(meta.src_gid, dg.peer->gid, sizeof(meta.src_gid));
        memcpy(meta.dst_gid, gid, sizeof(meta.dst_gid));
        meta.traffic_class = dg.tos;
        meta.hop_limit = dg.hop_limit;
        meta.flow_label = dg.flow_label;
        /* Pumice devices send from port 4791, as no NIC and no soft-RoCE does, and mark the packets of a burst that has an
         * IP ID (wire/bth.h). A single packet has no mark. */
        meta.like_pumice = !dg.peer->other_port && (dg.peer->like_pumice || dg.peer->icrc.flow.is_v6);
        meta.ce = d->settings->ecn && (dg.tos & UDP_ECN) == UDP_ECN_CE;
        for (size_t off = 0; off < dg.len; off += dg.segment, index++) {
            size_t len = dg.len - off < dg.segment ? dg.len - off : dg.segment;

            process_packet(d, &dg, &meta, dg.data + off, len, now);
        }
        d->io.rx_multicast += group ? index : 0;
        packets += index;
        if (dg.len >= BULK_BYTES)
            d->bulk_until = now + BULK_NS;
    }
    return packets + (datagrams && !packets);
}

/* The sockets of all addresses but the first. Few programs use these, and each read costs a system call. */
static unsigned rx_others(struct device *d, uint64_t now)
{
    unsigned packets = 0;

    for (unsigned i = 1; i < d->gids.n; i++) {
        struct gid_entry *e = &d->gids.entry[i];
        struct udp_socket *s = d->udp.socket[i];

        if (!e->used)
            continue;
        if (s->sent) {
            s->sent = false; /* an answer is likely */
            e->hot_until = now + GID_HOT_NS;
        }
        if (e->hot_until <= now)
            continue;
        mem_backend_flush(&d->memory); /* udp_recv uses the receive buffers again */
        unsigned datagrams = udp_recv(&d->udp, s->fd);
        if (datagrams)
            e->hot_until = now + GID_HOT_NS;
        packets += process_batch(d, datagrams, &s->rx_peers, e->gid, NULL, now);
    }
    return packets;
}

unsigned device_rx(struct device *d, uint64_t now)
{
    struct udp_socket *s = &d->udp.first;
    unsigned packets = process_batch(d, udp_recv(&d->udp, s->fd), &s->rx_peers, d->gid, NULL, now);

    return d->gids.n > 1 ? packets + rx_others(d, now) : packets;
}

unsigned device_rx_groups(struct device *d, uint64_t now)
{
    struct mcast_group *g;
    unsigned packets = 0;

    TAILQ_FOREACH (g, &d->groups, link) {
        for (unsigned i = 0; i < MCAST_FAMILIES; i++) {
            struct mcast_socket *m = g->socket[i];
            unsigned datagrams;

            if (!m || m->hot_until <= now)
                continue;
            mem_backend_flush(&d->memory);
            datagrams = udp_recv(&d->udp, m->fd);
            if (datagrams)
                m->hot_until = now + MCAST_GROUP_HOT_NS;
            packets += process_batch(d, datagrams, &m->peers, g->gid, g, now);
        }
    }
    return packets;
}

void device_rx_loopback(struct device *d, const struct tx_pkt *t, bool ce, const uint8_t *p, uint64_t now)
{
    const struct av *av = t->av;
    struct rx_meta meta = {.traffic_class = av->traffic_class,
                           .hop_limit = av->hop_limit,
                           .flow_label = av->flow_label & UDP_FLOW_LABEL,
                           .ce = ce && d->settings->ecn,
                           .src_qpn = t->src_qpn};
    struct pkt pkt;

    d->io.loopback_packets += t->run ? t->run->n : 1;
    memcpy(meta.src_gid, d->gids.entry[av->sgid_index].gid, sizeof(meta.src_gid));
    memcpy(meta.dst_gid, av->dgid, sizeof(meta.dst_gid));
    if (t->run)
        engine_rx_run(d->engine, t->run, &meta, now);
    else if (t->plain)
        engine_rx(d->engine, t->plain, &meta, now);
    else if (pkt_decode(p, t->len, &pkt) == PKT_OK)
        give_to_engine(d, &pkt, &meta, now);
    else
        d->io.rx_malformed++;
}
