// SPDX-License-Identifier: BSD-2-Clause
/* ECN at the socket: what leaves is marked as capable, marks that fault injection makes arrive, and an address vector's
 * traffic class keeps its upper six bits. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/udp.h"
#include "wire/pkt.h"

#define LEN 64u

static struct udp *from, *to;
static struct io_counters counters;
static struct av av;

static struct udp *open_at(int last, bool ecn)
{
    struct udp *u = malloc(sizeof(*u));
    char text[32], why[OPTIONS_WHY_MAX];
    union addr addr;

    /* Tests run side by side: addresses of the process. */
    snprintf(text, sizeof(text), "127.%d.%d.%d", 128 + (getpid() >> 15 & 63), getpid() >> 7 & 255,
             (getpid() & 127) * 2 + last);
    cr_assert_eq(addr_parse(text, &addr), 0);
    udp_init(u, &addr, &counters);
    u->ecn = ecn;
    u->ifindex = 1;
    cr_assert_eq(udp_open(u, 65536, why), 0, "%s", why);
    return u;
}

static void start(bool ecn)
{
    from = open_at(0, ecn);
    to = open_at(1, true);
    addr_to_gid(&to->own, av.dgid);
}

static void finish(void)
{
    udp_close(from);
    udp_close(to);
    free(from);
    free(to);
}

/* TOS of one packet as it arrives. */
static int tos_of(uint8_t traffic_class, bool ce)
{
    uint8_t buf[LEN] = {0x04};
    struct tx_pkt pkt = {.av = &av, .len = LEN};
    struct pollfd p = {to->fd, POLLIN, 0};
    struct udp_datagram dg;

    av.traffic_class = traffic_class;
    cr_assert_not_null(udp_add(from, buf, &pkt, 1, ce));
    cr_assert_eq(udp_flush(from), 0);
    cr_assert_eq(poll(&p, 1, 1000), 1);
    cr_assert_eq(udp_recv(to, to->fd), 1);
    udp_datagram(to, 0, &to->rx_peers, &dg);
    cr_assert_eq(dg.len, LEN);
    return dg.tos;
}

Test(ecn, on, .fini = finish)
{
    start(true);
    cr_assert_eq(tos_of(0, false), 2, "ECT(0)");
    cr_assert_eq(tos_of(0, true), 3, "CE");
    cr_assert_eq(tos_of(0x5c, false), 0x5e);
    cr_assert_eq(tos_of(0x5f, false), 0x5e, "an application does not mark");
    cr_assert_eq(tos_of(0x5c, true), 0x5f);
    cr_assert_eq(tos_of(0, false), 2, "nothing is left behind");
}

Test(ecn, off, .fini = finish)
{
    start(false);
    cr_assert_eq(tos_of(0, false), 0);
    cr_assert_eq(tos_of(0x5c, false), 0x5c);
    cr_assert_eq(tos_of(0, true), 3, "routers of the test mark whatever comes");
}
