// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "udp.h"

unsigned udp_recv(struct udp *u)
{
    struct udp_rx *rx = &u->rx;
    int n;

    for (unsigned i = 0; i < UDP_RX_MSGS; i++) {
        rx->msg[i].msg_hdr.msg_namelen = sizeof(rx->from[i]);
        rx->msg[i].msg_hdr.msg_controllen = sizeof(rx->ctl[i].buf);
    }
    n = recvmmsg(u->fd, rx->msg, UDP_RX_MSGS, MSG_DONTWAIT, NULL);
    if (n > 0) {
        u->counters->rx_datagrams += (unsigned)n;
        return (unsigned)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        udp_drain_errors(u); /* an ICMP error; the datagrams come with the next call */
    return 0;
}

static void parse_control(struct msghdr *m, struct udp_datagram *d)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int segment;

            memcpy(&segment, CMSG_DATA(c), sizeof(segment));
            if (segment > 0 && (size_t)segment < d->len)
                d->segment = (size_t)segment;
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
            uint8_t tos = *CMSG_DATA(c); /* one byte for IPv4, an int for IPv6 */

            if (c->cmsg_len >= CMSG_LEN(sizeof(int))) {
                int v;

                memcpy(&v, CMSG_DATA(c), sizeof(v));
                tos = (uint8_t)v;
            }
            d->ce = (tos & 3) == 3;
        }
    }
}

void udp_datagram(struct udp *u, unsigned i, struct udp_datagram *d)
{
    struct msghdr *m = &u->rx.msg[i].msg_hdr;

    d->data = u->rx.iov[i].iov_base;
    d->len = u->rx.msg[i].msg_len;
    d->segment = d->len;
    d->ce = false;
    d->peer = peers_by_addr(&u->rx_peers, &u->rx.from[i]);
    parse_control(m, d);
}
