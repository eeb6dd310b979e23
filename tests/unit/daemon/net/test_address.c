// SPDX-License-Identifier: BSD-2-Clause
/* Addresses and GIDs. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/net/address.h"

Test(addr, gids)
{
    union addr v4, v6, back;
    uint8_t gid[16];
    char text[ADDR_TEXT_MAX];

    cr_assert_eq(addr_parse("192.0.2.7", &v4), 0);
    addr_to_gid(&v4, gid);
    cr_assert_str_eq(gid_text(gid, text), "::ffff:192.0.2.7");
    cr_assert(gid_to_addr(gid, &v4, &back));
    cr_assert_str_eq(addr_text(&back, text), "192.0.2.7");
    cr_assert_eq(addr_parse("fd00::7", &v6), 0);
    cr_assert_not(gid_to_addr(gid, &v6, &back), "an IPv6 device does not reach IPv4");
    addr_to_gid(&v6, gid);
    cr_assert(gid_to_addr(gid, &v6, &back));
    cr_assert_str_eq(addr_text(&back, text), "fd00::7");
    cr_assert_not(gid_to_addr(gid, &v4, &back));
    memset(gid, 0, sizeof(gid));
    cr_assert_not(gid_to_addr(gid, &v6, &back), "the unspecified address is nobody's");
    memset(gid + 10, 0xff, 2);
    cr_assert_not(gid_to_addr(gid, &v4, &back));
    uint8_t group[16] = {0xff, 1, 0, 0, 0, 2, 0xc9, 0x85}, other[16];
    union addr there;
    memcpy(other, group, sizeof(other));
    other[15] = 1;
    cr_assert(gid_to_addr(group, &v4, &back), "a group of InfiniBand has one of IPv4");
    cr_assert_eq(ntohl(back.v4.sin_addr.s_addr) >> 18, 0xefc00000u >> 18);
    cr_assert(gid_to_addr(other, &v4, &there));
    cr_assert_neq(there.v4.sin_addr.s_addr, back.v4.sin_addr.s_addr, "and another one another");
    cr_assert(gid_to_addr(group, &v6, &back));
    cr_assert_eq(back.sa.sa_family, AF_INET6, "an IPv6 device has them as they are");
    cr_assert_eq(back.v6.sin6_addr.s6_addr[1], 2, "but for those that would not leave the host");
    cr_assert_eq(back.v6.sin6_addr.s6_addr[7], 0x85);
    uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3};
    cr_assert(gid_to_addr(ipv4, &v6, &back), "an IPv6 device reaches those of IPv4");
    cr_assert(back.v6.sin6_addr.s6_addr[0] == 0xff && back.v6.sin6_addr.s6_addr[15] == 3);
}

Test(addr, only_whole_addresses)
{
    static const char *const bad[] = {"",          "localhost", "127.1", "1.2.3",
                                      "300.0.0.1", "1.2.3.4/8", ":::",   "fe80::1%nosuch0"};
    union addr a;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_neq(addr_parse(bad[i], &a), 0, "%s", bad[i]);
    cr_assert_eq(addr_parse("fe80::1%lo", &a), 0);
    cr_assert_neq(a.v6.sin6_scope_id, 0);
}
