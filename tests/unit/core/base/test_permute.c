// SPDX-License-Identifier: BSD-2-Clause
/* Secret orders of numbers: each number comes once, and the order depends on every part of the secret. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/core/base/permute.h"

static const struct permute_secret secret = {{0x0123456789abcdef, 42}};

Test(permute, each_number_comes_once)
{
    static uint8_t seen[1 << 13];
    for (unsigned bits = 1; bits <= 13; bits++) {
        memset(seen, 0, sizeof(seen));
        for (uint32_t n = 0; n < 1u << bits; n++) {
            uint32_t p = permute(&secret, 7, bits, n);
            cr_assert_lt(p, 1u << bits, "%u bits", bits);
            cr_assert_eq(seen[p]++, 0, "%u bits: %u comes twice", bits, p);
        }
    }
}

Test(permute, without_a_secret_nothing_moves)
{
    const struct permute_secret none = {{0, 0}};
    for (uint32_t n = 0; n < 1000; n++) {
        cr_assert_eq(permute(&none, n, 24, n), n);
    }
}

/* How many of 1000 consecutive numbers go to the same place as with the other secret or tweak. */
static int common(const struct permute_secret *other, uint32_t tweak)
{
    int n = 0;
    for (uint32_t i = 0; i < 1000; i++)
        n += permute(&secret, 0, 24, i) == permute(other, tweak, 24, i);
    return n;
}

Test(permute, each_bit_of_the_secret_counts)
{
    for (int bit = 0; bit < 128; bit++) {
        struct permute_secret other = secret;
        other.word[bit / 64] ^= 1ull << bit % 64;
        cr_expect_lt(common(&other, 0), 5, "bit %d", bit);
    }
    for (uint32_t tweak = 1; tweak; tweak <<= 1) {
        cr_expect_lt(common(&secret, tweak), 5, "tweak %#x", tweak);
    }
}

Test(permute, consecutive_numbers_are_far_apart)
{
    int near = 0;
    for (uint32_t n = 0; n < 10000; n++) {
        uint32_t step = permute(&secret, 0, 24, n + 1) - permute(&secret, 0, 24, n);
        near += step + 64 < 128;
    }
    cr_expect_lt(near, 10, "%d of 10000 numbers are next to their predecessor", near);
}
