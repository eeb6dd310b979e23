// SPDX-License-Identifier: BSD-2-Clause
/* pumice status --interval: prints the growth of counters at regular times. */
#ifndef PUMICE_SRC_CMD_INSPECT_INTERVAL_H
#define PUMICE_SRC_CMD_INSPECT_INTERVAL_H

#include <stdbool.h>

#include "src/cmd/common/target_options.h"

/* Every `seconds`, prints the growth of each counter of each device and queue pair of these daemons since the last
 * time. Leaves out counters that have not grown. Ends after `number` times (0: no limit), at Ctrl-C, or when no daemon
 * answers. With json it prints one object per line. Returns the exit code. */
int interval_print(const struct targets *t, double seconds, long number, bool json);

#endif
