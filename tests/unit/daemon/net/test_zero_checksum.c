// SPDX-License-Identifier: BSD-2-Clause
/* UDP packets without a checksum over IPv6, as NICs and soft-RoCE send them: a device and a multicast group receive
 * them. The test has its own network namespace. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/udp.h"
#include "tests/unit/skip.h"

#define LOOPBACK 1u /* the interface of the namespace */

static struct io_counters counters;

static bool own_namespace(void)
{
    /* Root needs no user namespace, and often may not create one. The kernel sends no multicast over lo without a
     * route. */
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           system("ip link set lo up && ip -6 route add local ff00::/8 dev lo") == 0;
}

static struct udp *open_device(void)
{
    struct udp *u = malloc(sizeof(*u));
    char why[ERROR_TEXT_MAX];
    union addr addr;

    cr_assert_eq(addr_parse("::1", &addr), 0);
    udp_init(u, &addr, &counters);
    u->ifindex = LOOPBACK;
    cr_assert_eq(udp_open(u, 65536, why), 0, "%s", why);
    return u;
}

/* Sends a packet with checksum 0, and returns the number of datagrams that fd receives. */
static unsigned arrive(struct udp *u, int fd, const union addr *to)
{
    struct pollfd p = {fd, POLLIN, 0};
    int off = 1, interface = LOOPBACK;

    int from = socket(AF_INET6, SOCK_DGRAM, 0);
    cr_assert_eq(setsockopt(from, IPPROTO_UDP, UDP_NO_CHECK6_TX, &off, sizeof(off)), 0);
    cr_assert_eq(setsockopt(from, IPPROTO_IPV6, IPV6_MULTICAST_IF, &interface, sizeof(interface)), 0);
    cr_assert_eq(sendto(from, "packet", 6, 0, &to->sa, sizeof(to->v6)), 6);
    poll(&p, 1, 1000);
    close(from);
    return udp_recv(u, fd);
}

Test(zero_checksum, a_device_receives_it)
{
    if (!own_namespace())
        SKIP_TEST("zero checksums", "no network namespace can be made here");
    struct udp *u = open_device();
    cr_assert_eq(arrive(u, u->first.fd, &u->first.own), 1);
    udp_close(u);
    free(u);
}

Test(zero_checksum, a_group_receives_it)
{
    static const uint8_t gid[16] = {0xff, 0x0e, [15] = 9};
    union addr group;

    if (!own_namespace())
        SKIP_TEST("zero checksums", "no network namespace can be made here");
    struct udp *u = open_device();
    int fd = udp_join(u, &u->first.own, gid, &group);
    cr_assert_geq(fd, 0);
    cr_assert_eq(arrive(u, fd, &group), 1);
    close(fd);
    udp_close(u);
    free(u);
}
