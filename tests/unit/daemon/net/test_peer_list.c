// SPDX-License-Identifier: BSD-2-Clause
/* Lists of address prefixes. */
#include <criterion/criterion.h>
#include <errno.h>

#include "daemon/net/peer_list.h"

static bool admits(const char *list, const char *address)
{
    struct peer_list l;
    union addr addr;
    uint8_t gid[16];

    cr_assert_eq(peer_list_parse(list, &l), 0, "%s", list);
    cr_assert_eq(addr_parse(address, &addr), 0, "%s", address);
    addr_to_gid(&addr, gid);
    return peer_list_admits(&l, gid);
}

Test(peer_list, prefixes)
{
    static const struct {
        const char *list, *address;
        bool in;
    } cases[] = {
        {"any", "192.0.2.1", true},
        {"any", "fd00::1", true},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.0", false},
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"10.1.2.3/8", "10.9.9.9", true},
        {"192.0.2.128/25", "192.0.2.127", false},
        {"192.0.2.128/25", "192.0.2.128", true},
        {"192.0.2.2/31", "192.0.2.3", true},
        {"192.0.2.2/31", "192.0.2.4", false},
        {"0.0.0.0/0", "203.0.113.7", true},
        {"0.0.0.0/0", "fd00::1", false},
        {"::/0", "fd00::1", true},
        {"::/0", "203.0.113.7", false},
        {"::/64", "203.0.113.7", false},
        {"fd00::/8", "fd12::1", true},
        {"fd00::/8", "fe12::1", false},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"192.0.2.0/24,fd00::/8,198.51.100.7", "198.51.100.7", true},
        {"192.0.2.0/24,fd00::/8,198.51.100.7", "198.51.100.8", false},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect_eq(admits(cases[i].list, cases[i].address), cases[i].in, "%s in %s", cases[i].address, cases[i].list);
}

Test(peer_list, wrong_lists_are_refused)
{
    static const char *const wrong[] = {
        "",     ",",       "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/ 8", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129",
        "10/8", "host/24", "10.0.0.0/8,", ",10.0.0.0/8", "/8",          "any,::/0",    "10.0.0.0//8"};
    char many[PEER_LIST_MAX * 12 + 16] = "192.0.2.1";
    struct peer_list l;

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_expect_eq(peer_list_parse(wrong[i], &l), -EINVAL, "\"%s\"", wrong[i]);
    for (unsigned i = 1; i < PEER_LIST_MAX; i++)
        strcat(many, ",192.0.2.1");
    cr_expect_eq(peer_list_parse(many, &l), 0);
    strcat(many, ",192.0.2.1");
    cr_expect_eq(peer_list_parse(many, &l), -EINVAL, "one too many");
}

Test(peer_list, text)
{
    char text[PEER_PREFIX_TEXT_MAX];
    struct peer_list l;

    cr_assert_eq(peer_list_parse("10.1.2.3/8,fd00::1,192.0.2.9,::/0", &l), 0);
    cr_expect_str_eq(peer_prefix_text(&l.prefix[0], text), "10.0.0.0/8");
    cr_expect_str_eq(peer_prefix_text(&l.prefix[1], text), "fd00::1/128");
    cr_expect_str_eq(peer_prefix_text(&l.prefix[2], text), "192.0.2.9/32");
    cr_expect_str_eq(peer_prefix_text(&l.prefix[3], text), "::/0");
}
