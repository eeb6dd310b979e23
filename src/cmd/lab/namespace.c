// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/lab/namespace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/cmd/lab/address.h"

/* --- entering ----------------------------------------------------------------------------------------------------- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        rc = -errno;
    close(fd);
    return rc;
}

/* Gives the user and the group the same numbers in the new user namespace. The kernel demands that setgroups is denied
 * first. */
static int map_user(uid_t uid, gid_t gid)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "%u %u 1", uid, uid);
    snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
    int rc = write_file("/proc/self/setgroups", "deny");
    if (rc == 0)
        rc = write_file("/proc/self/uid_map", users);
    return rc ? rc : write_file("/proc/self/gid_map", groups);
}

/* Root needs no user namespace, and in a container often may not create one. */
static int enter(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (unshare(CLONE_NEWNET) == 0)
        return 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -errno;
    return map_user(uid, gid);
}

/* --- the loopback interface --------------------------------------------------------------------------------------- */

static int bring_up(void)
{
    struct ifreq r = {.ifr_name = "lo"};
    int rc = 0;

    int sock = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    if (ioctl(sock, SIOCGIFFLAGS, &r) != 0)
        rc = -errno;
    r.ifr_flags |= IFF_UP;
    if (rc == 0 && ioctl(sock, SIOCSIFFLAGS, &r) != 0)
        rc = -errno;
    close(sock);
    return rc;
}

/* Sends a request to the kernel. Returns its answer: 0 or -errno. */
static int ask_kernel(int sock, const struct nlmsghdr *rq)
{
    struct {
        struct nlmsghdr h;
        struct nlmsgerr e;
        char rest[256];
    } rp = {.e.error = -EIO};

    if (send(sock, rq, rq->nlmsg_len, 0) < 0 || recv(sock, &rp, sizeof(rp), 0) < (ssize_t)sizeof(rp.h))
        return -errno;
    return rp.e.error;
}

/* Without duplicate address detection, because a program can't bind to an address before its end. */
static int add_address(int sock, const char *text)
{
    struct {
        struct nlmsghdr h;
        struct ifaddrmsg m;
        struct rtattr local_attr;
        struct in6_addr local;
    } rq = {.h = {.nlmsg_len = sizeof(rq),
                  .nlmsg_type = RTM_NEWADDR,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
            .m = {.ifa_family = AF_INET6,
                  .ifa_prefixlen = 128,
                  .ifa_flags = IFA_F_NODAD,
                  .ifa_index = if_nametoindex("lo")},
            .local_attr = {RTA_LENGTH(sizeof(rq.local)), IFA_LOCAL}};

    return inet_pton(AF_INET6, text, &rq.local) == 1 ? ask_kernel(sock, &rq.h) : -EINVAL;
}

/* Adds the route "local ff00::/8 dev lo". The kernel has such a route for each interface but lo. It refuses other types
 * than local on lo. */
static int add_multicast_route(int sock)
{
    struct {
        struct nlmsghdr h;
        struct rtmsg m;
        struct rtattr dst_attr;
        struct in6_addr dst;
        struct rtattr oif_attr;
        uint32_t oif;
    } rq = {.h = {.nlmsg_len = sizeof(rq),
                  .nlmsg_type = RTM_NEWROUTE,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
            .m = {.rtm_family = AF_INET6,
                  .rtm_dst_len = 8,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_STATIC,
                  .rtm_scope = RT_SCOPE_UNIVERSE,
                  .rtm_type = RTN_LOCAL},
            .dst_attr = {RTA_LENGTH(sizeof(rq.dst)), RTA_DST},
            .dst = {.s6_addr = {0xff}},
            .oif_attr = {RTA_LENGTH(sizeof(rq.oif)), RTA_OIF},
            .oif = if_nametoindex("lo")};

    return ask_kernel(sock, &rq.h);
}

static int set_up(unsigned hosts, unsigned devices)
{
    char text[INET6_ADDRSTRLEN];

    int rc = bring_up();
    if (rc)
        return rc;
    int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (sock < 0)
        return -errno;
    for (unsigned i = 0; i < 2 * hosts * devices && rc == 0; i++) {
        address_v6(i / 2 / devices, i / 2 % devices, i % 2, text);
        rc = add_address(sock, text);
    }
    if (rc == 0)
        rc = add_multicast_route(sock);
    close(sock);
    return rc;
}

int namespace_enter_v6(unsigned hosts, unsigned devices, char why[NAMESPACE_WHY_MAX])
{
    int rc = enter();

    if (rc) {
        snprintf(why, NAMESPACE_WHY_MAX, "this user may not make a network namespace (%s)", strerror(-rc));
        return rc;
    }
    rc = set_up(hosts, devices);
    if (rc)
        snprintf(why, NAMESPACE_WHY_MAX, "can't set up IPv6 in a new network namespace (%s; is IPv6 disabled?)",
                 strerror(-rc));
    return rc;
}
