// SPDX-License-Identifier: BSD-2-Clause
/* The interface of a device. */
#include <criterion/criterion.h>

#include "daemon/net/netdev.h"

/* The path MTU is the largest one whose longest packet fits. */
Test(netdev, path_mtu)
{
    cr_assert_eq(netdev_path_mtu(1500, false), 3, "1,024");
    cr_assert_eq(netdev_path_mtu(1500, true), 3);
    cr_assert_eq(netdev_path_mtu(1400, false), 3);
    cr_assert_eq(netdev_path_mtu(9000, false), 5, "4,096");
    cr_assert_eq(netdev_path_mtu(65536, false), 5);
    cr_assert_eq(netdev_path_mtu(1280, true), 3, "IPv6's least");
    cr_assert_eq(netdev_path_mtu(68, false), 0);
    for (unsigned mtu = 68; mtu < 10000; mtu++)
        cr_assert(netdev_path_mtu(mtu, true) <= netdev_path_mtu(mtu, false) &&
                  netdev_path_mtu(mtu, false) <= netdev_path_mtu(mtu + 1, false));
}

Test(netdev, loopback_has_all_of_127)
{
    struct netdev nd, other;
    union addr a, b;

    addr_parse("127.0.0.1", &a);
    addr_parse("127.9.8.7", &b);
    cr_assert_eq(netdev_find(&a, &nd), 0);
    cr_assert_eq(netdev_find(&b, &other), 0);
    cr_assert_eq(nd.index, other.index);
    cr_assert(nd.up && nd.mtu >= 16384);
    cr_assert_neq(netdev_guid(&nd, &a), netdev_guid(&nd, &b));
    cr_assert_eq(netdev_guid(&nd, &a), netdev_guid(&other, &a), "the same each time");
    cr_assert_eq(netdev_guid(&nd, &a) >> 56 & 3, 2, "locally administered, individual");
    addr_parse("203.0.113.99", &a);
    cr_assert_neq(netdev_find(&a, &nd), 0);
}
