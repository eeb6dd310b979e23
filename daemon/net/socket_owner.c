// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/socket_owner.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int socket_owner_open(void)
{
    /* The kernel answers before send returns. The limit is for the case that it has no memory for the answer. */
    const struct timeval limit = {.tv_usec = 10000};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

/* Writes address and port as inet_diag has them. */
static void put_addr(const union addr *a, __be32 ip[4], __be16 *port)
{
    if (a->sa.sa_family == AF_INET) {
        memcpy(ip, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
        *port = a->v4.sin_port;
    } else {
        memcpy(ip, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
        *port = a->v6.sin6_port;
    }
}

int socket_owner(int fd, const union addr *local, const union addr *remote, uid_t *uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 req;
    } q = {.head = {.nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
           .req = {.sdiag_family = (uint8_t)local->sa.sa_family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = UINT32_MAX,
                   .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
    _Alignas(struct nlmsghdr) char buf[4096];

    put_addr(local, q.req.id.idiag_src, &q.req.id.idiag_sport);
    put_addr(remote, q.req.id.idiag_dst, &q.req.id.idiag_dport);
    while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0) {
        /* an answer that an earlier question did not wait for */
    }
    if (send(fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
        return -errno;
    ssize_t n = recv(fd, buf, sizeof(buf), 0);
    if (n < 0)
        return -errno;
    const struct nlmsghdr *h = (const void *)buf;
    if (!NLMSG_OK(h, (size_t)n) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        h->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
        return -ENOENT;
    const struct inet_diag_msg *m = NLMSG_DATA(h);
    /* Without a connection the kernel may name a socket that listens at this port. A connection that no process has
     * open has no inode, and its user reads as 0, which is root. */
    if (m->id.idiag_dport != q.req.id.idiag_dport || m->idiag_inode == 0)
        return -ENOENT;
    *uid = m->idiag_uid;
    return 0;
}
