// SPDX-License-Identifier: BSD-2-Clause
/* The packet codecs. Every bit of every field is where the specification puts it, and only valid packets are
 * decoded. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "wire/pkt.h"

#define PACKET_MAX (PKT_HEADERS_MAX + PKT_MTU_MAX + 4 + ICRC_LEN)
#define BTH 0 /* used like a header bit; every packet has the BTH */

/* The position of each field: in the struct, and on the wire as bits from the beginning of its header (bit 0 is the
 * msb of the first byte). Taken from the figures of IBA chapter 9 and its annexes. */
enum type {
    T_BOOL,
    T_INT,
    T_BYTES, /* opaque, in wire order */
};
#define FIELD(header, member, type, bit, bits)                                                                         \
    {                                                                                                                  \
#member, header, offsetof(struct pkt, member), sizeof(((struct pkt *)0)->member), type, bit, bits              \
    }
/* clang-format off */
static const struct field {
    const char *name;
    unsigned header;
    size_t at, size;
    enum type type;
    unsigned bit, bits;
} fields[] = {
    FIELD(BTH,                 solicited,        T_BOOL,    8,  1),
    FIELD(BTH,                 migreq,           T_BOOL,    9,  1),
    FIELD(BTH,                 pad,              T_INT,    10,  2),
    FIELD(BTH,                 tver,             T_INT,    12,  4),
    FIELD(BTH,                 pkey,             T_INT,    16, 16),
    FIELD(BTH,                 fecn,             T_BOOL,   32,  1),
    FIELD(BTH,                 becn,             T_BOOL,   33,  1),
    FIELD(BTH,                 dest_qpn,         T_INT,    40, 24),
    FIELD(BTH,                 ackreq,           T_BOOL,   64,  1),
    FIELD(BTH,                 psn,              T_INT,    72, 24),
    FIELD(OP_HAS_XRCETH,       srqn,             T_INT,     8, 24),
    FIELD(OP_HAS_DETH,         deth.qkey,        T_INT,     0, 32),
    FIELD(OP_HAS_DETH,         deth.src_qpn,     T_INT,    40, 24),
    FIELD(OP_HAS_FETH,         feth.selectivity, T_INT,    26,  2),
    FIELD(OP_HAS_FETH,         feth.placement,   T_INT,    28,  4),
    FIELD(OP_HAS_RETH,         reth.va,          T_INT,     0, 64),
    FIELD(OP_HAS_RETH,         reth.rkey,        T_INT,    64, 32),
    FIELD(OP_HAS_RETH,         reth.length,      T_INT,    96, 32),
    FIELD(OP_HAS_ATOMICETH,    atomic.va,        T_INT,     0, 64),
    FIELD(OP_HAS_ATOMICETH,    atomic.rkey,      T_INT,    64, 32),
    FIELD(OP_HAS_ATOMICETH,    atomic.swap_add,  T_INT,    96, 64),
    FIELD(OP_HAS_ATOMICETH,    atomic.compare,   T_INT,   160, 64),
    FIELD(OP_HAS_AETH,         aeth.syndrome,    T_INT,     0,  8),
    FIELD(OP_HAS_AETH,         aeth.msn,         T_INT,     8, 24),
    FIELD(OP_HAS_ATOMICACKETH, atomic_orig,      T_INT,     0, 64),
    FIELD(OP_HAS_IMMDT,        imm,              T_BYTES,   0, 32),
    FIELD(OP_HAS_IETH,         inv_rkey,         T_INT,     0, 32),
};
/* clang-format on */
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const unsigned header_len[][2] = {
    {OP_HAS_XRCETH, 4}, {OP_HAS_DETH, 8},         {OP_HAS_FETH, 4},  {OP_HAS_RETH, 16}, {OP_HAS_ATOMICETH, 28},
    {OP_HAS_AETH, 4},   {OP_HAS_ATOMICACKETH, 8}, {OP_HAS_IMMDT, 4}, {OP_HAS_IETH, 4},
};

static uint64_t mask_of(unsigned bits)
{
    return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static bool has(unsigned op, const struct field *f)
{
    return f->header == BTH || op_table[op].headers & f->header;
}

/* Returns the first bit of a field within the packet. */
static unsigned wire_bit(unsigned op, const struct field *f)
{
    unsigned at = 0;

    if (f->header == BTH)
        return f->bit;
    for (size_t i = 0; header_len[i][0] != f->header; i++)
        at += op_table[op].headers & header_len[i][0] ? header_len[i][1] : 0;
    return (BTH_LEN + at) * 8 + f->bit;
}

static void set(struct pkt *p, const struct field *f, uint64_t v)
{
    uint8_t *at = (uint8_t *)p + f->at;

    for (size_t i = 0; f->type == T_BYTES && i < f->size; i++)
        at[i] = (uint8_t)(v >> 8 * (f->size - 1 - i));
    if (f->type == T_BYTES)
        return;
    switch (f->size) {
    case 1:
        *at = (uint8_t)v;
        break;
    case 2:
        *(uint16_t *)(void *)at = (uint16_t)v;
        break;
    case 4:
        *(uint32_t *)(void *)at = (uint32_t)v;
        break;
    default:
        *(uint64_t *)(void *)at = v;
        break;
    }
}

static uint64_t get(const struct pkt *p, const struct field *f)
{
    const uint8_t *at = (const uint8_t *)p + f->at;
    uint64_t v = 0;

    for (size_t i = 0; f->type == T_BYTES && i < f->size; i++)
        v = v << 8 | at[i];
    if (f->type == T_BYTES)
        return v;
    switch (f->size) {
    case 1:
        return *at;
    case 2:
        return *(const uint16_t *)(const void *)at;
    case 4:
        return *(const uint32_t *)(const void *)at;
    default:
        return *(const uint64_t *)(const void *)at;
    }
}

/* Sets bits [bit, bit + bits) to v, with the bit numbers of the specification's figures. */
static void poke(uint8_t *wire, unsigned bit, unsigned bits, uint64_t v)
{
    for (unsigned i = 0; i < bits; i++) {
        unsigned at = bit + bits - 1 - i;
        uint8_t m = (uint8_t)(0x80 >> at % 8);

        wire[at / 8] = (uint8_t)((wire[at / 8] & ~m) | (v >> i & 1 ? m : 0));
    }
}

/* States independently which payload lengths a kind of packet allows at some MTU. */
static bool legal(unsigned op, size_t n)
{
    switch (op_table[op].payload) {
    case OP_PAYLOAD_NONE:
        return n == 0;
    case OP_PAYLOAD_FULL:
        return n == 256 || n == 512 || n == 1024 || n == 2048 || n == 4096;
    case OP_PAYLOAD_LAST:
        return n >= 1 && n <= 4096;
    case OP_PAYLOAD_ONLY:
        return n <= 4096;
    case OP_PAYLOAD_8:
        return n == 8;
    default:
        return n == 16;
    }
}

/* Returns the shortest legal payload that needs this pad; SIZE_MAX: there is none. */
static size_t payload_with_pad(unsigned op, unsigned pad)
{
    for (size_t n = 0; n <= 4096; n++) {
        if (legal(op, n) && pkt_pad((uint32_t)n) == pad)
            return n;
    }
    return SIZE_MAX;
}

/* Decodes a copy that ends where the packet ends, so that a sanitizer finds a read beyond it. */
static enum pkt_error decode(const uint8_t *data, size_t len, struct pkt *out)
{
    uint8_t *copy = malloc(len ? len : 1);
    enum pkt_error e;

    memcpy(copy, data, len);
    e = pkt_decode(copy, len, out);
    if (e == PKT_OK) {
        cr_expect_geq(out->payload, copy);
        cr_expect_eq(out->payload + out->payload_len + out->pad + ICRC_LEN, copy + len);
        out->payload = data + (out->payload - copy);
    }
    free(copy);
    return e;
}

#define EACH_OPCODE(op)                                                                                                \
    for (unsigned op = 0; op < 256; op++)                                                                              \
        if (op_table[op].name)

static const uint64_t patterns[] = {0, 1, 2, 0xaaaaaaaaaaaaaaaa, 0x5555555555555555, 0x0123456789abcdef, UINT64_MAX};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* One field has a value, all others are zero or all ones. The bits on the wire must be those of the figures. */
static void check_encoding(unsigned op, const struct field *f, uint64_t v, bool ones)
{
    uint8_t wire[PKT_HEADERS_MAX], expected[PKT_HEADERS_MAX];
    struct pkt p;

    memset(&p, 0, sizeof(p));
    memset(expected, 0, sizeof(expected));
    memset(wire, 0x77, sizeof(wire)); /* earlier contents must not matter */
    p.opcode = (uint8_t)op;
    expected[0] = (uint8_t)op;
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *g = &fields[i];
        uint64_t w = g == f ? v : ones ? mask_of(g->bits) : 0;

        /* Where the type is wider than the field on the wire, the value must be cut. */
        set(&p, g, g->type == T_BOOL ? w & 1 : g == f || !ones ? w : UINT64_MAX);
        if (has(op, g))
            poke(expected, wire_bit(op, g), g->bits, w);
    }
    cr_assert_eq(pkt_encode(&p, wire), op_table[op].header_len, "opcode %02x", op);
    cr_expect_arr_eq(wire, expected, op_table[op].header_len, "opcode %02x %s=%llx ones %d", op, f->name,
                     (unsigned long long)v, ones);
    cr_expect_eq(wire[op_table[op].header_len], 0x77, "opcode %02x: written too far", op);
}

Test(pkt, every_field_is_encoded_in_its_place)
{
    EACH_OPCODE(op)
    {
        for (size_t i = 0; i < FIELDS; i++) {
            for (size_t k = 0; k < PATTERNS && has(op, &fields[i]); k++) {
                check_encoding(op, &fields[i], patterns[k], false);
                check_encoding(op, &fields[i], patterns[k], true);
            }
        }
    }
}

/* Does the same from the wire. Every field except f must be decoded as 0 or as all ones, and reserved bits have no
 * influence. */
static void check_decoding(unsigned op, const struct field *f, uint64_t v, bool ones)
{
    uint8_t wire[PACKET_MAX];
    struct pkt p;
    unsigned pad = f && strcmp(f->name, "pad") == 0 ? v & 3 : ones ? 3 : 0;
    size_t len = payload_with_pad(op, pad);

    if (len == SIZE_MAX) {
        pad = 0;
        len = payload_with_pad(op, 0);
    }
    memset(wire, ones ? 0xff : 0, sizeof(wire));
    wire[0] = (uint8_t)op;
    poke(wire, 12, 4, 0); /* TVer */
    poke(wire, wire_bit(op, f), f->bits, v);
    poke(wire, 10, 2, pad);
    memset(&p, ones ? 0 : 0xff, sizeof(p)); /* the complement of the expected values */
    cr_assert_eq(decode(wire, op_table[op].header_len + len + pad + ICRC_LEN, &p), PKT_OK, "opcode %02x", op);
    cr_expect_eq(p.opcode, op);
    cr_expect_eq(p.payload_len, len);
    cr_expect_eq(p.payload, wire + op_table[op].header_len);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *g = &fields[i];
        uint64_t expected = (g == f ? v : ones ? UINT64_MAX : 0) & mask_of(g->bits);

        if (strcmp(g->name, "pad") == 0)
            expected = pad;
        if (strcmp(g->name, "tver") == 0)
            expected = 0;
        if (has(op, g))
            cr_expect_eq(get(&p, g), expected, "opcode %02x %s while %s=%llx ones %d: %llx", op, g->name, f->name,
                         (unsigned long long)v, ones, (unsigned long long)get(&p, g));
    }
}

Test(pkt, the_ack_request_bit_can_be_set_afterwards)
{
    uint8_t plain[PKT_HEADERS_MAX] = {0}, asking[PKT_HEADERS_MAX] = {0};
    struct pkt p = {.opcode = OP_WRITE_MIDDLE, .dest_qpn = 0x123456, .psn = 0xabcdef};
    pkt_encode(&p, plain);
    p.ackreq = true;
    pkt_encode(&p, asking);
    pkt_ask_ack(plain);
    cr_expect_arr_eq(plain, asking, sizeof plain);
}

Test(pkt, every_field_is_decoded_from_its_place)
{
    EACH_OPCODE(op)
    {
        for (size_t i = 0; i < FIELDS; i++) {
            for (size_t k = 0; k < PATTERNS && has(op, &fields[i]); k++) {
                if (strcmp(fields[i].name, "tver") == 0)
                    continue;
                check_decoding(op, &fields[i], patterns[k] & mask_of(fields[i].bits), false);
                check_decoding(op, &fields[i], patterns[k] & mask_of(fields[i].bits), true);
            }
        }
    }
}

Test(pkt, fields_without_a_header_are_left_alone)
{
    uint8_t wire[PACKET_MAX] = {0};

    EACH_OPCODE(op)
    {
        struct pkt p;

        wire[0] = (uint8_t)op;
        memset(&p, 0xa5, sizeof(p));
        cr_assert_eq(decode(wire, op_table[op].header_len + payload_with_pad(op, 0) + ICRC_LEN, &p), PKT_OK);
        for (size_t i = 0; i < FIELDS; i++) {
            if (!has(op, &fields[i]))
                cr_expect_eq(get(&p, &fields[i]), 0xa5a5a5a5a5a5a5a5 & mask_of((unsigned)fields[i].size * 8), "%02x %s",
                             op, fields[i].name);
        }
    }
}

Test(pkt, every_length_of_every_opcode_with_every_pad)
{
    static uint8_t wire[PACKET_MAX];

    EACH_OPCODE(op)
    {
        for (unsigned pad = 0; pad < 4; pad++) {
            for (size_t len = 0; len <= sizeof(wire); len++) {
                size_t fixed = op_table[op].header_len + (size_t)ICRC_LEN, body = len - fixed;
                enum pkt_error expected;
                struct pkt p;

                if (len > fixed + 40 && len % 256 > fixed + 8 && len % 256 < 250)
                    continue; /* nothing happens there */
                expected = len < fixed                                        ? PKT_SHORT
                           : body % 4 || body < pad || !legal(op, body - pad) ? PKT_LENGTH
                                                                              : PKT_OK;
                wire[0] = (uint8_t)op;
                wire[1] = (uint8_t)(pad << 4);
                cr_expect_eq(decode(wire, len, &p), expected, "opcode %02x pad %u length %zu", op, pad, len);
            }
        }
    }
}

Test(pkt, version_and_opcode)
{
    uint8_t wire[PACKET_MAX] = {0};
    struct pkt p;

    for (unsigned op = 0; op < 256; op++) {
        wire[0] = (uint8_t)op;
        wire[1] = 1;
        for (size_t len = 0; len < BTH_LEN + ICRC_LEN; len++)
            cr_expect_eq(decode(wire, len, &p), PKT_SHORT, "too short to be judged");
        for (unsigned tver = 1; tver < 16; tver++) {
            wire[1] = (uint8_t)tver;
            cr_expect_eq(decode(wire, 256, &p), PKT_VERSION, "opcode %02x", op);
        }
        wire[1] = 0;
        if (!op_table[op].name)
            cr_expect_eq(decode(wire, 256, &p), PKT_OPCODE, "opcode %02x", op);
    }
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Encoding a decoded packet gives the same bytes, except for reserved bits. */
Test(pkt, garbage)
{
    uint64_t random = 1;
    unsigned decoded = 0;

    for (int round = 0; round < 300000; round++) {
        uint8_t wire[128], again[PKT_HEADERS_MAX];
        size_t len = next_random(&random) % (sizeof(wire) + 1);
        struct pkt p, q;

        for (size_t i = 0; i < len; i++)
            wire[i] = (uint8_t)next_random(&random);
        if (len > 1 && round % 2)
            wire[1] &= 0xf0;
        if (decode(wire, len, &p) != PKT_OK)
            continue;
        decoded++;
        cr_assert_eq(pkt_encode(&p, again), op_table[p.opcode].header_len);
        for (size_t i = 0; i < FIELDS; i++) {
            uint64_t v = get(&p, &fields[i]);

            if (has(p.opcode, &fields[i]))
                cr_expect_eq(v & ~mask_of(fields[i].bits), 0, "%s", fields[i].name);
        }
        memcpy(wire, again, op_table[p.opcode].header_len);
        cr_assert_eq(decode(wire, len, &q), PKT_OK);
        cr_expect_eq(p.psn, q.psn);
        cr_expect_eq(p.payload_len, q.payload_len);
    }
    cr_expect_gt(decoded, 1000, "only %u of the random packets were packets", decoded);
}

Test(pkt, pad)
{
    for (uint32_t len = 0; len < 64; len++) {
        cr_expect_lt(pkt_pad(len), 4);
        cr_expect_eq((len + pkt_pad(len)) % 4, 0);
    }
}

Test(pkt, error_names_differ)
{
    for (int a = PKT_OK; a <= PKT_LENGTH; a++) {
        for (int b = PKT_OK; b < a; b++)
            cr_expect_str_neq(pkt_error_name(a), pkt_error_name(b));
    }
    cr_expect_str_eq(pkt_error_name(PKT_OK), "ok");
    cr_expect_str_eq(pkt_error_name((enum pkt_error)99), "?");
}
