// SPDX-License-Identifier: BSD-2-Clause
/* Which packets to other QPs of the daemon are refused: those to a QP that is connected to another one. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/device/connections.h"

enum { QPN = 0x123456, PEER = 0x000017, STRANGER = 0x000018 };

static const uint8_t near[2][16] = {{[15] = 1}, {[15] = 2}}, far[16] = {[15] = 9};
static struct connections c;
static struct connections_view v;

static void start(void)
{
    memset(&v, 0, sizeof(v));
    cr_assert_eq(connections_init(&c, 2), 0);
    connections_set_addresses(&c, 0, &near[0], 1);
    connections_set_addresses(&c, 1, &near[1], 1);
}

static void finish(void)
{
    connections_fini(&c);
}

TestSuite(connections, .init = start, .fini = finish);

static bool refused(const uint8_t gid[16], uint32_t dest, uint32_t src)
{
    return connections_refuse(&c, &v, gid, dest, src);
}

Test(connections, only_the_peer_may_send)
{
    connections_set_peer(&c, 1, QPN, PEER);
    cr_expect_not(refused(near[1], QPN, PEER));
    cr_expect(refused(near[1], QPN, STRANGER));
}

Test(connections, other_destinations_are_free)
{
    connections_set_peer(&c, 1, QPN, PEER);
    cr_expect_not(refused(far, QPN, STRANGER), "another host may use the same number");
    cr_expect_not(refused(near[0], QPN, STRANGER), "the other device, too");
    cr_expect_not(refused(near[1], QPN + 1, STRANGER), "no such QP");
    cr_expect_not(refused(near[1], QPN + CONNECTION_SLOTS, STRANGER), "another QP of the same slot");
    cr_expect(refused(near[1], QPN, STRANGER));
}

Test(connections, a_qp_that_is_gone_refuses_nothing)
{
    connections_set_peer(&c, 1, QPN, PEER);
    connections_set_peer(&c, 1, QPN, 0);
    cr_expect_not(refused(near[1], QPN, STRANGER), "its device drops the packet");
    connections_set_peer(&c, 1, QPN, STRANGER);
    cr_expect(refused(near[1], QPN, PEER));
}

Test(connections, addresses_come_and_go)
{
    const uint8_t both[2][16] = {{[15] = 2}, {[15] = 3}};
    connections_set_peer(&c, 1, QPN, PEER);
    cr_expect_not(refused(both[1], QPN, STRANGER));
    connections_set_addresses(&c, 1, both, 2);
    cr_expect(refused(both[1], QPN, STRANGER) && refused(both[0], QPN, STRANGER));
    connections_set_addresses(&c, 1, &both[1], 1);
    cr_expect_not(refused(both[0], QPN, STRANGER));
    cr_expect(refused(both[1], QPN, STRANGER));
}
