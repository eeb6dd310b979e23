// SPDX-License-Identifier: BSD-2-Clause
#include "wire/syndrome.h"

#define US(n) ((n)*1000u)

/* IBA 9.7.5.2.8, table 46: codes 0 ... 31. The specification gives them in ms with two decimals. */
/* clang-format off */
static const uint32_t rnr_ns[32] = {
    US(655360), US(    10), US(    20), US(    30), US(    40), US(    60), US(    80), US(   120),
    US(   160), US(   240), US(   320), US(   480), US(   640), US(   960), US(  1280), US(  1920),
    US(  2560), US(  3840), US(  5120), US(  7680), US( 10240), US( 15360), US( 20480), US( 30720),
    US( 40960), US( 61440), US( 81920), US(122880), US(163840), US(245760), US(327680), US(491520),
};
/* clang-format on */

uint64_t rnr_timer_ns(uint8_t code)
{
    return rnr_ns[code & AETH_VALUE_MASK];
}

/* IBA 9.7.7.2: codes 0 ... 30. */
/* clang-format off */
static const uint16_t credits[AETH_NO_CREDITS] = {
       0,    1,    2,    3,    4,    6,    8,   12,   16,    24,    32,    48,    64,    96,    128, 192,
     256,  384,  512,  768, 1024, 1536, 2048, 3072, 4096,  6144,  8192, 12288, 16384, 24576, AETH_CREDITS_MOST,
};
/* clang-format on */

uint32_t aeth_credits(uint8_t code)
{
    code &= AETH_VALUE_MASK;
    return code == AETH_NO_CREDITS ? 0 : credits[code];
}

uint8_t aeth_credit_code(uint32_t n)
{
    uint8_t code = AETH_NO_CREDITS - 1;
    while (credits[code] > n)
        code--;
    return code;
}
