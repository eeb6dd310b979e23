// SPDX-License-Identifier: BSD-2-Clause
/* The receiving part of udp.h: reads datagrams by recvmmsg, and describes each: its sender, the length of the packets
 * that GRO joined in it, and its TOS, TTL and flow label. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "daemon/net/udp.h"

unsigned udp_recv(struct udp *u, int fd)
{
    struct udp_rx *rx = &u->rx;

    for (unsigned i = 0; i < UDP_RX_MSGS; i++) {
        rx->msg[i].msg_hdr.msg_namelen = sizeof(rx->from[i]);
        rx->msg[i].msg_hdr.msg_controllen = sizeof(rx->ctl[i].buf);
    }
    int n = recvmmsg(fd, rx->msg, UDP_RX_MSGS, MSG_DONTWAIT, NULL);
    if (n > 0) {
        u->counters->rx_datagrams += (unsigned)n;
        return (unsigned)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        udp_drain_errors(u, fd); /* an ICMP error; the next call returns the datagrams */
    return 0;
}

/* Reads a TOS or TTL. IPv4 delivers one byte or an int, IPv6 an int; all values are below 256. */
static uint8_t byte_of(const struct cmsghdr *c)
{
    int v;

    if (c->cmsg_len < CMSG_LEN(sizeof(v)))
        return *CMSG_DATA(c);
    memcpy(&v, CMSG_DATA(c), sizeof(v));
    return (uint8_t)v;
}

static void parse_control(struct msghdr *m, struct udp_datagram *d)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        bool v6 = c->cmsg_level == IPPROTO_IPV6, v4 = c->cmsg_level == IPPROTO_IP;

        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int segment;

            memcpy(&segment, CMSG_DATA(c), sizeof(segment));
            if (segment > 0 && (size_t)segment < d->len)
                d->segment = (size_t)segment;
        } else if ((v4 && c->cmsg_type == IP_TOS) || (v6 && c->cmsg_type == IPV6_TCLASS)) {
            d->tos = byte_of(c);
        } else if ((v4 && c->cmsg_type == IP_TTL) || (v6 && c->cmsg_type == IPV6_HOPLIMIT)) {
            d->hop_limit = byte_of(c);
        } else if (v6 && c->cmsg_type == IPV6_FLOWINFO) {
            uint32_t info; /* traffic class and flow label, in network byte order */

            memcpy(&info, CMSG_DATA(c), sizeof(info));
            d->flow_label = ntohl(info) & UDP_FLOW_LABEL;
        }
    }
}

void udp_datagram(struct udp *u, unsigned i, struct peers *peers, struct udp_datagram *d)
{
    struct msghdr *m = &u->rx.msg[i].msg_hdr;

    d->data = u->rx.iov[i].iov_base;
    d->len = u->rx.msg[i].msg_len;
    d->segment = d->len;
    d->tos = d->hop_limit = 0;
    d->flow_label = 0;
    d->peer = peers_by_addr(peers, &u->rx.from[i]);
    parse_control(m, d);
}
