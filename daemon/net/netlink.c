// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
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
