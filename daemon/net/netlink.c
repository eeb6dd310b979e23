// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int netlink_watch_open(void)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    int rc;

    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static bool concerns(const struct nlmsghdr *h, unsigned ifindex)
{
    const struct ifinfomsg *link = NLMSG_DATA(h);
    const struct ifaddrmsg *addr = NLMSG_DATA(h);

    switch (h->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*link)) && (unsigned)link->ifi_index == ifindex;
    case RTM_NEWADDR:
    case RTM_DELADDR:
        return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*addr)) && addr->ifa_index == ifindex;
    default:
        return false;
    }
}

bool netlink_watch_read(int fd, unsigned ifindex)
{
    _Alignas(struct nlmsghdr) char buf[16384];
    bool hit = false;
    ssize_t n;

    while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        size_t left = (size_t)n;

        for (const struct nlmsghdr *h = (const void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
            hit = hit || concerns(h, ifindex);
    }
    return hit || (n < 0 && errno == ENOBUFS);
}

/* --- addresses --------------------------------------------------------------------------------- */

/* Reads one address message. Returns false if the address is unusable, or of another interface. */
static bool parse_address(const struct nlmsghdr *h, unsigned ifindex, union addr *out)
{
    const struct ifaddrmsg *m = NLMSG_DATA(h);
    const void *local = NULL, *address = NULL;
    uint32_t flags = m->ifa_flags;
    size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

    if (m->ifa_index != ifindex || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
        return false;
    for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFA_LOCAL)
            local = RTA_DATA(a);
        else if (a->rta_type == IFA_ADDRESS)
            address = RTA_DATA(a);
        else if (a->rta_type == IFA_FLAGS)
            memcpy(&flags, RTA_DATA(a), sizeof(flags));
    }
    /* On a point-to-point interface, IFA_ADDRESS is the address of the other end. */
    address = local ? local : address;
    if (!address || flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
        return false;
    memset(out, 0, sizeof(*out));
    out->sa.sa_family = m->ifa_family;
    if (m->ifa_family == AF_INET) {
        memcpy(&out->v4.sin_addr, address, sizeof(out->v4.sin_addr));
    } else {
        memcpy(&out->v6.sin6_addr, address, sizeof(out->v6.sin6_addr));
        if (IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr))
            out->v6.sin6_scope_id = ifindex;
    }
    return true;
}

/* Reads the answer to a dump. Returns the number of addresses or -errno. */
static int read_addresses(int fd, unsigned ifindex, union addr *out, unsigned max)
{
    _Alignas(struct nlmsghdr) char buf[32768];
    unsigned n = 0;

    for (;;) {
        ssize_t len = recv(fd, buf, sizeof(buf), 0);

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return len < 0 ? -errno : -EIO;
        size_t left = (size_t)len;
        for (const struct nlmsghdr *h = (const void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_type == NLMSG_DONE)
                return (int)n;
            if (h->nlmsg_type == NLMSG_ERROR)
                return -EIO;
            if (h->nlmsg_type == RTM_NEWADDR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)) && n < max)
                n += parse_address(h, ifindex, &out[n]);
        }
    }
}

int netlink_addresses(unsigned ifindex, union addr *out, unsigned max)
{
    struct {
        struct nlmsghdr h;
        struct ifaddrmsg m;
    } rq = {.h = {.nlmsg_len = sizeof(rq), .nlmsg_type = RTM_GETADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
            .m = {.ifa_family = AF_UNSPEC}};

    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    int rc = send(fd, &rq, sizeof(rq), 0) < 0 ? -errno : read_addresses(fd, ifindex, out, max);
    close(fd);
    return rc;
}
