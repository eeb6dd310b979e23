// SPDX-License-Identifier: BSD-2-Clause
/* The sending part of udp.h: builds the messages of a batch with their control data and ICRCs, sends them by sendmmsg,
 * and handles the errors that the kernel returns. */
#define LOG_AREA LOG_NET
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/net/udp.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define TTL_DEFAULT 64 /* used where the address vector has hop_limit 0 */

static uint8_t *put_cmsg(uint8_t *p, int level, int type, const void *data, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)p;

    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), data, len);
    return p + CMSG_SPACE(len);
}

uint8_t udp_traffic_class(const struct tx_pkt *pkt, int cnp_dscp)
{
    return pkt->cnp && cnp_dscp >= 0 ? (uint8_t)(cnp_dscp << 2) : pkt->av->traffic_class;
}

/* TOS or traffic class of a packet; the low two bits are the ECN bits. */
static int tos_of(const struct udp *u, const struct tx_pkt *pkt, bool ce)
{
    unsigned tos = udp_traffic_class(pkt, u->cnp_dscp);

    if (ce)
        tos |= UDP_ECN_CE;
    else if (u->ecn)
        tos = (tos & ~UDP_ECN) | UDP_ECN_ECT;
    return (int)tos;
}

static size_t put_control(const struct udp *u, const struct peer_addr *to, uint8_t *buf, const struct tx_pkt *pkt,
                          uint16_t segment, bool ce)
{
    const struct av *av = pkt->av;
    bool v6 = to->addr.sa.sa_family == AF_INET6;
    uint8_t *p = buf;
    int v;

    if (segment)
        p = put_cmsg(p, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
    /* The kernel's default TTL of multicast packets is 1. So TTL_DEFAULT must be set for them, too. */
    if (av->hop_limit && (av->hop_limit != TTL_DEFAULT || to->multicast)) {
        v = av->hop_limit;
        p = put_cmsg(p, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_HOPLIMIT : IP_TTL, &v, sizeof(v));
    }
    v = tos_of(u, pkt, ce);
    if (v != (u->ecn ? (int)UDP_ECN_ECT : 0)) { /* differs from the socket's setting */
        p = put_cmsg(p, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &v, sizeof(v));
    }
    return (size_t)(p - buf);
}

_Static_assert(GSO_MAX_SEGMENTS - 1 <= BTH_ICRC_ID_MAX, "the BTH has room for the IP ID of each packet");

/* ip_id: see bth_icrc_id. It is written after the ICRC was computed, which does not cover it: a processor would stall if
 * it read eight bytes of which one was just written. */
static void fill_icrc(const struct icrc_ctx *ctx, unsigned ip_id, uint8_t *p, size_t len)
{
    icrc_store(p + len - ICRC_LEN, icrc_compute(ctx, (uint16_t)ip_id, p, len - ICRC_LEN));
    bth_set_icrc_id(p, ip_id);
}

/* Collects the packets of a message that are not apart, in a piece for each gap. Fills in their ICRCs. The IP ID of a
 * packet is its index within its send; see udp.c about PMTUDISC_PROBE. */
static void gather(struct udp_tx *tx, const struct icrc_ctx *ctx, struct udp_tx_info *info, uint8_t *buf,
                   const struct tx_pkt *pkt, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t *p = buf + pkt[i].off;

        if (pkt[i].apart)
            continue;
        if (i == 0 || pkt[i - 1].apart)
            tx->iov[tx->iovs++] = (struct iovec){p, 0};
        fill_icrc(ctx, info->segments++, p, pkt[i].len);
        tx->iov[tx->iovs - 1].iov_len += pkt[i].len;
        info->bytes += pkt[i].len;
    }
}

uint8_t *udp_add(struct udp *u, uint8_t *buf, const struct tx_pkt *pkt, unsigned n, bool ce)
{
    struct udp_tx *tx = &u->tx;
    struct udp_socket *s = u->socket[pkt[0].av->sgid_index];
    struct peer_addr *peer = s ? peers_by_gid(&s->tx_peers, pkt[0].av->dgid) : NULL;

    if (!peer) {
        for (unsigned i = 0; i < n; i++)
            u->counters->tx_bad_address += !pkt[i].apart;
        return NULL;
    }
    s->sent = true;
    unsigned at = tx->n++, iov = tx->iovs;
    struct udp_tx_info *info = &tx->info[at];
    *info = (struct udp_tx_info){.socket = s, .segment_len = (uint16_t)pkt[0].len, .multicast = peer->multicast};
    gather(tx, &peer->icrc, info, buf, pkt, n);
    tx->to[at] = peer->addr;
    if (peer->addr.sa.sa_family == AF_INET6) /* 0: the kernel chooses one */
        tx->to[at].v6.sin6_flowinfo = htonl(pkt[0].av->flow_label & UDP_FLOW_LABEL);
    struct msghdr *m = &tx->msg[at].msg_hdr;
    m->msg_name = &tx->to[at];
    m->msg_namelen = peer->addr_len;
    m->msg_iov = &tx->iov[iov];
    m->msg_iovlen = tx->iovs - iov;
    m->msg_controllen = put_control(u, peer, tx->ctl[at].buf, pkt, info->segments > 1 ? info->segment_len : 0, ce);
    m->msg_control = m->msg_controllen ? tx->ctl[at].buf : NULL;
    return m->msg_iov->iov_base;
}

void udp_truncate(struct udp *u, size_t len)
{
    u->tx.iov[u->tx.iovs - 1].iov_len = len;
    u->tx.info[u->tx.n - 1].bytes = (uint32_t)len;
}

static void count_sent(struct udp *u, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        u->counters->tx_packets += u->tx.info[i].segments;
        u->counters->tx_bytes += u->tx.info[i].bytes;
        u->counters->tx_gso_sends += u->tx.info[i].segments > 1;
        u->counters->tx_multicast += u->tx.info[i].multicast ? u->tx.info[i].segments : 0;
    }
    u->counters->tx_datagrams += n;
}

static void count_dropped(struct udp *u, unsigned packets, const union addr *to, int err)
{
    char text[ADDR_TEXT_MAX];

    if (u->trouble && err != ENOBUFS && err != EAGAIN)
        u->trouble(u->trouble_ctx, to, err, 0, NULL);
    switch (err) {
    case ENOBUFS:
    case EAGAIN:
        u->counters->tx_nobufs += packets;
        return;
    case EMSGSIZE:
        u->counters->tx_too_long += packets;
        log_warn("a packet to %s is longer than the interface's MTU and was dropped: use a smaller path MTU",
                 addr_text(to, text));
        return;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EPERM:
    case ECONNREFUSED:
        u->counters->tx_unreachable += packets;
        break;
    default:
        u->counters->tx_errors += packets;
    }
    log_warn("can't send to %s: %s", addr_text(to, text), strerror(err));
}

/* Sends the packets of one piece of a message one by one. */
static void send_piece(struct udp *u, unsigned at, const struct peer_addr *peer, const struct iovec *piece)
{
    const struct udp_tx_info *info = &u->tx.info[at];
    uint8_t *p = piece->iov_base;
    size_t left = piece->iov_len;

    while (left) {
        size_t len = left < info->segment_len ? left : info->segment_len;

        fill_icrc(&peer->icrc, 0, p, len);
        if (sendto(info->socket->fd, p, len, MSG_DONTWAIT, &u->tx.to[at].sa, addr_len(&u->tx.to[at])) < 0) {
            count_dropped(u, 1, &u->tx.to[at], errno);
        } else {
            u->counters->tx_packets++;
            u->counters->tx_multicast += info->multicast;
            u->counters->tx_datagrams++;
            u->counters->tx_bytes += len;
        }
        p += len;
        left -= len;
    }
}

/* The kernel or the interface refused GSO. Sends the packets of the message one by one. Each has IP ID 0 then, and so
 * needs a new ICRC. */
static void send_singly(struct udp *u, unsigned at)
{
    const struct msghdr *m = &u->tx.msg[at].msg_hdr;
    uint8_t gid[16];

    if (!u->gso_refused)
        log_write(LOG_AREA, LOG_LEVEL_WARN,
                  "this kernel or interface refuses UDP GSO: packets leave one by one from now on");
    u->gso_refused = true;
    addr_to_gid(&u->tx.to[at], gid);
    struct peer_addr *peer = peers_by_gid(&u->tx.info[at].socket->tx_peers, gid);
    for (size_t i = 0; i < m->msg_iovlen && peer; i++)
        send_piece(u, at, peer, &m->msg_iov[i]);
}

/* The kernel refuses flow labels (EINVAL) while some socket of the host has one for itself alone. False: the message has
 * none. */
static bool remove_flow_label(union addr *to)
{
    if (to->sa.sa_family != AF_INET6 || to->v6.sin6_flowinfo == 0)
        return false;
    to->v6.sin6_flowinfo = 0;
    return true;
}

/* Handles the first unsent message after the kernel refused it with err. Returns false if the message should be sent
 * again. */
static bool give_up(struct udp *u, int err, unsigned tries)
{
    unsigned at = u->tx.sent;

    if (err == EINVAL && remove_flow_label(&u->tx.to[at]))
        return false;
    if ((err == EINVAL || err == EIO || err == EOPNOTSUPP) && u->tx.info[at].segments > 1) {
        send_singly(u, at);
        return true;
    }
    /* The kernel reports an ICMP error for an earlier packet by failing the next send, which then sent nothing. */
    udp_drain_errors(u, u->tx.info[at].socket->fd);
    if (tries == 0 && err != EMSGSIZE && err != ENOBUFS)
        return false;
    count_dropped(u, u->tx.info[at].segments, &u->tx.to[at], err);
    return true;
}

/* Number of messages, beginning with the first unsent one, that leave by the same socket. */
static unsigned same_socket(const struct udp_tx *tx)
{
    const struct udp_socket *s = tx->info[tx->sent].socket;
    unsigned i = tx->sent + 1;

    while (i < tx->n && tx->info[i].socket == s)
        i++;
    return i - tx->sent;
}

int udp_flush(struct udp *u)
{
    struct udp_tx *tx = &u->tx;
    unsigned tries = 0;

    while (tx->sent < tx->n) {
        int r = sendmmsg(tx->info[tx->sent].socket->fd, &tx->msg[tx->sent], same_socket(tx), MSG_DONTWAIT);

        if (r > 0) {
            count_sent(u, tx->sent, (unsigned)r);
            tx->sent += (unsigned)r;
            tries = 0;
        } else if (r < 0 && errno == EAGAIN) {
            u->counters->tx_again++;
            return -EAGAIN;
        } else if (r < 0 && errno != EINTR) {
            if (give_up(u, errno, tries++)) {
                tx->sent++;
                tries = 0;
            }
        }
    }
    tx->n = tx->sent = tx->iovs = 0;
    return 0;
}
