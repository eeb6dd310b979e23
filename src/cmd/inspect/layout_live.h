// SPDX-License-Identifier: BSD-2-Clause
/* Prints the memory windows of running programs that can be bound to layouts. The daemons provide them. */
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
/* Requests the windows from the daemons and prints them. Returns the exit code: 0; or 1 if there is no such window, it
 * is not bound, it does not (or no longer) have these bytes, or a daemon did not answer. */
int layout_live(const struct layout_live *l, const struct target_options *target);

#endif
