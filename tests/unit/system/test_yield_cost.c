// SPDX-License-Identifier: BSD-2-Clause
/* Tests how the cost of a yield is measured, and how thresholds follow it (system/yield_cost.h). The times are made up. */
#include "system/yield_cost.h"

#include <criterion/criterion.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static struct yield_cost cost;

static void yields(unsigned n, uint64_t ns)
{
    while (n--)
        yield_cost_note(&cost, ns);
}

static uint64_t scaled(void)
{
    return yield_cost_scaled(yield_cost_ns(&cost), 10 * US, 500 * US);
}

Test(yield_cost, usual_machines_are_equally_fast)
{
    cr_expect_eq(scaled(), 10 * US, "before the first yield");
    yields(YIELD_COST_ENOUGH, 300);
    cr_expect_eq(scaled(), 10 * US);
    yields(1, 1);
    cr_expect_eq(scaled(), 10 * US);
}

Test(yield_cost, the_threshold_follows_the_cheapest_yield)
{
    yields(YIELD_COST_ENOUGH, 70 * US);
    cr_expect_eq(scaled(), 500 * US, "the largest that makes sense");
    yields(1, 12 * US);
    cr_expect_eq(scaled(), 120 * US);
    yields(1000, 40 * US);
    cr_expect_eq(scaled(), 120 * US, "other threads ran meanwhile");
    yields(1, 300);
    cr_expect_eq(scaled(), 10 * US);
}

Test(yield_cost, a_few_yields_may_all_have_waited_for_others)
{
    yields(YIELD_COST_ENOUGH - 1, 12 * US);
    cr_expect_eq(scaled(), 10 * US);
    yields(1, 12 * US);
    cr_expect_eq(scaled(), 120 * US);
}

Test(yield_cost, a_yield_of_a_time_slice_says_nothing)
{
    yields(1000, YIELD_COST_LIMIT_NS + 1);
    cr_expect_eq(scaled(), 10 * US);
    yields(YIELD_COST_ENOUGH, 12 * US);
    cr_expect_eq(scaled(), 120 * US);
}
