// SPDX-License-Identifier: BSD-2-Clause
/* RNR timer codes and AETH syndromes, compared with the rules behind their tables. */
#include <criterion/criterion.h>

#include "wire/syndrome.h"

Test(syndrome, timer_grows_with_the_code)
{
    for (uint8_t code = 2; code < 32; code++)
        cr_expect_gt(rnr_timer_ns(code), rnr_timer_ns(code - 1), "code %u", code);
    cr_expect_gt(rnr_timer_ns(0), rnr_timer_ns(31), "0 stands behind 31");
}

Test(syndrome, timer_doubles_every_second_code)
{
    for (uint8_t code = 2; code < 30; code++)
        cr_expect_eq(rnr_timer_ns(code + 2), 2 * rnr_timer_ns(code), "code %u", code);
    cr_expect_eq(rnr_timer_ns(0), 2 * rnr_timer_ns(30), "as if it were 32");
}

Test(syndrome, timer_fixed_points)
{
    cr_expect_eq(rnr_timer_ns(1), 10000, "0.01 ms");
    cr_expect_eq(rnr_timer_ns(2), 20000);
    cr_expect_eq(rnr_timer_ns(3), 30000);
    cr_expect_eq(rnr_timer_ns(0), 655360000, "655.36 ms");
    cr_expect_eq(rnr_timer_ns(31), 491520000, "491.52 ms");
}

Test(syndrome, timer_sum)
{
    /* Two geometric series and code 1: 2 and 3 hundredths of a ms, each doubled 15 times (codes 2 to 30 and 0; 3 to
     * 31). */
    uint64_t sum = 0;

    for (uint8_t code = 0; code < 32; code++)
        sum += rnr_timer_ns(code);
    cr_expect_eq(sum, 10000u * (1 + 2u * (0xffff) + 3u * (0x7fff)));
}

Test(syndrome, larger_codes_are_masked)
{
    for (unsigned code = 0; code < 256; code++)
        cr_expect_eq(rnr_timer_ns((uint8_t)code), rnr_timer_ns(code & 31), "code %u", code);
}

Test(syndrome, kinds_are_apart)
{
    static const unsigned naks[] = {NAK_PSN_SEQUENCE, NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, NAK_REMOTE_OPERATION,
                                    NAK_INVALID_RD};

    for (unsigned i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
        cr_expect_eq(naks[i] & AETH_KIND_MASK, AETH_NAK);
        cr_expect_eq(naks[i] & AETH_VALUE_MASK, i);
    }
    cr_expect_eq(AETH_KIND_MASK | AETH_VALUE_MASK, 0xff);
    cr_expect_eq(AETH_KIND_MASK & AETH_VALUE_MASK, 0);
    cr_expect_eq(AETH_NO_CREDITS & AETH_KIND_MASK, AETH_ACK);
    cr_expect_eq(AETH_ACK | AETH_RNR | AETH_RESERVED | AETH_NAK, 0x60);
}

Test(syndrome, credits_double_every_second_code)
{
    for (uint8_t code = 0; code < 5; code++)
        cr_expect_eq(aeth_credits(code), code);
    cr_expect_eq(aeth_credits(5), 6u);
    for (uint8_t code = 4; code + 2 < AETH_NO_CREDITS; code++)
        cr_expect_eq(aeth_credits(code + 2), 2 * aeth_credits(code), "code %u", code);
    cr_expect_eq(aeth_credits(AETH_NO_CREDITS - 1), AETH_CREDITS_MOST);
    cr_expect_eq(aeth_credits(AETH_NO_CREDITS), 0u);
}

Test(syndrome, a_credit_code_never_promises_too_much)
{
    for (uint32_t n = 0; n < 40000; n++) {
        uint8_t code = aeth_credit_code(n);
        cr_assert_lt(code, AETH_NO_CREDITS);
        cr_assert_leq(aeth_credits(code), n, "%u", n);
        cr_assert(code == AETH_NO_CREDITS - 1 || aeth_credits(code + 1) > n, "%u", n);
    }
}
