// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/frame.h"

#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd
#define PROTOCOL_UDP 17
#define HOP_LIMIT 64
#define IP4_DF 0x4000
#define ETH_LEN 14
#define IP4_LEN 20
#define IP4_CHECKSUM_AT 10
#define UDP_LEN 8
#define UDP_CHECKSUM_AT 6

/* Adds the 16-bit words of p[0 ... n) to sum (RFC 1071). An odd last byte is padded with zero. */
static uint64_t sum16(uint64_t sum, const uint8_t *p, size_t n)
{
    uint16_t word;

    for (; n >= 2; n -= 2) {
        p = get_be16(p, &word);
        sum += word;
    }
    return n ? sum + ((uint64_t)p[0] << 8) : sum;
}

static uint16_t checksum(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static uint8_t *put_mac(uint8_t *d, const uint8_t *addr)
{
    d = put_be16(d, 0x0200);
    memcpy(d, addr + 12, 4);
    return d + 4;
}

static uint8_t *put_ip4(uint8_t *d, const struct frame_flow *flow, uint16_t udp_len)
{
    uint8_t *start = d;

    d = put_u8(d, 0x45);
    d = put_u8(d, flow->tos);
    d = put_be16(d, (uint16_t)(IP4_LEN + udp_len));
    d = put_be16(d, flow->ip_id);
    d = put_be16(d, IP4_DF);
    d = put_u8(d, HOP_LIMIT);
    d = put_u8(d, PROTOCOL_UDP);
    d = put_be16(d, 0);
    memcpy(d, flow->src + 12, 4);
    memcpy(d + 4, flow->dst + 12, 4);
    put_be16(start + IP4_CHECKSUM_AT, checksum(sum16(0, start, IP4_LEN)));
    return d + 8;
}

static uint8_t *put_ip6(uint8_t *d, const struct frame_flow *flow, uint16_t udp_len)
{
    d = put_be32(d, 6u << 28 | (uint32_t)flow->tos << 20);
    d = put_be16(d, udp_len);
    d = put_u8(d, PROTOCOL_UDP);
    d = put_u8(d, HOP_LIMIT);
    memcpy(d, flow->src, 16);
    memcpy(d + 16, flow->dst, 16);
    return d + 32;
}

size_t frame_head(uint8_t *dst, const struct frame_flow *flow, const uint8_t *payload, size_t len)
{
    bool is_v4 = gid_is_v4(flow->src) && gid_is_v4(flow->dst);
    size_t from = is_v4 ? GID_V4_AT : 0; /* first byte of the IP address in a GID */
    uint8_t *d = dst;

    if (len + flow->cut > FRAME_PAYLOAD_MAX)
        return 0;
    uint16_t udp_len = (uint16_t)(UDP_LEN + len + flow->cut);
    d = put_mac(d, flow->dst);
    d = put_mac(d, flow->src);
    d = put_be16(d, is_v4 ? ETHERTYPE_IP4 : ETHERTYPE_IP6);
    uint8_t *udp = is_v4 ? put_ip4(d, flow, udp_len) : put_ip6(d, flow, udp_len);

    d = put_be16(udp, flow->src_port);
    d = put_be16(d, flow->dst_port);
    d = put_be16(d, udp_len);
    d = put_be16(d, 0);
    if (flow->cut)
        return (size_t)(d - dst);
    /* The checksum begins with the pseudo header: addresses, length, protocol. */
    uint64_t sum = sum16(sum16(0, flow->src + from, 16 - from), flow->dst + from, 16 - from) + udp_len + PROTOCOL_UDP;
    uint16_t check = checksum(sum16(sum16(sum, udp, UDP_LEN), payload, len));
    put_be16(udp + UDP_CHECKSUM_AT, check ? check : 0xffff); /* 0 means no checksum */
    return (size_t)(d - dst);
}

void frame_icrc(const struct frame_flow *flow, uint8_t *payload, size_t len)
{
    struct icrc_flow f = {.src_port = flow->src_port,
                          .dst_port = flow->dst_port,
                          .is_v6 = !(gid_is_v4(flow->src) && gid_is_v4(flow->dst))};
    struct icrc_ctx ctx;

    memcpy(f.src, flow->src, sizeof(f.src));
    memcpy(f.dst, flow->dst, sizeof(f.dst));
    icrc_ctx_init(&ctx, &f);
    icrc_store(payload + len - ICRC_LEN, icrc_compute(&ctx, flow->ip_id, payload, len - ICRC_LEN));
}
