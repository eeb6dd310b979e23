// SPDX-License-Identifier: BSD-2-Clause
/* src/cmd: delta debugging (replay/ddmin.h). */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/cmd/replay/ddmin.h"

#define ITEMS 1000

/* Fails if all needed items are there. */
struct rule {
    size_t needed[4];
    size_t n;
    unsigned tests, stop_after; /* 0: never */
    size_t only_used_below; /* all other items but the needed ones are unused; 0: no item is known to be unused */
};

static bool is_needed(const struct rule *r, size_t item)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->needed[i] == item)
            return true;
    return false;
}

static enum ddmin_result test_rule(void *ctx, const size_t *item, size_t n, bool *unused)
{
    struct rule *r = ctx;
    size_t found = 0;

    if (r->stop_after && r->tests == r->stop_after)
        return DDMIN_STOP;
    r->tests++;
    for (size_t i = 0; i < n; i++) {
        cr_assert(i == 0 || item[i - 1] < item[i], "in ascending order");
        cr_assert_not(unused[i]);
        found += is_needed(r, item[i]);
        unused[i] = r->only_used_below && item[i] >= r->only_used_below && !is_needed(r, item[i]);
    }
    return found == r->n ? DDMIN_FAILS : DDMIN_PASSES;
}

static size_t run(struct rule *r, size_t *item, size_t n)
{
    for (size_t i = 0; i < n; i++)
        item[i] = i;
    return ddmin(item, n, test_rule, r);
}

Test(ddmin, finds_what_is_needed)
{
    static const struct rule rules[] = {
        {.needed = {0}, .n = 1},           {.needed = {999}, .n = 1},
        {.needed = {500}, .n = 1},         {.needed = {3, 997}, .n = 2},
        {.needed = {0, 1}, .n = 2},        {.needed = {499, 500}, .n = 2},
        {.needed = {1, 500, 998}, .n = 3}, {.needed = {10, 20, 30, 40}, .n = 4},
    };
    size_t item[ITEMS];

    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct rule r = rules[i];
        size_t n = run(&r, item, ITEMS);

        cr_assert_eq(n, r.n, "rule %u: %zu items", i, n);
        for (size_t j = 0; j < n; j++)
            cr_expect_eq(item[j], r.needed[j]);
        cr_expect(r.tests < 400, "rule %u: %u tests", i, r.tests);
    }
}

Test(ddmin, small_sets)
{
    size_t item[3];

    for (size_t n = 0; n <= 3; n++) {
        struct rule all = {.needed = {0, 1, 2}, .n = n};

        cr_expect_eq(run(&all, item, n), n, "%zu of %zu", n, n);
    }
    struct rule one = {.needed = {1}, .n = 1};
    cr_expect_eq(run(&one, item, 3), 1);
    cr_expect_eq(item[0], 1);
}

Test(ddmin, unused_items_need_no_test_of_their_own)
{
    struct rule known = {.needed = {3, 997}, .n = 2, .only_used_below = 4};
    size_t item[ITEMS];

    cr_expect_eq(run(&known, item, ITEMS), 2);
    cr_expect(known.tests < 40, "%u tests", known.tests);
}

Test(ddmin, stops_with_what_is_known)
{
    struct rule r = {.needed = {3}, .n = 1, .stop_after = 4};
    size_t item[ITEMS];

    size_t n = run(&r, item, ITEMS);
    cr_expect_eq(r.tests, 4);
    cr_expect(n > 1 && n < ITEMS, "%zu items", n);
    cr_expect_eq(item[n > 3 ? 3 : 0], 3);
}
