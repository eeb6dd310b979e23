// SPDX-License-Identifier: BSD-2-Clause
/* pumice status --interval: what counters grow by. */
#ifndef PUMICE_SRC_CMD_INSPECT_INTERVAL_H
#define PUMICE_SRC_CMD_INSPECT_INTERVAL_H

#include <stdbool.h>

#include "src/cmd/common/target_options.h"

/* Every `seconds`, `number` times (0: until Ctrl-C or no daemon answers), prints what each counter of each device and queue pair
 * of these daemons has grown by since the time before; those that have not are left out. json: one object in a line each time.
 * The exit code. */
int interval_show(const struct targets *t, double seconds, long number, bool json);

#endif
