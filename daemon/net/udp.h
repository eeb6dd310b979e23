// SPDX-License-Identifier: BSD-2-Clause
/* The UDP sockets of a device: for each of its addresses an unconnected socket, bound to port 4791 of the address. The
 * socket of a packet therefore tells its own address, for sending and for receiving. This module sends and receives
 * batches by GSO, GRO, sendmmsg and recvmmsg. It also fills in the ICRC of outgoing packets, because the ICRC depends
 * on how they are sent. Its parts are udp.c (the sockets), udp_tx.c and udp_rx.c. */
#ifndef PUMICE_DAEMON_NET_UDP_H
#define PUMICE_DAEMON_NET_UDP_H

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

#define UDP_TX_MSGS (2 * TX_BATCH_PKTS) /* room for a batch whose packets all go alone and twice */
#define UDP_TX_IOVS UDP_TX_MSGS /* each has one packet or more */
#define UDP_RX_MSGS 16 /* datagrams per receive call */
#define UDP_RX_BYTES 65536 /* the longest datagram */

struct udp_tx {
    unsigned n; /* messages added */
    unsigned sent; /* the first `sent` of them were sent */
    unsigned iovs; /* used by all messages */
    struct mmsghdr msg[UDP_TX_MSGS];
    struct iovec iov[UDP_TX_IOVS];
    union addr to[UDP_TX_MSGS];
    struct udp_tx_info {
        struct udp_socket *socket; /* that sends the message */
        uint32_t bytes;
        uint16_t segments;
        uint16_t segment_len; /* of all segments but the last */
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
    struct udp_rx_ctl { /* UDP_GRO, IP_TOS, IP_TTL, IPV6_FLOWINFO */
        _Alignas(struct cmsghdr) uint8_t buf[4 * CMSG_SPACE(sizeof(int))];
    } ctl[UDP_RX_MSGS];
    /* UDP_RX_MSGS * UDP_RX_BYTES bytes. The owner may set it between udp_init and udp_open, and keeps it then. Else
     * udp_open allocates it. */
    uint8_t *buf;
    bool owns_buf;
};

/* The socket of one address. */
struct udp_socket {
    int fd; /* -1: not open */
    union addr own; /* with port 4791 */
    bool sent; /* set by each message, cleared by the reader of this field, see loop/rx.c */
    struct peers tx_peers, rx_peers;
};

struct udp {
    struct udp_socket first; /* socket[0] */
    /* By index of the GID table. NULL: there was never one. A socket stays in memory, because unsent messages refer to
     * it. */
    struct udp_socket *socket[ENGINE_MAX_GIDS];
    unsigned sockets; /* 1 + the highest index that is not NULL */
    uint32_t bufsize; /* of udp_open */
    uint32_t rcvbuf, sndbuf; /* of the first socket, as the kernel reports them: twice the granted value */
    enum gso_mode gso_mode;
    /* The kernel or the interface refused GSO: off for good. */
    bool gso_refused;
    /* GSO mode is auto and a sniffer is open: off for now. */
    bool gso_sniffer;
    uint64_t gso_checked; /* time of the last look for sniffers */
    /* Set before udp_open. Packets leave as ECN-capable, and received ECN bits are reported. */
    bool ecn;
    /* DSCP of CNPs, 0 … 63. -1: the DSCP of their QP's address vector (the value after udp_init). */
    int cnp_dscp;
    bool wants_headers; /* udp_want_headers */
    unsigned ifindex, loopback_ifindex;
    struct io_counters *counters; /* of the device */
    /* Called for each packet or burst that did not arrive, see ping_trouble. May be NULL. */
    void (*trouble)(void *ctx, const union addr *to, int err, uint32_t mtu, const union addr *offender);
    void *trouble_ctx;
    struct udp_tx tx;
    struct udp_rx rx;
};

/* Prepares *u with socket 0 for our first address. The socket is not open yet. counters must outlive *u. */
void udp_init(struct udp *u, const union addr *addr, struct io_counters *counters);
/* Opens and binds socket 0. ifindex must be set. Returns 0, or -errno with an explanation in `why`. */
int udp_open(struct udp *u, uint32_t bufsize, char why[ERROR_TEXT_MAX]);
void udp_close(struct udp *u); /* all sockets */
static inline bool udp_is_open(const struct udp *u)
{
    return u->first.fd >= 0;
}

/* How firmly a socket takes its address. */
enum udp_claim {
    /* The address was configured for this device. A socket with a UDP_YIELDS claim does not prevent it. */
    UDP_OWNS,
    /* The address is another one of the interface. A daemon of the same user that is configured for the address may take
     * it later. From then on it gets the packets. */
    UDP_YIELDS,
};
/* Opens socket `index` (not 0) for another address. Closes an earlier socket of that index first. While socket 0 is not
 * open, the new one is not opened either. Returns 0, or -errno with an explanation in `why`. */
int udp_add_address(struct udp *u, unsigned index, const union addr *addr, enum udp_claim claim,
                    char why[ERROR_TEXT_MAX]);

/* The current state of GSO: "on", "off", "off (sniffer)", "off (refused)". */
const char *udp_gso_state(const struct udp *u);

/* Returns how many payload bytes fit into the receive buffer of a peer that does not read for a while. The buffer is
 * assumed to be as large as ours, and every packet about as long as the path MTU. The kernel charges a packet that
 * arrives alone with about twice its length. */
uint64_t udp_window_bytes(const struct udp *u);

/* --- sending ----------------------------------------------------------------------------------- */

/* Traffic class of a packet, without the two ECN bits. cnp_dscp: as in struct udp. */
uint8_t udp_traffic_class(const struct tx_pkt *pkt, int cnp_dscp);
/* Appends one message and fills in the ICRCs of its packets. The message consists of the packets pkt[0 … n) of buf,
 * which tx_run_length found (without GSO, n is 1), without those that are `apart`; the first one is not. ce: the packets
 * are marked as a congested router would mark them. buf must not change until the message was sent. Returns the address
 * of the first packet in buf. NULL: the packets were dropped
 * and counted, because their source can't reach the destination's address, or because the entry of the GID table is
 * empty. */
uint8_t *udp_add(struct udp *u, uint8_t *buf, const struct tx_pkt *pkt, unsigned n, bool ce);
/* Sends only the first len bytes of the message that udp_add has just appended. */
void udp_truncate(struct udp *u, size_t len);
/* True while GSO may be used. Looks for sniffers about once a second. */
bool udp_gso(struct udp *u, uint64_t now);
/* Sends the added messages. 0: all messages are gone (sent, or dropped and counted). -EAGAIN: the socket
 * udp_full_fd is full; call again. */
int udp_flush(struct udp *u);
static inline bool udp_pending(const struct udp *u)
{
    return u->tx.sent < u->tx.n;
}
/* The socket that the oldest unsent message waits for. Only while udp_pending. */
static inline int udp_full_fd(const struct udp *u)
{
    return u->tx.info[u->tx.sent].socket->fd;
}

/* --- receiving --------------------------------------------------------------------------------- */

struct udp_datagram {
    const uint8_t *data;
    size_t len;
    /* Length of each packet but the last, which may be shorter. Equal to len if there is one packet. */
    size_t segment;
    struct peer_addr *peer; /* the sender; valid until the next udp_datagram */
    /* TOS or traffic class, if udp_want_headers was called; else 0. */
    uint8_t tos;
    /* TTL or hop limit, if udp_want_headers was called; else 0. */
    uint8_t hop_limit;
    /* Flow label of an IPv6 packet, if udp_want_headers was called; else 0. */
    uint32_t flow_label;
};
#ifndef IPV6_FLOWINFO /* from linux/in6.h, which can't be included together with netinet/in.h */
#define IPV6_FLOWINFO 11
#endif
#define UDP_FLOW_LABEL 0xfffffu /* bits of a flow label */
#define UDP_ECN 3u /* the ECN bits of tos */
#define UDP_ECN_ECT 2u /* ECN-capable, ECT(0) */
#define UDP_ECN_CE 3u /* congestion experienced */
/* Receives waiting datagrams from fd, at most UDP_RX_MSGS, and returns their number. fd is one of the device's own
 * sockets or that of a group. The data stay valid until the next call. */
unsigned udp_recv(struct udp *u, int fd);
/* Describes datagram i. peers: the cache of the socket that received it. */
void udp_datagram(struct udp *u, unsigned i, struct peers *peers, struct udp_datagram *d);

/* Asks the kernel for the TOS, TTL and flow label of each datagram. Only datagram QPs and congestion control need them. */
void udp_want_headers(struct udp *u);

/* Opens a socket that receives the packets of a multicast group. It is bound to the group's address, so it receives
 * nothing else, and the socket itself identifies the destination. (The device's own sockets are bound to unicast
 * addresses and receive no multicast at all.) The socket joins the group on the device's interface, in the family of
 * `own`, which is one of the device's addresses. addr receives the group's address with port 4791. Returns a descriptor
 * or -errno. */
int udp_join(const struct udp *u, const union addr *own, const uint8_t gid[16], union addr *addr);

/* Reads ICMP errors from a socket of the device, counts them, and reports them to `trouble`. */
void udp_drain_errors(struct udp *u, int fd);

#endif
