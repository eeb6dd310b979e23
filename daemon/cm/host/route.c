// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr h;
    struct rtmsg m;
    uint8_t attrs[64];
};

static void append(struct request *rq, uint16_t type, const void *data, size_t len)
{
    struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = type};
    uint8_t *at = (uint8_t *)rq + NLMSG_ALIGN(rq->h.nlmsg_len);

    memcpy(at, &a, sizeof(a));
    memcpy(at + RTA_LENGTH(0), data, len);
    rq->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(rq->h.nlmsg_len) + RTA_LENGTH(len));
}

static void make_request(const union addr *dst, uint32_t ifindex, struct request *rq)
{
    bool v6 = dst->sa.sa_family == AF_INET6;

    *rq = (struct request){
        .h = {.nlmsg_len = NLMSG_LENGTH(sizeof(rq->m)), .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
        .m = {.rtm_family = (uint8_t)dst->sa.sa_family, .rtm_dst_len = v6 ? 128 : 32},
    };
    if (v6)
        append(rq, RTA_DST, &dst->v6.sin6_addr, sizeof(dst->v6.sin6_addr));
    else
        append(rq, RTA_DST, &dst->v4.sin_addr, sizeof(dst->v4.sin_addr));
    if (ifindex)
        append(rq, RTA_OIF, &ifindex, sizeof(ifindex));
}

static void read_source(const struct rtattr *a, int family, struct route_info *out)
{
    bool v6 = family == AF_INET6;
    void *to = v6 ? (void *)&out->source.v6.sin6_addr : (void *)&out->source.v4.sin_addr;
    size_t len = v6 ? sizeof(out->source.v6.sin6_addr) : sizeof(out->source.v4.sin_addr);

    if (RTA_PAYLOAD(a) != len)
        return;
    out->source.sa.sa_family = (sa_family_t)family;
    memcpy(to, RTA_DATA(a), len);
    out->has_source = true;
}

static int read_route(const struct nlmsghdr *h, struct route_info *out)
{
    const struct rtmsg *m = NLMSG_DATA(h);
    size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

    memset(out, 0, sizeof(*out));
    out->is_local = m->rtm_type == RTN_LOCAL;
    for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(out->ifindex))
            memcpy(&out->ifindex, RTA_DATA(a), sizeof(out->ifindex));
        else if (a->rta_type == RTA_PREFSRC)
            read_source(a, m->rtm_family, out);
    }
    if (out->has_source && m->rtm_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&out->source.v6.sin6_addr))
        out->source.v6.sin6_scope_id = out->ifindex;
    return out->ifindex ? 0 : -ENETUNREACH;
}

static int read_answer(int fd, struct route_info *out)
{
    _Alignas(struct nlmsghdr) char buf[4096];
    const struct nlmsghdr *h = (const void *)buf;
    ssize_t n;

    do {
        n = recv(fd, buf, sizeof(buf), 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (!NLMSG_OK(h, (size_t)n))
        return -EIO;
    if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
        const struct nlmsgerr *e = NLMSG_DATA(h);

        return e->error ? e->error : -EIO;
    }
    if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
        return -EIO;
    return read_route(h, out);
}

int route_lookup(const union addr *dst, unsigned ifindex, struct route_info *out)
{
    struct request rq;

    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    make_request(dst, ifindex, &rq);
    int rc = send(fd, &rq, rq.h.nlmsg_len, 0) < 0 ? -errno : read_answer(fd, out);
    close(fd);
    return rc;
}
