// SPDX-License-Identifier: BSD-2-Clause
/* Fingerprints of send buffers: each change is found, and where it is. */
#include "src/check/objects/fingerprint.h"

#include <criterion/criterion.h>
#include <string.h>

static uint8_t memory[100000];

/* Changes one byte of a gather list of two pieces. Returns whether the change was found at its place. */
static bool finds(uint32_t first, uint32_t second, uint64_t at)
{
    const struct ibv_sge list[2] = {{(uintptr_t)memory, first, 0}, {(uintptr_t)memory + 60000, second, 0}};
    uint8_t *byte = at < first ? memory + at : memory + 60000 + (at - first);
    uint64_t from = 0, to = 0;
    struct fingerprint f;

    fingerprint_take(&f, list, 2);
    bool same = fingerprint_matches(&f, list, 2, &from, &to);
    *byte ^= 0x40;
    bool changed = !fingerprint_matches(&f, list, 2, &from, &to);
    *byte ^= 0x40;
    same = same && fingerprint_matches(&f, list, 2, &from, &to);
    fingerprint_drop(&f);
    return same && changed && from <= at && at < to && to <= (uint64_t)first + second;
}

Test(check_fingerprint, each_byte_of_a_short_buffer)
{
    for (uint64_t at = 0; at < 300; at++)
        cr_assert(finds(100, 200, at), "byte %lu", at);
    cr_expect(finds(1, FINGERPRINT_COPY - 1, FINGERPRINT_COPY - 1));
    cr_expect(finds(0, 1, 0));
}

Test(check_fingerprint, long_buffers)
{
    static const uint32_t lengths[] = {4097, 4160, 10000, 30001, 40000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (uint64_t at = 0; at < lengths[i]; at += 61)
            cr_assert(finds(lengths[i] / 3, lengths[i] - lengths[i] / 3, at), "byte %lu of %u", at, lengths[i]);
        cr_expect(finds(lengths[i] - 1, 1, lengths[i] - 1));
    }
}

Test(check_fingerprint, an_exact_range_in_short_buffers)
{
    const struct ibv_sge sge = {(uintptr_t)memory, 1000, 0};
    uint64_t from, to;
    struct fingerprint f;

    fingerprint_take(&f, &sge, 1);
    memory[10] = memory[20] = 1;
    cr_assert_not(fingerprint_matches(&f, &sge, 1, &from, &to));
    cr_expect(from == 10 && to == 21, "%lu to %lu", from, to);
    fingerprint_drop(&f);
}

Test(check_fingerprint, nothing_to_send)
{
    const struct ibv_sge empty = {0, 0, 0};
    uint64_t from, to;
    struct fingerprint f;

    fingerprint_take(&f, NULL, 0);
    cr_expect(fingerprint_matches(&f, NULL, 0, &from, &to));
    fingerprint_drop(&f);
    fingerprint_take(&f, &empty, 1);
    cr_expect(fingerprint_matches(&f, &empty, 1, &from, &to));
    fingerprint_drop(&f);
}
