// SPDX-License-Identifier: BSD-2-Clause
/* Compares the ICRC with those of packets that hardware sent, and with a CRC computed bit by bit over whole IP
 * packets, as IBA 7.8.1 and A17.3.3 describe. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/pkt.h"

#define LEN_MAX (PKT_HEADERS_MAX + PKT_MTU_MAX)

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void fill_random(uint64_t *state, uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)next_random(state);
}

/* --- the reference: a shift register as it is drawn, fed each byte's lsb first ----------------- */

static uint32_t reg_feed(uint32_t reg, uint8_t byte)
{
    for (int i = 0; i < 8; i++) {
        uint32_t out = (reg >> 31) ^ (byte >> i & 1u);

        reg = reg << 1 ^ (out ? 0x04c11db7u : 0);
    }
    return reg;
}

/* Converts the register's final content to the four bytes on the wire: complemented, with the highest coefficient
 * first in the lsb of each byte. */
static void reg_bytes(uint32_t reg, uint8_t *out)
{
    memset(out, 0, 4);
    for (int i = 0; i < 32; i++) {
        if (!(reg >> (31 - i) & 1))
            out[i / 8] |= (uint8_t)(1 << i % 8);
    }
}

struct ip_packet {
    uint8_t b[40 + 8 + LEN_MAX];
    size_t len; /* without the ICRC */
    size_t udp; /* offset of the UDP header */
};

/* Builds the IP packet whose UDP payload is pkt[0 ... len) and the ICRC. The fields that routers may change, and that
 * the ICRC leaves out, are random. */
static void ip_packet_make(struct ip_packet *ip, uint64_t *random, const struct icrc_flow *f, uint16_t id,
                           const uint8_t *pkt, size_t len)
{
    size_t udp_len = 8 + len + 4;
    uint8_t *b = ip->b;

    fill_random(random, b, 48);
    ip->udp = f->is_v6 ? 40 : 20;
    if (f->is_v6) {
        b[0] = (uint8_t)(0x60 | (b[0] & 0x0f));
        b[4] = (uint8_t)(udp_len >> 8);
        b[5] = (uint8_t)udp_len;
        b[6] = 17;
        memcpy(b + 8, f->src, 16);
        memcpy(b + 24, f->dst, 16);
    } else {
        b[0] = 0x45;
        b[2] = (uint8_t)((20 + udp_len) >> 8);
        b[3] = (uint8_t)(20 + udp_len);
        b[4] = (uint8_t)(id >> 8);
        b[5] = (uint8_t)id;
        b[6] = 0x40; /* DF */
        b[7] = 0;
        b[9] = 17;
        memcpy(b + 12, f->src + 12, 4);
        memcpy(b + 16, f->dst + 12, 4);
    }
    b += ip->udp;
    b[0] = (uint8_t)(f->src_port >> 8);
    b[1] = (uint8_t)f->src_port;
    b[2] = (uint8_t)(f->dst_port >> 8);
    b[3] = (uint8_t)f->dst_port;
    b[4] = (uint8_t)(udp_len >> 8);
    b[5] = (uint8_t)udp_len;
    memcpy(b + 8, pkt, len);
    ip->len = ip->udp + 8 + len;
}

/* Computes the four bytes of the ICRC. */
static void reference(const struct ip_packet *ip, uint8_t *out)
{
    static const size_t masked4[] = {1, 8, 10, 11}; /* TOS, TTL, checksum */
    struct ip_packet m = *ip;
    uint32_t reg = 0xffffffff;

    if (m.udp == 40) {
        m.b[0] |= 0x0f; /* traffic class, flow label, hop limit */
        m.b[1] = m.b[2] = m.b[3] = m.b[7] = 0xff;
    } else {
        for (size_t i = 0; i < 4; i++)
            m.b[masked4[i]] = 0xff;
    }
    m.b[m.udp + 6] = m.b[m.udp + 7] = 0xff; /* UDP checksum */
    m.b[m.udp + 8 + 4] = 0xff; /* resv8a of the BTH */
    for (int i = 0; i < 8; i++)
        reg = reg_feed(reg, 0xff);
    for (size_t i = 0; i < m.len; i++)
        reg = reg_feed(reg, m.b[i]);
    reg_bytes(reg, out);
}

static void flow_random(uint64_t *random, bool is_v6, struct icrc_flow *f)
{
    fill_random(random, (uint8_t *)f->src, 16);
    fill_random(random, (uint8_t *)f->dst, 16);
    f->src_port = (uint16_t)next_random(random);
    f->dst_port = (uint16_t)next_random(random);
    f->is_v6 = is_v6;
}

/* Every length that matters: around the headers, the MTUs, and the block sizes of the CRC code. */
static size_t lengths[160];
static size_t lengths_make(void)
{
    static const size_t around[] = {64, 128, 256, 260, 268, 512, 1024, 1040, 2048, LEN_MAX - 8};
    size_t n = 0;

    for (size_t len = BTH_LEN; len < 60; len++)
        lengths[n++] = len;
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        for (size_t d = 0; d < 9; d++)
            lengths[n++] = around[i] - 4 + d;
    }
    return n;
}

Test(icrc, agrees_with_the_reference)
{
    uint64_t random = 7;
    size_t n = lengths_make();

    for (int v6 = 0; v6 < 2; v6++) {
        for (size_t i = 0; i < n; i++) {
            struct icrc_flow f;
            struct icrc_ctx ctx;
            struct ip_packet ip;
            uint16_t id = (uint16_t)next_random(&random);
            uint8_t *pkt = malloc(lengths[i] + 4), expected[4]; /* allocated with the exact size, for the sanitizers */

            flow_random(&random, v6, &f);
            fill_random(&random, pkt, lengths[i]);
            icrc_ctx_init(&ctx, &f);
            cr_expect_eq(ctx.head_len, v6 ? 56 : 36);
            ip_packet_make(&ip, &random, &f, id, pkt, lengths[i]);
            reference(&ip, expected);
            icrc_store(pkt + lengths[i], icrc_compute(&ctx, id, pkt, lengths[i]));
            cr_expect_arr_eq(pkt + lengths[i], expected, 4, "v6 %d length %zu", v6, lengths[i]);
            cr_expect(icrc_check(&ctx, id, pkt, lengths[i] + 4));
            free(pkt);
        }
    }
}

/* --- packets from the wire --------------------------------------------------------------------- */

static void check_captured(const struct icrc_flow *f, uint16_t id, const uint8_t *pkt, size_t len)
{
    struct icrc_ctx ctx;
    uint16_t found = 0;

    icrc_ctx_init(&ctx, f);
    cr_expect(icrc_check(&ctx, id, pkt, len));
    cr_expect_not(icrc_check(&ctx, (uint16_t)(id + 1), pkt, len));
    cr_assert(icrc_check_any_id(&ctx, 0, pkt, len, &found));
    cr_expect_eq(found, id);
}

/* A CNP that a ConnectX-4 Lx sent (captured for scapy's tests): TOS 0xc2, TTL 64, UDP checksum 0, BECN set. */
Test(icrc, captured_cnp)
{
    static const struct icrc_flow f = {
        .src = {[12] = 10, 0, 17, 1}, .dst = {[12] = 10, 0, 18, 1}, .src_port = 0, .dst_port = 4791};
    static const uint8_t pkt[32] = {0x81, 0, 0xff, 0xff, 0x40, 0, 0x01, 0x18, [28] = 0x82, 0xfd, 0x00, 0x2a};

    check_captured(&f, 0x718c, pkt, sizeof(pkt));
}

/* A UC SEND only, from the same tests: TOS 1, TTL 64, a UDP checksum, 2 bytes of pad. */
Test(icrc, captured_uc_send)
{
    static const struct icrc_flow f = {
        .src = {[12] = 192, 168, 0, 7}, .dst = {[12] = 192, 168, 0, 7}, .src_port = 49152, .dst_port = 4791};
    static const uint8_t pkt[36] = {0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
                                    0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50,
                                    0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3};

    check_captured(&f, 1144, pkt, sizeof(pkt));
}

/* --- the byte order, bounds, corruption -------------------------------------------------------- */

Test(icrc, stored_little_endian)
{
    uint8_t p[4];

    icrc_store(p, 0x01020304);
    cr_expect_arr_eq(p, ((uint8_t[]){4, 3, 2, 1}), 4);
    cr_expect_eq(icrc_load(p), 0x01020304);
    icrc_store(p, 0xfffefdfc);
    cr_expect_eq(icrc_load(p), 0xfffefdfc);
}

static void make(struct icrc_ctx *ctx, bool is_v6, uint16_t id, uint8_t *pkt, size_t len, uint64_t *random)
{
    struct icrc_flow f;

    flow_random(random, is_v6, &f);
    icrc_ctx_init(ctx, &f);
    fill_random(random, pkt, len);
    icrc_store(pkt + len, icrc_compute(ctx, id, pkt, len));
}

Test(icrc, too_short_is_wrong)
{
    uint64_t random = 3;
    uint8_t buf[64];
    struct icrc_ctx ctx;
    uint16_t id;

    make(&ctx, false, 0, buf, 32, &random);
    for (size_t len = 0; len < BTH_LEN + ICRC_LEN; len++) {
        uint8_t *pkt = malloc(len ? len : 1);

        memcpy(pkt, buf, len);
        cr_expect_not(icrc_check(&ctx, 0, pkt, len));
        cr_expect_not(icrc_check_any_id(&ctx, 0, pkt, len, &id));
        free(pkt);
    }
}

Test(icrc, every_flipped_bit_is_seen)
{
    uint64_t random = 5;
    uint8_t pkt[80];
    struct icrc_ctx ctx;
    uint16_t id;
    unsigned passed = 0;

    for (int v6 = 0; v6 < 2; v6++) {
        make(&ctx, v6, 9, pkt, sizeof(pkt) - 4, &random);
        for (size_t bit = 0; bit < sizeof(pkt) * 8; bit++) {
            bool masked = bit / 8 == 4; /* resv8a: it may change on the way */

            pkt[bit / 8] ^= (uint8_t)(1 << bit % 8);
            cr_expect_eq(icrc_check(&ctx, 9, pkt, sizeof(pkt)), masked, "bit %zu", bit);
            passed += !masked && icrc_check_any_id(&ctx, 9, pkt, sizeof(pkt), &id);
            pkt[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    cr_expect_eq(passed, 0, "single bits aren't differences of IDs");
}

Test(icrc, random_corruption_is_rejected)
{
    uint64_t random = 11;
    uint8_t pkt[300];
    struct icrc_ctx ctx;
    uint16_t id;
    unsigned passed = 0, rounds = 200000;

    make(&ctx, false, 77, pkt, sizeof(pkt) - 4, &random);
    for (unsigned i = 0; i < rounds; i++) {
        uint8_t bad[sizeof(pkt)];
        size_t at = 12 + next_random(&random) % (sizeof(pkt) - 12 - 8);

        memcpy(bad, pkt, sizeof(pkt));
        for (size_t k = 0; k < 8; k++)
            bad[at + k] = (uint8_t)next_random(&random);
        cr_assert_not(icrc_check(&ctx, 77, bad, sizeof(bad)));
        passed += icrc_check_any_id(&ctx, 77, bad, sizeof(bad), &id);
    }
    /* One packet in 65536 passes by chance: 3 are expected. */
    cr_expect_lt(passed, 20, "%u of %u", passed, rounds);
}

Test(icrc, a_changed_flow_is_rejected)
{
    uint64_t random = 13;
    uint8_t pkt[80];
    struct icrc_ctx ctx;

    for (int v6 = 0; v6 < 2; v6++) {
        make(&ctx, v6, 0, pkt, sizeof(pkt) - 4, &random);
        for (size_t i = 0; i < 36; i++) {
            struct icrc_flow f = ctx.flow;
            struct icrc_ctx other;

            if (i < 16)
                f.src[i] ^= 1;
            else if (i < 32)
                f.dst[i - 16] ^= 1;
            else if (i < 34)
                f.src_port ^= (uint16_t)(1 << i % 2 * 8);
            else
                f.dst_port ^= (uint16_t)(1 << i % 2 * 8);
            icrc_ctx_init(&other, &f);
            cr_expect_eq(icrc_check(&other, 0, pkt, sizeof(pkt)), !v6 && i < 32 && i % 16 < 12, "v6 %d byte %zu", v6,
                         i);
        }
    }
}

/* --- the IP ID --------------------------------------------------------------------------------- */

Test(icrc, every_id_is_found_at_every_kind_of_length)
{
    static const size_t at[] = {12, 13, 28, 100, 256, 257, 1040, LEN_MAX};
    static uint8_t pkt[LEN_MAX + 4];
    uint64_t random = 17;

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct icrc_ctx ctx;
        unsigned step = at[i] > 300 ? 7 : 1;

        make(&ctx, false, 0, pkt, at[i], &random);
        for (unsigned id = 0; id < 65536; id += step) {
            uint16_t found = (uint16_t)~id;

            icrc_store(pkt + at[i], icrc_compute(&ctx, (uint16_t)id, pkt, at[i]));
            cr_assert(icrc_check_any_id(&ctx, (uint16_t)(id * 40503u >> 4), pkt, at[i] + 4, &found));
            cr_assert_eq(found, id, "length %zu", at[i]);
        }
    }
}

Test(icrc, the_longest_datagram)
{
    static uint8_t pkt[65535 - 20 - 8];
    uint64_t random = 19;
    size_t len = sizeof(pkt) - 4;
    struct icrc_ctx ctx;

    make(&ctx, false, 0, pkt, len, &random);
    for (unsigned id = 0; id < 65536; id += 4001) {
        uint16_t found;

        icrc_store(pkt + len, icrc_compute(&ctx, (uint16_t)id, pkt, len));
        cr_assert(icrc_check_any_id(&ctx, 0, pkt, sizeof(pkt), &found));
        cr_expect_eq(found, id);
    }
}

Test(icrc, an_accepted_icrc_is_right_for_the_id_that_was_found)
{
    uint64_t random = 23;
    uint8_t pkt[64];
    struct icrc_ctx ctx;
    unsigned accepted = 0;

    make(&ctx, false, 0, pkt, sizeof(pkt) - 4, &random);
    for (unsigned i = 0; i < 1000000; i++) {
        uint16_t id = 0, hint = (uint16_t)next_random(&random);

        icrc_store(pkt + sizeof(pkt) - 4, next_random(&random));
        if (icrc_check_any_id(&ctx, hint, pkt, sizeof(pkt), &id)) {
            accepted++;
            cr_expect(icrc_check(&ctx, id, pkt, sizeof(pkt)));
        }
    }
    /* 15.3 are expected of a million. */
    cr_expect(accepted > 2 && accepted < 50, "%u", accepted);
}

Test(icrc, ipv6_has_no_id)
{
    uint64_t random = 29;
    uint8_t pkt[64];
    struct icrc_ctx ctx;
    uint16_t id = 1;

    make(&ctx, true, 0, pkt, sizeof(pkt) - 4, &random);
    cr_expect(icrc_check(&ctx, 4711, pkt, sizeof(pkt)), "ID ignored");
    cr_expect(icrc_check_any_id(&ctx, 4711, pkt, sizeof(pkt), &id));
    for (unsigned i = 0; i < 300000; i++) {
        icrc_store(pkt + sizeof(pkt) - 4, next_random(&random));
        cr_assert_not(icrc_check_any_id(&ctx, 0, pkt, sizeof(pkt), &id));
    }
}
