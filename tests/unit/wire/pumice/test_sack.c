// SPDX-License-Identifier: BSD-2-Clause
/* The format of selective acknowledgements. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/pumice/sack.h"

static const struct sack full = {.requester = 0x123456,
                                 .responder = 0xfedcba,
                                 .expected = 0xfffffe,
                                 .end = 0x10,
                                 .newest = 0x13,
                                 .twice = 0x89abcdef,
                                 .gaps = 2,
                                 .gap = {{0xfffffe, 0x1}, {0x5, 0xc}}};

Test(sack, a_written_sack_is_read_back)
{
    uint8_t bytes[SACK_LEN_MOST + 8];
    struct sack got;
    memset(bytes, 0xdb, sizeof bytes);
    memset(&got, 0xdb, sizeof got);
    sack_encode(&full, bytes);
    cr_assert_eq(sack_len(&full), 40);
    cr_expect_eq(bytes[40], 0xdb, "it ends where it says");
    cr_assert(sack_decode(bytes, 40, &got));
    cr_expect(got.requester == full.requester && got.responder == full.responder);
    cr_expect(got.expected == full.expected && got.end == full.end && got.newest == full.newest);
    cr_expect_eq(got.twice, full.twice);
    cr_assert_eq(got.gaps, 2);
    cr_expect_eq(memcmp(got.gap, full.gap, 2 * sizeof full.gap[0]), 0);
}

Test(sack, the_bytes_of_a_sack)
{
    static const uint8_t want[] = {'P',  'M',  'C',  'S',  2,    2,    0, 3,    0,    0x12, 0x34, 0x56, 0,    0xfe,
                                   0xdc, 0xba, 0x00, 0xff, 0xff, 0xfe, 0, 0x00, 0x00, 0x10, 0x89, 0xab, 0xcd, 0xef,
                                   0,    0,    0,    0,    0,    3,    0, 0,    7,    0,    0,    7};
    uint8_t bytes[sizeof want];
    sack_encode(&full, bytes);
    cr_expect_eq(memcmp(bytes, want, sizeof want), 0);
}

Test(sack, the_newest_packet_may_be_far_beyond_the_end)
{
    uint8_t bytes[SACK_LEN_MOST];
    struct sack s = full, got;
    s.newest = s.end + 0xffff;
    sack_encode(&s, bytes);
    cr_assert(sack_decode(bytes, 40, &got));
    cr_expect_eq(got.newest, s.newest);
    s.newest++;
    sack_encode(&s, bytes);
    cr_assert(sack_decode(bytes, 40, &got));
    cr_expect_eq(got.newest, s.newest - 1, "there is no room for more");
    s.newest = s.end;
    sack_encode(&s, bytes);
    cr_assert(sack_decode(bytes, 40, &got));
    cr_expect_eq(got.newest, s.end);
}

Test(sack, the_longest_one_fits_the_smallest_mtu)
{
    uint8_t bytes[SACK_LEN_MOST];
    struct sack s = {.requester = 1,
                     .responder = 2,
                     .expected = 0,
                     .end = 4 * SACK_GAPS_MOST,
                     .newest = 4 * SACK_GAPS_MOST,
                     .gaps = SACK_GAPS_MOST},
                got;
    for (uint32_t i = 0; i < SACK_GAPS_MOST; i++)
        s.gap[i] = (struct sack_gap){4 * i, 4 * i + 3};
    cr_assert_leq(sack_len(&s), 256);
    sack_encode(&s, bytes);
    cr_expect(sack_decode(bytes, sack_len(&s), &got));
    bytes[5]++;
    cr_expect_not(sack_decode(bytes, sack_len(&s) + 6, &got), "too many gaps");
}

Test(sack, packets_that_are_no_sacks)
{
    uint8_t bytes[SACK_LEN_MOST] = {0};
    struct sack got;
    sack_encode(&full, bytes);
    for (uint32_t len = 0; len < 40; len++)
        cr_expect_not(sack_decode(bytes, len, &got), "cut short: %u", len);
    cr_expect_not(sack_decode(bytes, 37, &got), "too long");
    for (unsigned i = 0; i < 6; i++) { /* magic, version, number of gaps */
        bytes[i] ^= 0x40;
        cr_expect_not(sack_decode(bytes, 40, &got), "byte %u", i);
        bytes[i] ^= 0x40;
    }
    for (unsigned i = 8; i < 24; i += 4) { /* numbers of more than 24 bits */
        bytes[i] = 1;
        cr_expect_not(sack_decode(bytes, 40, &got), "byte %u", i);
        bytes[i] = 0;
    }
}

Test(sack, the_sack_in_a_packet)
{
    uint8_t bytes[12 + 8 + 40 + 4] = {0x64, 0, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 0, 0x80, 0x50, 0x4d, 0x43, 0, 0, 0, 2};
    struct sack got;
    sack_encode(&full, bytes + 20);
    cr_assert(sack_of_packet(bytes, sizeof bytes, &got));
    cr_expect_eq(got.requester, full.requester);
    cr_expect(sack_of_packet(bytes, sizeof bytes - 4, &got), "without the ICRC");
    for (size_t len = 0; len < sizeof bytes - 4; len++)
        cr_expect_not(sack_of_packet(bytes, len, &got), "cut short: %zu", len);
    for (unsigned i = 0; i < 20; i++) { /* opcode, destination QP, Q_Key */
        bool matters = i == 0 || (i >= 5 && i < 8) || (i >= 12 && i < 16);
        bytes[i] ^= 0x11;
        cr_expect_neq(sack_of_packet(bytes, sizeof bytes, &got), matters, "byte %u", i);
        bytes[i] ^= 0x11;
    }
}

static bool is_valid(uint32_t end, uint32_t start1, uint32_t end1, uint32_t start2, uint32_t end2)
{
    struct sack s = {.expected = 100, .end = end, .newest = end, .gaps = 2, .gap = {{start1, end1}, {start2, end2}}},
                got;
    uint8_t bytes[SACK_LEN_MOST];
    sack_encode(&s, bytes);
    return sack_decode(bytes, sack_len(&s), &got);
}

Test(sack, gaps_are_in_order_and_before_the_end)
{
    cr_expect(is_valid(110, 100, 103, 105, 109));
    cr_expect_not(is_valid(110, 101, 103, 105, 109), "the expected packet is missing");
    cr_expect_not(is_valid(110, 100, 100, 105, 109), "an empty gap");
    cr_expect_not(is_valid(110, 100, 103, 105, 105));
    cr_expect_not(is_valid(110, 100, 103, 103, 109), "gaps that touch");
    cr_expect_not(is_valid(110, 100, 103, 102, 109), "gaps that overlap");
    cr_expect(is_valid(110, 100, 103, 105, 110), "the SACK may have no room for what follows");
    cr_expect_not(is_valid(110, 100, 103, 105, 111), "beyond the end");
    cr_expect_not(is_valid(110, 100, 103, 110, 111));
    cr_expect_not(is_valid(100, 100, 103, 105, 109), "nothing is described");
    cr_expect_not(is_valid(100 + 0x800000, 100, 103, 105, 109), "too far to be compared");
    cr_expect_not(is_valid(99, 100, 103, 105, 109));
}
