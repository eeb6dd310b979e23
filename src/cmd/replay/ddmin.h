// SPDX-License-Identifier: BSD-2-Clause
/* Delta debugging (ddmin: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002): finds
 * a small part of a set that still has a property. Of the result, no single item can be left out. */
#ifndef PUMICE_SRC_CMD_REPLAY_DDMIN_H
#define PUMICE_SRC_CMD_REPLAY_DDMIN_H

#include <stdbool.h>
#include <stddef.h>

enum ddmin_result {
    DDMIN_PASSES,
    DDMIN_FAILS, /* the items have the property */
    DDMIN_STOP, /* no more tests */
};

/* Tests n items, in ascending order. unused[i] is false at first. If the items fail, the test may set unused[i] to true:
 * item i was not used in this test, so it is left out without another test. */
typedef enum ddmin_result (*ddmin_test)(void *ctx, const size_t *item, size_t n, bool *unused);

/* item[0 … n) are known to fail. Reduces them, in place, and returns how many are left. Stops early, with what is known so
 * far, if a test says so, or if there is no memory. */
size_t ddmin(size_t *item, size_t n, ddmin_test test, void *ctx);

#endif
