// SPDX-License-Identifier: BSD-2-Clause
/* The UDP socket of a device: one, unconnected, bound to port 4791 of the device's address. Batches in both directions,
 * by GSO, GRO, sendmmsg and recvmmsg; the ICRC of outgoing packets is filled in here, because it depends on how they
 * are sent. */
#ifndef PUMICE_DAEMON_UDP_H
#define PUMICE_DAEMON_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "daemon/base/error_text.h"
#include "daemon/core/engine.h"
#include "daemon/net/address.h"
#include "daemon/net/gso.h"
#include "daemon/net/io_counters.h"
#include "daemon/net/peer_cache.h"

#define UDP_TX_MSGS (2 * TX_BATCH_PKTS) /* each packet alone, and each sent twice */
#define UDP_RX_MSGS 16 /* datagrams per receive call */
#define UDP_RX_BYTES 65536 /* longest datagram */

struct udp_tx {
    unsigned n; /* messages made */
    unsigned sent; /* of these, the first `sent` are gone */
    struct mmsghdr msg[UDP_TX_MSGS];
    struct iovec iov[UDP_TX_MSGS];
    union addr to[UDP_TX_MSGS];
    struct udp_tx_info {
        uint16_t segments;
        uint16_t segment_len; /* of all but the last */
        bool multicast;
    } info[UDP_TX_MSGS];
    struct udp_tx_ctl { /* UDP_SEGMENT, IP_TTL, IP_TOS */
        _Alignas(struct cmsghdr) uint8_t buf[CMSG_SPACE(sizeof(uint16_t)) + 2 * CMSG_SPACE(sizeof(int))];
    } ctl[UDP_TX_MSGS];
};

struct udp_rx {
    struct mmsghdr msg[UDP_RX_MSGS];
    struct iovec iov[UDP_RX_MSGS];
    union addr from[UDP_RX_MSGS];
    struct udp_rx_ctl { /* UDP_GRO, IP_TOS, IP_TTL */
        _Alignas(struct cmsghdr) uint8_t buf[3 * CMSG_SPACE(sizeof(int))];
    } ctl[UDP_RX_MSGS];
    uint8_t *buf; /* UDP_RX_MSGS * UDP_RX_BYTES */
};

struct udp {
    int fd; /* -1: not open */
    union addr own; /* with port 4791 */
    uint32_t rcvbuf, sndbuf; /* as the kernel gives them back: twice what was granted */
    enum gso_mode gso_mode;
    bool gso_refused; /* by the kernel or the interface: off for good */
    bool gso_sniffer; /* auto, and somebody captures: off for now */
    uint64_t gso_checked; /* when it was looked */
    bool ecn; /* to be set before udp_open: packets leave as ECN-capable, and their marks are told */
    int cnp_dscp; /* DSCP of CNPs, 0 ... 63; -1: that of their QP's address vector (udp_init's) */
    bool wants_headers; /* udp_want_headers */
    unsigned ifindex, loopback_ifindex;
    struct io_counters *counters; /* the device's */
    /* Told of each packet or burst that did not get where it should, see ping_trouble; NULL: nobody is. */
    void (*trouble)(void *ctx, const union addr *to, int err, uint32_t mtu, const union addr *offender);
    void *trouble_ctx;
    struct peers tx_peers, rx_peers;
    struct udp_tx tx;
    struct udp_rx rx;
};

/* Prepares it for our address; not open yet. counters must outlive it. */
void udp_init(struct udp *u, const union addr *addr, struct io_counters *counters);
/* Opens and binds; ifindex must be set. 0, or -errno with `why` saying what to do. */
int udp_open(struct udp *u, uint32_t bufsize, char why[ERROR_TEXT_MAX]);
void udp_close(struct udp *u);

/* GSO as it stands: "on", "off", "off (sniffer)", "off (refused)". */
const char *udp_gso_state(const struct udp *u);

/* Payload bytes that a peer with a receive buffer like ours can take in without loss while it does not read, if every
 * packet is about as long as the path MTU. The kernel charges a packet that comes alone with about twice its length. */
uint64_t udp_window_bytes(const struct udp *u);

/* --- out
 * -------------------------------------------------------------------------------------------------------------- */

/* Traffic class of a packet, ECN's two bits not counted. cnp_dscp: as in struct udp. */
uint8_t udp_traffic_class(const struct tx_pkt *pkt, int cnp_dscp);
/* Appends one message: the n packets pkt[0 ... n) of buf (as gso_span finds them; n is 1 without GSO), and fills in
 * their ICRCs; ce: marked as if a router had done it. buf must stay as it is until the message is gone. Returns the message's bytes, NULL if there is no such
 * address. */
uint8_t *udp_add(struct udp *u, uint8_t *buf, const struct tx_pkt *pkt, unsigned n, bool ce);
/* True while GSO may be used; looks for sniffers about once a second. */
bool udp_gso(struct udp *u, uint64_t now);
/* Sends what was added. 0 when all is gone (sent, or dropped and counted), -EAGAIN if the socket is full: to be called
 * again. */
int udp_flush(struct udp *u);
static inline bool udp_pending(const struct udp *u)
{
    return u->tx.sent < u->tx.n;
}

/* --- in
 * --------------------------------------------------------------------------------------------------------------- */

struct udp_datagram {
    const uint8_t *data;
    size_t len;
    size_t segment; /* length of each packet but the last, which may be shorter; == len if it is one packet */
    struct peer_addr *peer; /* where it came from; valid until the next udp_datagram */
    uint8_t tos; /* TOS or traffic class, and … */
    uint8_t hop_limit; /* … TTL or hop limit, if udp_want_headers was called; else 0 */
};
#define UDP_ECN 3u /* bits of tos */
#define UDP_ECN_ECT 2u /* ECN-capable, ECT(0) */
#define UDP_ECN_CE 3u /* congestion experienced */
/* Receives what is there on fd, the device's own socket or a group's, at most UDP_RX_MSGS datagrams; returns how many.
 * Their data stay valid until the next call. */
unsigned udp_recv(struct udp *u, int fd);
/* peers: of the socket that it was received from. */
void udp_datagram(struct udp *u, unsigned i, struct peers *peers, struct udp_datagram *d);

/* Asks the kernel for what only datagram QPs and congestion control need to know of each datagram. */
void udp_want_headers(struct udp *u);

/* A socket for what is sent to a multicast group: bound to the group's address, so that it gets nothing else and tells
 * the destination by being the one that it came from (the device's own socket, which is bound to a unicast address, gets
 * no multicast at all); a member of the group on the device's interface. addr receives the group's address with port
 * 4791. A descriptor, or -errno. */
int udp_join(const struct udp *u, const uint8_t gid[16], union addr *addr);

/* Takes ICMP errors off the socket and counts them. */
void udp_drain_errors(struct udp *u);

#endif
