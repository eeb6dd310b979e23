// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/net/udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/sniffer.h"
#include "wire/pkt.h"

/* From linux/in6.h, which can't be included together with netinet/in.h. */
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif

#define NS_PER_SNIFFER_CHECK 1000000000ull

static int set_int(int fd, int level, int opt, int v)
{
    return setsockopt(fd, level, opt, &v, sizeof(v)) == 0 ? 0 : -errno;
}

static uint32_t get_int(int fd, int level, int opt)
{
    int v = 0;
    socklen_t len = sizeof(v);

    return getsockopt(fd, level, opt, &v, &len) == 0 && v > 0 ? (uint32_t)v : 0;
}

/* Over IPv6, the kernel drops UDP packets without a checksum unless the socket accepts them (RFC 6935). NICs and Linux's
 * soft-RoCE send 0, because the ICRC covers the packet (IBA A17.4.5.3). */
static void accept_zero_checksum(int fd)
{
    set_int(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

/* Multicast packets leave by the device's interface, even if a route names another. */
static void set_multicast_interface(const struct udp *u, const struct udp_socket *s)
{
    if (s->own.sa.sa_family == AF_INET6) {
        set_int(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)u->ifindex);
    } else {
        struct ip_mreqn m = {.imr_address = s->own.v4.sin_addr, .imr_ifindex = (int)u->ifindex};

        setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m));
    }
}

static void want_headers(int fd, bool v6)
{
    if (v6) {
        set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set_int(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
        set_int(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    } else {
        set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
        set_int(fd, IPPROTO_IP, IP_RECVTTL, 1);
    }
}

static bool is_v6(const struct udp_socket *s)
{
    return s->own.sa.sa_family == AF_INET6;
}

void udp_want_headers(struct udp *u)
{
    if (u->wants_headers || !udp_is_open(u))
        return;
    u->wants_headers = true;
    for (unsigned i = 0; i < u->sockets; i++) {
        if (u->socket[i])
            want_headers(u->socket[i]->fd, is_v6(u->socket[i]));
    }
}

/* The kernel limits the size to net.core.rmem_max. FORCE exceeds the limit; it needs CAP_NET_ADMIN. */
static void set_buffers(struct udp *u, const struct udp_socket *s)
{
    if (set_int(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)u->bufsize) != 0)
        set_int(s->fd, SOL_SOCKET, SO_RCVBUF, (int)u->bufsize);
    if (set_int(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, (int)u->bufsize) != 0)
        set_int(s->fd, SOL_SOCKET, SO_SNDBUF, (int)u->bufsize);
    if (s != &u->first)
        return;
    u->rcvbuf = get_int(s->fd, SOL_SOCKET, SO_RCVBUF);
    u->sndbuf = get_int(s->fd, SOL_SOCKET, SO_SNDBUF);
}

/* The ICRC covers the IPv4 ID. The kernel sends IPv4 ID 0 with DF (and numbers GSO segments from 0) only if the
 * socket uses PMTUDISC_PROBE and is not connected. PMTUDISC_PROBE also ignores the path MTU cached in a route, so a
 * stale one does not refuse packets. */
static int set_options(struct udp *u, const struct udp_socket *s)
{
    bool v6 = is_v6(s);

    int rc = v6 ? set_int(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
                : set_int(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    if (rc)
        return rc;
    if (v6) {
        rc = set_int(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
        accept_zero_checksum(s->fd);
        set_int(s->fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
        set_int(s->fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND,
                1); /* packets get the flow label of their destination address */
    } else {
        set_int(s->fd, IPPROTO_IP, IP_RECVERR, 1);
    }
    set_multicast_interface(u, s);
    if (u->ecn)
        set_int(s->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, UDP_ECN_ECT);
    u->wants_headers |= u->ecn;
    if (u->wants_headers)
        want_headers(s->fd, v6);
    /* Without GRO each packet arrives alone, which is slower but also correct. */
    set_int(s->fd, IPPROTO_UDP, UDP_GRO, 1);
    set_buffers(u, s);
    return rc;
}

static void explain_bind(int err, const union addr *addr, char *why)
{
    char text[ADDR_TEXT_MAX];

    addr_text(addr, text);
    switch (err) {
    case EADDRINUSE:
        snprintf(
            why, ERROR_TEXT_MAX,
            "UDP port %d of %s is in use: stop the other pumiced on that address, or unload the kernel's soft-RoCE "
            "(rmmod rdma_rxe). `ss -ulnp sport = :%d` shows the owner",
            ROCE_PORT, text, ROCE_PORT);
        break;
    case EADDRNOTAVAIL:
        snprintf(why, ERROR_TEXT_MAX, "%s is not an address of this host: `ip address` lists the addresses", text);
        break;
    default:
        snprintf(why, ERROR_TEXT_MAX, "can't bind UDP port %d of %s: %s", ROCE_PORT, text, strerror(err));
    }
}

static int prepare_rx(struct udp *u)
{
    if (!u->rx.buf) {
        u->rx.buf = aligned_alloc(4096, (size_t)UDP_RX_MSGS * UDP_RX_BYTES);
        u->rx.owns_buf = true;
    }
    if (!u->rx.buf)
        return -ENOMEM;
    for (unsigned i = 0; i < UDP_RX_MSGS; i++) {
        u->rx.iov[i] = (struct iovec){u->rx.buf + (size_t)i * UDP_RX_BYTES, UDP_RX_BYTES};
        u->rx.msg[i].msg_hdr = (struct msghdr){
            .msg_name = &u->rx.from[i],
            .msg_iov = &u->rx.iov[i],
            .msg_iovlen = 1,
            .msg_control = u->rx.ctl[i].buf,
        };
    }
    return 0;
}

static void init_socket(struct udp_socket *s, const union addr *addr)
{
    s->fd = -1;
    s->own = *addr;
    addr_set_port(&s->own, ROCE_PORT);
    peers_init(&s->tx_peers, &s->own, false);
    peers_init(&s->rx_peers, &s->own, true);
}

void udp_init(struct udp *u, const union addr *addr, struct io_counters *counters)
{
    memset(u, 0, sizeof(*u));
    u->cnp_dscp = -1;
    u->counters = counters;
    init_socket(&u->first, addr);
    u->socket[0] = &u->first;
    u->sockets = 1;
}

/* The second of the two sockets that share an address gets all packets. For IPv6, the kernel would divide them. */
static int prefer_second(int fd)
{
    struct sock_filter second[] = {BPF_STMT(BPF_RET | BPF_K, 1)};
    struct sock_fprog program = {1, second};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0 ? 0 : -errno;
}

/* Binds without SO_REUSEPORT, so that another owner of the address is noticed. The kernel lets sockets share an address
 * if all of them have the option, and belong to one user. (With SO_REUSEADDR, a process of any user could take the
 * packets.) A socket that yields gets the option afterwards, and an owner loses it. So only an owner can bind to the
 * address a second time, and nobody a third time. */
static int bind_socket(const struct udp_socket *s, enum udp_claim claim)
{
    int rc = bind(s->fd, &s->own.sa, addr_len(&s->own)) == 0 ? 0 : -errno;

    if (claim == UDP_YIELDS)
        return rc ? rc : set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (rc != -EADDRINUSE)
        return rc;
    set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);
    rc = bind(s->fd, &s->own.sa, addr_len(&s->own)) == 0 ? prefer_second(s->fd) : -errno;
    set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 0);
    return rc;
}

static void close_socket(struct udp_socket *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* Link-local addresses, own ones and destinations, need the interface. */
static void set_scope(const struct udp *u, struct udp_socket *s)
{
    if (is_v6(s) && s->own.v6.sin6_scope_id == 0) {
        s->own.v6.sin6_scope_id = u->ifindex;
        s->tx_peers.own = s->rx_peers.own = s->own;
    }
}

static int open_socket(struct udp *u, struct udp_socket *s, enum udp_claim claim, char *why)
{
    set_scope(u, s);
    s->fd = socket(s->own.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) {
        int rc = -errno;

        snprintf(why, ERROR_TEXT_MAX, "can't make a UDP socket: %s", strerror(-rc));
        return rc;
    }
    int rc = set_options(u, s);
    if (rc) {
        snprintf(why, ERROR_TEXT_MAX, "can't set up the UDP socket: %s", strerror(-rc));
    } else {
        rc = bind_socket(s, claim);
        if (rc)
            explain_bind(-rc, &s->own, why);
    }
    if (rc)
        close_socket(s);
    return rc;
}

int udp_open(struct udp *u, uint32_t bufsize, char why[ERROR_TEXT_MAX])
{
    int rc;

    u->loopback_ifindex = if_nametoindex("lo");
    u->bufsize = bufsize;
    rc = prepare_rx(u);
    if (rc) {
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
        return rc;
    }
    rc = open_socket(u, &u->first, UDP_OWNS, why);
    if (rc)
        udp_close(u);
    return rc;
}

int udp_add_address(struct udp *u, unsigned index, const union addr *addr, enum udp_claim claim,
                    char why[ERROR_TEXT_MAX])
{
    struct udp_socket *s = u->socket[index];

    if (!s) {
        s = calloc(1, sizeof(*s));
        if (!s) {
            snprintf(why, ERROR_TEXT_MAX, "out of memory");
            return -ENOMEM;
        }
        s->fd = -1;
        u->socket[index] = s;
        if (index >= u->sockets)
            u->sockets = index + 1;
    }
    close_socket(s);
    init_socket(s, addr);
    return udp_is_open(u) ? open_socket(u, s, claim, why) : 0;
}

static int join(const struct udp *u, int fd, const union addr *own, const union addr *group)
{
    if (own->sa.sa_family == AF_INET6) {
        struct ipv6_mreq m = {group->v6.sin6_addr, u->ifindex};

        set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
        return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m));
    }
    struct ip_mreqn m = {group->v4.sin_addr, own->v4.sin_addr, (int)u->ifindex};

    /* Receive only the groups that this socket has joined, not those of other sockets of the host. */
    set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
}

int udp_join(const struct udp *u, const union addr *own, const uint8_t gid[16], union addr *addr)
{
    bool v6 = own->sa.sa_family == AF_INET6;

    if (!gid_to_addr(gid, own, addr))
        return -EINVAL;
    addr_set_port(addr, ROCE_PORT);
    if (v6)
        addr->v6.sin6_scope_id = u->ifindex; /* bind() needs it for link-local groups */
    int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (v6)
        accept_zero_checksum(fd);
    /* Other daemons of the host, and other devices of this daemon, may be in the same group. */
    set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)u->rcvbuf / 2) != 0)
        set_int(fd, SOL_SOCKET, SO_RCVBUF, (int)u->rcvbuf / 2);
    want_headers(fd, v6);
    if (bind(fd, &addr->sa, addr_len(addr)) == 0 && join(u, fd, own, addr) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

void udp_close(struct udp *u)
{
    close_socket(&u->first);
    for (unsigned i = 1; i < u->sockets; i++) {
        if (!u->socket[i])
            continue;
        close_socket(u->socket[i]);
        free(u->socket[i]);
        u->socket[i] = NULL;
    }
    u->sockets = 1;
    if (u->rx.owns_buf)
        free(u->rx.buf);
    u->rx.buf = NULL;
}

bool udp_gso(struct udp *u, uint64_t now)
{
    if (u->gso_mode == GSO_OFF || u->gso_refused)
        return false;
    if (u->gso_mode == GSO_ON)
        return true;
    if (u->gso_checked && now - u->gso_checked < NS_PER_SNIFFER_CHECK)
        return !u->gso_sniffer;
    u->gso_checked = now;
    bool sniffer = sniffer_present(u->ifindex, u->loopback_ifindex);
    if (sniffer != u->gso_sniffer)
        log_info("%s: packets leave %s", sniffer ? "a sniffer is open" : "no sniffer is open any more",
                 sniffer ? "one by one, without GSO (gso = auto)" : "in batches, with GSO");
    u->gso_sniffer = sniffer;
    return !sniffer;
}

const char *udp_gso_state(const struct udp *u)
{
    if (u->gso_mode == GSO_OFF)
        return "off";
    if (u->gso_refused)
        return "off (refused)";
    return u->gso_sniffer ? "off (sniffer)" : "on";
}

uint64_t udp_window_bytes(const struct udp *u)
{
    /* Measured on loopback, stored bytes per byte of rcvbuf: 0.45 for packets of 1,040 bytes sent alone, 0.49 for
     * packets of 4,112 bytes, over 0.9 for packets that came by GSO. */
    return (uint64_t)u->rcvbuf * 2 / 5;
}

static void count_error(struct udp *u, const struct sock_extended_err *e, const union addr *to,
                        const union addr *offender)
{
    char text[ADDR_TEXT_MAX];

    if (u->trouble)
        u->trouble(u->trouble_ctx, to, (int)e->ee_errno, e->ee_errno == EMSGSIZE ? e->ee_info : 0, offender);
    if (e->ee_errno == EMSGSIZE) {
        u->counters->icmp_too_big++;
        log_warn("a router towards %s accepts packets of at most %u bytes: use a smaller path MTU", addr_text(to, text),
                 e->ee_info);
    } else if (e->ee_origin == SO_EE_ORIGIN_ICMP || e->ee_origin == SO_EE_ORIGIN_ICMP6) {
        u->counters->icmp_unreachable++;
        log_warn("%s: %s%s", addr_text(to, text), strerror((int)e->ee_errno),
                 e->ee_errno == ECONNREFUSED ? ": is a pumiced running there?" : "");
    } else {
        u->counters->icmp_other++;
    }
}

void udp_drain_errors(struct udp *u, int fd)
{
    union addr to;
    _Alignas(struct cmsghdr) uint8_t ctl[512];
    struct msghdr m;

    for (int i = 0; i < 64; i++) { /* bounded: a flood of ICMP must not stop the loop */
        memset(&to, 0, sizeof(to));
        m = (struct msghdr){
            .msg_name = &to, .msg_namelen = sizeof(to), .msg_control = ctl, .msg_controllen = sizeof(ctl)};
        if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            struct {
                struct sock_extended_err e;
                union addr offender; /* follows if it is known (SO_EE_OFFENDER) */
            } error = {0};
            size_t len = c->cmsg_len - CMSG_LEN(0);
            bool known;

            if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
                memcpy(&error, CMSG_DATA(c), len < sizeof(error) ? len : sizeof(error));
                known = error.e.ee_origin == SO_EE_ORIGIN_ICMP || error.e.ee_origin == SO_EE_ORIGIN_ICMP6;
                count_error(u, &error.e, &to, known ? &error.offender : NULL);
            }
        }
    }
}
