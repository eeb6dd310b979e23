// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/pkt.h"

/* crc32_gzip_refl (ISA-L) is the CRC of zlib: polynomial 0x04c11db7 reflected, inverted at the beginning and at the
 * end. It can continue from a previous result. The ICRC is this CRC, least significant byte first. */

#define ONES_LEN 8 /* bytes of ones, in place of InfiniBand's LRH */
#define IP4_LEN 20
#define IP6_LEN 40
#define UDP_LEN 8
#define IP4_HEAD_LEN (ONES_LEN + IP4_LEN + UDP_LEN)
#define IP6_HEAD_LEN (ONES_LEN + IP6_LEN + UDP_LEN)
#define IP4_TOTAL_AT (ONES_LEN + 2)
#define IP4_ID_AT (ONES_LEN + 4)
#define IP4_UDP_LEN_AT (ONES_LEN + IP4_LEN + 4)
#define IP6_PAYLOAD_AT (ONES_LEN + 4)
#define IP6_UDP_LEN_AT (ONES_LEN + IP6_LEN + 4)
#define IPPROTO_UDP_NR 17
#define BTH_RESV8A_AT 4 /* FECN, BECN and six reserved bits */

/* If fewer than this number of bytes follow the BTH, icrc_compute appends them to the head: one call of the CRC
 * function on all bytes is faster than a second call on a short input. */
#define REST_MIN 16

/* Why ISA-L: times in ns per call on an AMD EPYC. With AVX-512, ISA-L takes 5 for 64 B and 62 for 4 KiB; libdeflate
 * takes 5 and 241. Without AVX-512, both take about 340 for 4 KiB, and a stream of large messages is a sixth slower.
 * (Later versions of ISA-L also have a function for AVX2.) With AVX-512, icrc_compute as a whole takes 17 for an ACK,
 * 15 for 64 B of payload, 24 for 1 KiB and 67 for 4 KiB. */

void icrc_ctx_init(struct icrc_ctx *ctx, const struct icrc_flow *flow)
{
    uint8_t *p = ctx->head;

    memset(ctx, 0, sizeof(*ctx));
    ctx->flow = *flow;
    memset(p, 0xff, ONES_LEN);
    p += ONES_LEN;
    if (flow->is_v6) {
        p = put_be32(p, 0x6fffffff); /* version; traffic class and flow label masked */
        p = put_be16(p, 0); /* payload length: per packet */
        p = put_u8(p, IPPROTO_UDP_NR);
        p = put_u8(p, 0xff); /* hop limit masked */
        memcpy(p, flow->src, 16);
        memcpy(p + 16, flow->dst, 16);
        p += 32;
    } else {
        p = put_be16(p, 0x45ff); /* version, header length; TOS masked */
        p = put_be32(p, 0); /* total length, ID: per packet */
        p = put_be16(p, 0x4000); /* DF */
        p = put_u8(p, 0xff); /* TTL masked */
        p = put_u8(p, IPPROTO_UDP_NR);
        p = put_be16(p, 0xffff); /* header checksum masked */
        memcpy(p, flow->src + 12, 4);
        memcpy(p + 4, flow->dst + 12, 4);
        p += 8;
    }
    p = put_be16(p, flow->src_port);
    p = put_be16(p, flow->dst_port);
    p = put_be16(p, 0); /* length: per packet */
    p = put_be16(p, 0xffff); /* checksum masked */
    ctx->head_len = (uint8_t)(p - ctx->head);
}

/* head_ip4 and head_ip6 write the head of the CRC's input, up to and including the BTH, to buf and return its length.
 * The CRC function reads 16 bytes at a time, and a processor stalls when it reads bytes that were just written in
 * smaller units. So head_ip4, the common case, assembles its head in registers: with the BTH it has three times 16
 * bytes. Otherwise a packet of 64 bytes would take twice as long. */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "head_ip4 assembles words for little-endian machines");

typedef uint64_t pair __attribute__((vector_size(16)));

static uint64_t load8(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t load4(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* v in network byte order, shifted to byte `at` of a word. The caller ORs it into a word that has zeroes there. */
static uint64_t field16(uint16_t v, unsigned at)
{
    return (uint64_t)__builtin_bswap16(v) << 8 * at;
}

static size_t head_ip4(const struct icrc_ctx *ctx, uint16_t ip_id, uint16_t udp_len, const uint8_t *pkt, uint8_t *buf)
{
    const uint8_t *h = ctx->head;
    pair ones_ip = {load8(h), load8(h + 8) | field16((uint16_t)(IP4_LEN + udp_len), IP4_TOTAL_AT - 8) |
                                  field16(ip_id, IP4_ID_AT - 8)};
    pair ip_udp = {load8(h + 16), load8(h + 24)};
    pair udp_bth = {load4(h + 32) | field16(udp_len, IP4_UDP_LEN_AT - 32) | load4(pkt) << 32,
                    load8(pkt + BTH_RESV8A_AT) | 0xff};

    memcpy(buf, &ones_ip, sizeof(pair));
    memcpy(buf + 16, &ip_udp, sizeof(pair));
    memcpy(buf + 32, &udp_bth, sizeof(pair));
    return IP4_HEAD_LEN + BTH_LEN;
}

static size_t head_ip6(const struct icrc_ctx *ctx, uint16_t udp_len, const uint8_t *pkt, uint8_t *buf)
{
    memcpy(buf, ctx->head, IP6_HEAD_LEN);
    put_be16(buf + IP6_PAYLOAD_AT, udp_len);
    put_be16(buf + IP6_UDP_LEN_AT, udp_len);
    memcpy(buf + IP6_HEAD_LEN, pkt, BTH_LEN);
    buf[IP6_HEAD_LEN + BTH_RESV8A_AT] = 0xff;
    return IP6_HEAD_LEN + BTH_LEN;
}

/* From 256 bytes on, ISA-L uses 512-bit registers and does not clear their upper halves at the end. Until they are
 * cleared, all SSE code runs at half speed: ISA-L's code for short inputs, and ours. */
#define WIDE_MIN 256
#ifdef __x86_64__
__attribute__((target("avx"))) static void clear_upper(void)
{
    __builtin_ia32_vzeroupper();
}

static void after_wide(void)
{
    if (__builtin_cpu_supports("avx"))
        clear_upper();
}
#else
static void after_wide(void)
{
}
#endif

uint32_t icrc_compute(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len)
{
    uint8_t buf[IP6_HEAD_LEN + BTH_LEN + REST_MIN];
    uint16_t udp_len = (uint16_t)(UDP_LEN + len + ICRC_LEN);
    size_t rest = len - BTH_LEN;
    size_t head = ctx->flow.is_v6 ? head_ip6(ctx, udp_len, pkt, buf) : head_ip4(ctx, ip_id, udp_len, pkt, buf);

    if (rest < REST_MIN) {
        memcpy(buf + head, pkt + BTH_LEN, rest);
        return crc32_gzip_refl(0, buf, head + rest);
    }
    uint32_t crc = crc32_gzip_refl(crc32_gzip_refl(0, buf, head), pkt + BTH_LEN, rest);
    if (rest >= WIDE_MIN)
        after_wide();
    return crc;
}

void icrc_store(uint8_t *p, uint32_t crc)
{
    put_le32(p, crc);
}

uint32_t icrc_load(const uint8_t *p)
{
    uint32_t crc;

    get_le32(p, &crc);
    return crc;
}

bool icrc_check(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len)
{
    if (len < BTH_LEN + ICRC_LEN)
        return false;
    return icrc_compute(ctx, ip_id, pkt, len - ICRC_LEN) == icrc_load(pkt + len - ICRC_LEN);
}

/* --- finding the IP ID ---------------------------------------------------------------------------------------------
 *
 * Polynomials over GF(2) modulo P = x^32 + x^26 + ... + 1, in the CRC's reflected form: bit 31 is x^0, bit 0 is x^31.
 *
 * If two messages differ only in the ID, their CRCs differ by D(x) * x^(8n) * x^32 mod P. D is the difference of the
 * IDs as a polynomial of degree below 16, and n is the number of bytes after the ID. P is not divisible by x, so
 * multiplication by x^-8(n+4) gives D back. If the result has degree 16 or more, the messages also differ
 * elsewhere. */

#define POLY 0xedb88320u

/* x^(-8 * 2^i) mod P. */
/* clang-format off */
static const uint32_t x8_inverse[17] = {
    0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226, 0x29c45641,
    0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d,
};
/* clang-format on */

static uint32_t poly_mul(uint32_t a, uint32_t b)
{
    uint32_t r = 0;

    for (; a; a <<= 1) {
        r ^= b & (0u - (a >> 31));
        b = b >> 1 ^ (POLY & (0u - (b & 1)));
    }
    return r;
}

/* a * x^(-8 * bytes) mod P. */
static uint32_t poly_rewind(uint32_t a, size_t bytes)
{
    for (unsigned i = 0; bytes; i++, bytes >>= 1) {
        if (bytes & 1)
            a = poly_mul(a, x8_inverse[i]);
    }
    return a;
}

bool icrc_check_any_id(const struct icrc_ctx *ctx, uint16_t hint, const uint8_t *pkt, size_t len, uint16_t *ip_id)
{
    size_t behind; /* bytes of the message after the ID */

    if (len < BTH_LEN + ICRC_LEN || len > UINT16_MAX)
        return false;
    uint32_t diff = icrc_compute(ctx, hint, pkt, len - ICRC_LEN) ^ icrc_load(pkt + len - ICRC_LEN);
    if (diff != 0 && !ctx->flow.is_v6) {
        behind = IP4_HEAD_LEN - (IP4_ID_AT + 2) + len - ICRC_LEN;
        diff = poly_rewind(diff, behind + 4);
        /* The first byte of the ID is now in bits 16 to 23, and the second in bits 24 to 31: a CRC takes lsb first. */
        hint ^= (uint16_t)((diff >> 16 & 0xff) << 8 | diff >> 24);
        diff &= 0xffff;
    }
    if (diff != 0)
        return false;
    *ip_id = hint;
    return true;
}
