// SPDX-License-Identifier: BSD-2-Clause
/* Tells whether the machine is crowded: many more threads are runnable than there are processors. */
#ifndef PUMICE_SRC_VERBS_SHIM_CROWD_H
#define PUMICE_SRC_VERBS_SHIM_CROWD_H

#include <stdbool.h>

/* So many runnable threads for each processor are a crowd. */
#define VB_CROWD 4u

/* At this moment, by /proc/loadavg. False if it can't be read. It takes some microseconds, so it is not for the path of
 * messages. */
bool vb_machine_is_crowded(void);

#endif
