// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts that running programs have, as their daemons know them. */
#ifndef PUMICE_SRC_CMD_INSPECT_LAYOUT_LIVE_H
#define PUMICE_SRC_CMD_INSPECT_LAYOUT_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "pumice/abi.h"
#include "src/cmd/common/target_options.h"

struct layout_live {
    uint32_t key; /* any key of the window; 0: list all that can be bound to layouts */
    uint64_t off, len; /* the bytes to explain; len UINT64_MAX: to the end */
    uint32_t most; /* pieces to show, at most PM_LAYOUT_PIECES */
    bool json;
};
/* Asks the daemons and prints. The exit code: 0; 1 if there is no such window, it is not bound, or has no such bytes (any more), or
 * a daemon did not answer. */
int layout_live(const struct layout_live *l, const struct target_options *which);

#endif
