// SPDX-License-Identifier: BSD-2-Clause
#include "wire/grh.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"

#define IPV4_LEN 20u
#define UDP_LEN 8u
#define IPPROTO_IS_UDP 17u
#define IPV4_DF 0x4000u

/* The checksum of RFC 791: the ones' complement of the ones' complement sum. */
static uint16_t checksum(const uint8_t *p, unsigned len)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < len; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void build_v4(const struct grh *g, uint8_t *out)
{
    uint8_t *ip = out + GRH_LEN - IPV4_LEN;

    memset(out, 0, GRH_LEN);
    uint8_t *p = put_u8(ip, 0x45); /* version 4, 5 words */
    p = put_u8(p, g->traffic_class);
    p = put_be16(p, (uint16_t)(IPV4_LEN + UDP_LEN + g->len));
    p = put_be16(p, 0);
    p = put_be16(p, IPV4_DF);
    p = put_u8(p, g->hop_limit);
    p = put_u8(p, IPPROTO_IS_UDP);
    p = put_be16(p, 0);
    memcpy(p, g->src + 12, 4);
    memcpy(p + 4, g->dst + 12, 4);
    put_be16(ip + 10, checksum(ip, IPV4_LEN));
}

static void build_v6(const struct grh *g, uint8_t *out)
{
    uint8_t *p = put_be32(out, 6u << 28 | (uint32_t)g->traffic_class << 20 | (g->flow_label & 0xfffff));

    p = put_be16(p, (uint16_t)(UDP_LEN + g->len));
    p = put_u8(p, IPPROTO_IS_UDP);
    p = put_u8(p, g->hop_limit);
    memcpy(p, g->src, 16);
    memcpy(p + 16, g->dst, 16);
}

void grh_build(const struct grh *g, uint8_t out[GRH_LEN])
{
    if (gid_is_v4(g->src) || gid_is_v4(g->dst))
        build_v4(g, out);
    else
        build_v6(g, out);
}
