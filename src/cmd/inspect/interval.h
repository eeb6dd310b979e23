// SPDX-License-Identifier: BSD-2-Clause
/* pumice status --interval: prints how much counters have grown. */
#ifndef PUMICE_SRC_CMD_INSPECT_INTERVAL_H
#define PUMICE_SRC_CMD_INSPECT_INTERVAL_H

#include <stdbool.h>

#include "src/cmd/common/target_options.h"

/* Prints, every `seconds`, how much each counter of each device and queue pair of these daemons has grown since the
 * last time. Counters that have not grown are left out. Ends after `number` times; with 0 it ends at Ctrl-C, or when no
 * daemon answers. With json it prints one object per line. Returns the exit code. */
int interval_print(const struct targets *t, double seconds, long number, bool json);

#endif
