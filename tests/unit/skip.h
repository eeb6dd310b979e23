// SPDX-License-Identifier: BSD-2-Clause
/* Skips a unit test that can't run here. Criterion's report does not name skipped tests, so this prints the line that
 * tests/run.sh counts. */
#ifndef PUMICE_TESTS_UNIT_SKIP_H
#define PUMICE_TESTS_UNIT_SKIP_H

#include <criterion/criterion.h>
#include <stdio.h>

#define SKIP_TEST(name, why)                                                                                           \
    do {                                                                                                               \
        fprintf(stderr, "# skipped: %s: %s\n", (name), (why));                                                         \
        cr_skip_test("%s", (why));                                                                                     \
    } while (0)

#endif
