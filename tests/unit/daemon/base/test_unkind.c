// SPDX-License-Identifier: BSD-2-Clause
/* Unkind devices (daemon/base/unkind.h): the names of the kinds, and decisions that follow from the seed. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/base/unkind.h"

static struct unkind a, b;

Test(unkind, names)
{
    char text[UNKIND_TEXT_MAX], again[UNKIND_TEXT_MAX], expected[2 * UNKIND_TEXT_MAX];
    uint32_t kinds = 77, same;

    cr_assert_eq(unkind_parse("off", &kinds), 0);
    cr_assert_eq(kinds, 0);
    unkind_text(0, text);
    cr_assert_str_eq(text, "off");
    cr_assert_eq(unkind_parse("all", &kinds), 0);
    cr_assert_eq(kinds, UNKIND_ALL);
    unkind_text(UNKIND_ALL, text);
    cr_assert_eq(unkind_parse(text, &kinds), 0, "%s", text);
    cr_assert_eq(kinds, UNKIND_ALL);
    unkind_expected(expected, sizeof(expected));
    for (unsigned i = 0; i < UNKIND_NUMBERS; i++) {
        unkind_text(1u << i, text);
        cr_assert_eq(unkind_parse(text, &same), 0);
        cr_assert_eq(same, 1u << i, "%s", text);
        cr_assert(strstr(expected, text), "%s", expected);
        unkind_text(same, again);
        cr_assert_str_eq(text, again);
    }
    static const char *const bad[] = {"",
                                      ",",
                                      "placement,",
                                      ",placement",
                                      "placment",
                                      "off,placement",
                                      "placement,off",
                                      "ALL",
                                      "placement placement",
                                      "al"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kinds = 77;
        cr_assert_neq(unkind_parse(bad[i], &kinds), 0, "\"%s\"", bad[i]);
        cr_assert_eq(kinds, 0);
    }
}

Test(unkind, the_seed_decides)
{
    unsigned differ = 0, ones = 0;

    unkind_init(&a, UNKIND_ALL, 7);
    unkind_init(&b, UNKIND_ALL, 7);
    cr_assert(unkind_is(&a, UNKIND_PLACEMENT));
    for (unsigned i = 0; i < 1000; i++)
        cr_assert_eq(unkind_next(&a, UNKIND_PLACEMENT, 17 + i % 3), unkind_next(&b, UNKIND_PLACEMENT, 17 + i % 3));
    /* Other objects have decisions of their own: the order between objects does not matter. */
    unkind_init(&a, UNKIND_ALL, 7);
    unkind_init(&b, UNKIND_ALL, 7);
    for (unsigned i = 0; i < 100; i++)
        unkind_next(&b, UNKIND_PLACEMENT, 18);
    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(unkind_next(&a, UNKIND_PLACEMENT, 17), unkind_next(&b, UNKIND_PLACEMENT, 17));
    unkind_init(&b, UNKIND_ALL, 8);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t x = unkind_next(&a, UNKIND_PLACEMENT, 17);

        differ += x != unkind_next(&b, UNKIND_PLACEMENT, 17);
        ones += x & 1;
    }
    cr_assert_eq(differ, 1000);
    cr_assert(ones > 400 && ones < 600, "%u", ones);
    unkind_init(&a, 0, 7);
    cr_assert(!unkind_is(&a, UNKIND_PLACEMENT));
}
