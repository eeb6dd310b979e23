// SPDX-License-Identifier: BSD-2-Clause
/* The format of probes between Pumice devices. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/pumice/probe.h"

static const struct probe full = {
    .kind = PROBE_ASK, .purpose = PROBE_CHECK, .sequence = 0xfedcba98, .size = 4096, .token = 0x0123456789abcdef};

Test(probe, a_written_probe_is_read_back)
{
    static const struct probe cases[] = {
        {PROBE_ASK, PROBE_FLOW, false, false, 0, PROBE_LEN, 0},
        {PROBE_ASK, PROBE_CHECK, false, false, UINT32_MAX, 1024, UINT64_MAX},
        {PROBE_ANSWER, PROBE_CHECK, true, false, 1, 4096, 1ull << 63},
        {PROBE_ANSWER, PROBE_FEATURES, true, true, 1, PROBE_LEN, 5},
        {PROBE_ANSWER, 200, false, true, 0x80000000, UINT32_MAX, 77},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[4096 + 8] = {0};
        struct probe got;
        memset(&got, 0xdb, sizeof got);
        memset(bytes + PROBE_LEN, 0xdb, 8);
        probe_encode(&cases[i], bytes);
        for (int k = 0; k < 8; k++) {
            cr_assert_eq(bytes[PROBE_LEN + (unsigned)k], 0xdb, "it ends where it says");
        }
        cr_assert(probe_decode(bytes, cases[i].kind == PROBE_ASK ? cases[i].size : PROBE_LEN, &got), "%zu", i);
        cr_expect(got.kind == cases[i].kind && got.purpose == cases[i].purpose);
        cr_expect_eq(got.icrc_ids, cases[i].icrc_ids);
        cr_expect_eq(got.sacks, cases[i].sacks);
        cr_expect_eq(got.sequence, cases[i].sequence);
        cr_expect_eq(got.size, cases[i].size);
        cr_expect_eq(got.token, cases[i].token);
    }
}

Test(probe, the_bytes_of_a_probe)
{
    static const uint8_t want[PROBE_LEN] = {'P', 'M', 'C', 'E', 1,    1,    1,    0,    0xfe, 0xdc, 0xba, 0x98,
                                            0,   0,   16,  0,   0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
    uint8_t bytes[PROBE_LEN];
    probe_encode(&full, bytes);
    cr_expect_eq(memcmp(bytes, want, PROBE_LEN), 0);
}

Test(probe, other_flags_are_ignored)
{
    uint8_t bytes[4096] = {0};
    struct probe got;
    probe_encode(&full, bytes);
    bytes[7] = 0xfa; /* 2 once stood for another version of them */
    cr_assert(probe_decode(bytes, 4096, &got));
    cr_expect_not(got.icrc_ids || got.sacks);
    bytes[7] = 0xff;
    cr_assert(probe_decode(bytes, 4096, &got));
    cr_expect(got.icrc_ids && got.sacks);
}

Test(probe, packets_that_are_no_probes)
{
    uint8_t bytes[4096] = {0};
    struct probe got;
    probe_encode(&full, bytes);
    cr_expect(probe_decode(bytes, 4096, &got));
    cr_expect_not(probe_decode(bytes, 4095, &got), "cut short");
    cr_expect_not(probe_decode(bytes, PROBE_LEN, &got));
    for (uint32_t len = 0; len < PROBE_LEN; len++) {
        cr_expect_not(probe_decode(bytes, len, &got));
    }
    for (unsigned i = 0; i < 6; i++) { /* magic, version, kind */
        bytes[i] ^= 0x40;
        cr_expect_not(probe_decode(bytes, 4096, &got), "byte %u", i);
        bytes[i] ^= 0x40;
    }
    bytes[5] = PROBE_ANSWER;
    cr_expect_not(probe_decode(bytes, 4096, &got), "answers have no padding");
    cr_expect(probe_decode(bytes, PROBE_LEN, &got));
    bytes[14] = 0;
    bytes[15] = PROBE_LEN - 1;
    cr_expect_not(probe_decode(bytes, PROBE_LEN, &got), "of a probe that can't be");
}
