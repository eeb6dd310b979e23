// SPDX-License-Identifier: BSD-2-Clause
/* The counters of a port as files: /sys/class/infiniband/DEVICE/ports/1/counters/NAME, and hw_counters.
 *
 * The kernel makes the text of such a file at each read from its beginning. So a program that keeps the file open
 * (perftest's -W) sees new values. Here the daemon has the values. open returns a memory file of this process with the
 * text; its name says which counter it is. A read from its beginning asks the daemon first. So a counter costs the
 * daemon nothing until it is read. This module exports read, pread and their variants for that. */
#ifndef PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H
#define PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H

#include <stdbool.h>

/* Has path that form? It doesn't say whether the daemon has such a counter. */
bool vb_counter_is(const char *path);
/* Opens the counter of that path, as open does: returns a descriptor, or -1 with errno. EACCES: flags ask for more than
 * reading. ENODEV: there is no such counter, or no daemon. */
int vb_counter_open(const char *path, int flags);

#endif
