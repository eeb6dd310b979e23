// SPDX-License-Identifier: BSD-2-Clause
/* Prints the memory windows of running programs that can be bound to layouts. The daemons send the windows as JSON. */
#ifndef PUMICE_SRC_CMD_INSPECT_LAYOUT_LIVE_H
#define PUMICE_SRC_CMD_INSPECT_LAYOUT_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "pumice/abi.h"
#include "src/cmd/common/target_options.h"

struct layout_live {
    uint32_t key; /* any key of the window; 0: list all windows */
    uint64_t off, len; /* the bytes to explain; len UINT64_MAX: to the end */
    uint32_t most; /* pieces to print; at most PM_LAYOUT_PIECES */
    bool json;
};
/* Requests the windows from the daemons and prints them. Returns the exit code. It is 1 if a daemon does not answer,
 * there is no such window, or the window is not bound. It is also 1 if the window does not have these bytes (any more).
 * Otherwise it is 0. */
int layout_live(const struct layout_live *l, const struct target_options *target);

#endif
