// SPDX-License-Identifier: BSD-2-Clause
/* GIDs that hold IPv4 addresses. */
#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "wire/gid.h"

static bool is_v4(const char *text)
{
    uint8_t gid[16];

    cr_assert_eq(inet_pton(AF_INET6, text, gid), 1);
    return gid_is_v4(gid);
}

Test(gid, a_mapped_address_is_ipv4)
{
    cr_expect(is_v4("::ffff:10.1.2.3"));
    cr_expect(is_v4("::ffff:0.0.0.0"));
    cr_expect(is_v4("::ffff:255.255.255.255"));
}

Test(gid, any_other_address_is_ipv6)
{
    cr_expect_not(is_v4("::"));
    cr_expect_not(is_v4("::10.1.2.3"));
    cr_expect_not(is_v4("::1"));
    cr_expect_not(is_v4("fe80::ffff:a01:203"));
    cr_expect_not(is_v4("ff02::1"));
}

/* Each bit of the prefix matters. */
Test(gid, one_wrong_bit_of_the_prefix_makes_it_ipv6)
{
    for (unsigned bit = 0; bit < 128; bit++) {
        uint8_t gid[16];

        cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.1.2.3", gid), 1);
        gid[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_expect_eq(gid_is_v4(gid), bit >= 96, "bit %u", bit);
    }
}

Test(gid, an_ipv4_address_becomes_a_mapped_one)
{
    uint8_t gid[16], want[16];
    struct in_addr ip4;

    memset(gid, 0xdb, sizeof gid);
    cr_assert_eq(inet_pton(AF_INET, "192.0.2.7", &ip4), 1);
    cr_assert_eq(inet_pton(AF_INET6, "::ffff:192.0.2.7", want), 1);
    gid_from_v4(gid, &ip4);
    cr_expect_arr_eq(gid, want, 16);
    gid_from_v4(gid, gid + 12);
    cr_expect_arr_eq(gid, want, 16);
}
