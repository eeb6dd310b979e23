// SPDX-License-Identifier: BSD-2-Clause
/* For suites about one matching list, which is new for each test: TestSuite(name, .init = setup, .fini = teardown). */
#ifndef PUMICE_TESTS_UNIT_CORE_TM_SUITE_H
#define PUMICE_TESTS_UNIT_CORE_TM_SUITE_H

#include <criterion/criterion.h>

#include "tests/unit/core/tm_fixture.h"

static struct tag_list *tm;

static inline void setup(void)
{
    tm = tm_make(TM_MAX_TAGS, TM_PROFILE_GENEROUS);
    cr_assert_not_null(tm);
}
static inline void teardown(void)
{
    free(tm);
}

static inline struct tm_decision decide(const struct tm_msg *m)
{
    struct tm_decision d;
    tm_decide(tm, m, &d);
    return d;
}

#endif
