// SPDX-License-Identifier: BSD-2-Clause
/* The header area of received datagrams. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

#include "wire/grh.h"

static struct grh v4(void)
{
    struct grh g = {.traffic_class = 0x6a, .hop_limit = 63, .len = 1052};
    memcpy(g.src, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", 16);
    memcpy(g.dst, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xe0\0\0\x7f", 16);
    return g;
}

Test(grh, the_ipv4_header_follows_twenty_zero_bytes)
{
    uint8_t out[GRH_LEN], zero[20] = {0};
    struct grh g = v4();
    struct ip ip;
    memset(out, 0xdb, sizeof out);
    grh_build(&g, out);
    cr_expect_eq(memcmp(out, zero, 20), 0);
    memcpy(&ip, out + 20, sizeof ip);
    cr_expect(ip.ip_v == 4 && ip.ip_hl == 5);
    cr_expect_eq(ip.ip_tos, 0x6a);
    cr_expect_eq(ntohs(ip.ip_len), 20 + 8 + 1052);
    cr_expect_eq(ip.ip_id, 0);
    cr_expect_eq(ntohs(ip.ip_off), IP_DF);
    cr_expect_eq(ip.ip_ttl, 63);
    cr_expect_eq(ip.ip_p, 17);
    cr_expect_eq(ntohl(ip.ip_src.s_addr), 0x0a010203u);
    cr_expect_eq(ntohl(ip.ip_dst.s_addr), 0xe000007fu);
}

Test(grh, the_checksum_is_right_for_any_contents)
{
    for (unsigned i = 0; i < 5000; i++) {
        uint8_t out[GRH_LEN];
        struct grh g = v4();
        g.src[15] = (uint8_t)i;
        g.dst[14] = (uint8_t)(i >> 4);
        g.len = (uint16_t)(i * 13);
        g.hop_limit = (uint8_t)(i * 7);
        grh_build(&g, out);
        uint32_t sum = 0;
        for (int k = 20; k < 40; k += 2) {
            sum += (uint32_t)out[k] << 8 | out[k + 1];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        cr_assert_eq(sum, 0xffff, "%u", i);
    }
}

Test(grh, for_ipv6_the_header_area_is_the_ipv6_header)
{
    uint8_t out[GRH_LEN];
    struct grh g = {.src = {0xfd, [15] = 1}, .dst = {0xff, 2, [15] = 9}, .traffic_class = 0xb3, .hop_limit = 255};
    struct ip6_hdr ip;
    g.len = 24;
    memset(out, 0xdb, sizeof out);
    grh_build(&g, out);
    memcpy(&ip, out, sizeof ip);
    cr_expect_eq(ntohl(ip.ip6_flow), 0x6b300000u);
    cr_expect_eq(ntohs(ip.ip6_plen), 32);
    cr_expect_eq(ip.ip6_nxt, 17);
    cr_expect_eq(ip.ip6_hlim, 255);
    cr_expect_eq(memcmp(&ip.ip6_src, g.src, 16), 0);
    cr_expect_eq(memcmp(&ip.ip6_dst, g.dst, 16), 0);
}

Test(grh, its_length_is_that_of_the_verbs_api)
{
    cr_expect_eq(sizeof(struct ibv_grh), GRH_LEN);
}
