// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/decap.h"

#include <isa-l/crc.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/pkt.h"

/* Link types: LINKTYPE_ numbers of files, and DLT_RAW, which has another number in Linux's libpcap. */
enum {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_DLT_RAW = 12,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_SLL2 = 276,
};
#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define PROTOCOL_UDP 17
#define PROTOCOL_FRAGMENT 44
#define PACKET_OUTGOING 4 /* packet type of SLL: sent by this host */
#define PACKET_HOST 0
#define ETH_LEN 14
#define UDP_LEN 8
#define IP4_LEN 20
#define IP6_LEN 40

static uint16_t be16(const uint8_t *p)
{
    uint16_t v;

    get_be16(p, &v);
    return v;
}

/* Reads the ethertype after any VLAN tags and moves *at past it. Returns 0 if the frame is too short. */
static uint16_t ethertype(const uint8_t *p, size_t n, size_t *at)
{
    uint16_t type;

    do {
        if (*at + 2 > n)
            return 0;
        type = be16(p + *at);
        *at += type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ ? 4 : 2;
    } while (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ);
    return type;
}

static enum pcapng_direction sll_direction(unsigned packet_type)
{
    return packet_type == PACKET_OUTGOING ? PCAPNG_DIR_OUT
           : packet_type == PACKET_HOST   ? PCAPNG_DIR_IN
                                          : PCAPNG_DIR_UNKNOWN;
}

/* Returns the offset of the IP header plus one; 0: there is none, -1: unknown link layer. */
static long link_layer(const struct capread_frame *f, struct decap *out)
{
    const uint8_t *p = f->data;
    size_t n = f->caplen, at;
    uint16_t type;

    switch (f->linktype) {
    case LINK_RAW:
    case LINK_DLT_RAW:
    case LINK_IPV4:
    case LINK_IPV6:
        return 1;
    case LINK_NULL:
    case LINK_LOOP:
        return n > 4 && (p[4] >> 4 == 4 || p[4] >> 4 == 6) ? 5 : 0;
    case LINK_ETHERNET:
        at = 12;
        type = ethertype(p, n, &at);
        break;
    case LINK_SLL:
        at = 14;
        type = ethertype(p, n, &at);
        if (n >= 2)
            out->direction = sll_direction(be16(p));
        break;
    case LINK_SLL2:
        if (n < 20)
            return 0;
        get_be32(p + 4, &out->ifindex);
        out->direction = sll_direction(p[10]);
        type = be16(p);
        at = 20;
        break;
    default:
        return -1;
    }
    return type == ETHERTYPE_IP4 || type == ETHERTYPE_IP6 ? (long)at + 1 : 0;
}

/* Sets the addresses and ip_len, and sets *total to the length of the whole datagram. */
static enum decap_verdict ip4(const uint8_t *p, size_t n, struct decap *out, size_t *total)
{
    if (n < IP4_LEN)
        return DECAP_SHORT;
    if (p[9] != PROTOCOL_UDP)
        return DECAP_OTHER;
    gid_from_v4(out->src, p + 12);
    gid_from_v4(out->dst, p + 16);
    out->ip_len = (size_t)(p[0] & 15) * 4;
    *total = be16(p + 2);
    uint16_t fragment = be16(p + 6) & 0x3fff; /* more fragments, offset */
    if (fragment & 0x1fff)
        return DECAP_FRAGMENT; /* only the first fragment has ports */
    if (out->ip_len < IP4_LEN || *total < out->ip_len + UDP_LEN)
        return DECAP_LENGTH;
    if (n < out->ip_len + UDP_LEN)
        return DECAP_SHORT;
    if (be16(p + out->ip_len + 2) != ROCE_PORT)
        return DECAP_OTHER;
    return fragment ? DECAP_FRAGMENT : DECAP_ROCE;
}

static enum decap_verdict ip6(const uint8_t *p, size_t n, struct decap *out, size_t *total)
{
    if (n < IP6_LEN)
        return DECAP_SHORT;
    if (p[6] != PROTOCOL_UDP) /* RoCEv2 has no extension headers */
        return p[6] == PROTOCOL_FRAGMENT ? DECAP_FRAGMENT : DECAP_OTHER;
    memcpy(out->src, p + 8, 16);
    memcpy(out->dst, p + 24, 16);
    out->is_v6 = true;
    out->ip_len = IP6_LEN;
    *total = IP6_LEN + be16(p + 4);
    if (n < IP6_LEN + UDP_LEN)
        return DECAP_SHORT;
    if (be16(p + IP6_LEN + 2) != ROCE_PORT)
        return DECAP_OTHER;
    return *total < IP6_LEN + UDP_LEN ? DECAP_LENGTH : DECAP_ROCE;
}

enum decap_verdict decap_frame(const struct capread_frame *f, struct decap *out)
{
    size_t total = 0;
    enum decap_verdict v;

    *out = (struct decap){.direction = PCAPNG_DIR_UNKNOWN};
    long at = link_layer(f, out);
    if (at <= 0)
        return at < 0 ? DECAP_LINKTYPE : DECAP_OTHER;
    if (f->direction != PCAPNG_DIR_UNKNOWN)
        out->direction = f->direction;
    at--;
    if ((size_t)at >= f->caplen)
        return DECAP_OTHER;
    out->ip = f->data + at;
    size_t n = f->caplen - (size_t)at;
    if (out->ip[0] >> 4 == 4)
        v = ip4(out->ip, n, out, &total);
    else if (out->ip[0] >> 4 == 6)
        v = ip6(out->ip, n, out, &total);
    else
        v = DECAP_OTHER;
    if (v != DECAP_ROCE)
        return v;
    out->udp = out->ip + out->ip_len;
    size_t udp_len = be16(out->udp + 4);
    if (udp_len < UDP_LEN || out->ip_len + udp_len != total || (size_t)at + total > f->len)
        return DECAP_LENGTH;
    out->payload = out->udp + UDP_LEN;
    out->len = udp_len - UDP_LEN;
    out->caplen = n - out->ip_len - UDP_LEN;
    if (out->caplen > out->len)
        out->caplen = out->len;
    return DECAP_ROCE;
}

uint32_t decap_icrc(const struct decap *d, uint16_t ip_id_add, const uint8_t *pkt, size_t len)
{
    uint8_t head[8 + 60 + UDP_LEN + BTH_LEN];
    uint8_t *ip = head + 8, *udp = ip + d->ip_len, *bth = udp + UDP_LEN;
    uint16_t udp_len = (uint16_t)(UDP_LEN + len + ICRC_LEN);

    memset(head, 0xff, 8);
    memcpy(ip, d->ip, d->ip_len);
    memcpy(udp, d->udp, UDP_LEN);
    memcpy(bth, pkt, BTH_LEN);
    if (d->is_v6) { /* mask traffic class, flow label and hop limit */
        put_be32(ip, 0x6fffffff);
        put_be16(ip + 4, udp_len);
        ip[7] = 0xff;
    } else { /* mask TOS, TTL and checksum */
        ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
        put_be16(ip + 2, (uint16_t)(d->ip_len + udp_len));
        put_be16(ip + 4, (uint16_t)(be16(d->ip + 4) + ip_id_add));
    }
    put_be16(udp + 4, udp_len);
    put_be16(udp + 6, 0xffff);
    bth[4] = 0xff;
    return crc32_gzip_refl(crc32_gzip_refl(0, head, (size_t)(bth - head) + BTH_LEN), pkt + BTH_LEN, len - BTH_LEN);
}
