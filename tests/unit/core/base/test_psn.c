// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>

#include "daemon/core/base/psn.h"

Test(psn, add_wraps_at_24_bits)
{
    cr_assert_eq(psn_add(0xffffff, 1), 0);
    cr_assert_eq(psn_add(0xfffff0, 0x20), 0x10);
    cr_assert_eq(psn_add(0, PSN_MASK), 0xffffff, "adding 2^24 - 1 steps back by one");
}

Test(psn, diff_is_signed_and_antisymmetric_across_the_wrap)
{
    static const uint32_t starts[] = {0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};
    static const uint32_t steps[] = {0, 1, 2, 4096, 0x3fffff, 0x7fffff};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
            uint32_t to = psn_add(starts[i], steps[j]);
            cr_assert_eq(psn_diff(to, starts[i]), (int32_t)steps[j]);
            cr_assert_eq(psn_diff(starts[i], to), -(int32_t)steps[j]);
        }
}

Test(psn, count_of_packets)
{
    cr_assert_eq(psn_count(0, 4096), 1, "an empty message is a packet");
    cr_assert_eq(psn_count(1, 4096), 1);
    cr_assert_eq(psn_count(4096, 4096), 1);
    cr_assert_eq(psn_count(4097, 4096), 2);
    cr_assert_eq(psn_count(1u << 31, 256), 1u << 23);
}
