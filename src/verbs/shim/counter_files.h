// SPDX-License-Identifier: BSD-2-Clause
/* The counters of a port as files: /sys/class/infiniband/DEVICE/ports/1/counters/NAME, and hw_counters.
 *
 * The kernel makes the text of such a file at each read from its beginning. So a program that keeps the file open
 * (perftest's -W) sees new values. In Pumice the daemon has the values. open returns a memory file of this process with
 * the text. The name of the memory file says which counter it is. A read from the beginning of the file asks the daemon
 * first. So a counter costs the daemon nothing until a program reads it. For that, this module exports read, pread and
 * their variants. */
#ifndef PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H
#define PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H

#include <stdbool.h>

/* Does path have that form? The daemon may still have no such counter. */
bool vb_counter_is(const char *path);
/* Opens the counter of that path, as open does: returns a descriptor, or -1 with errno. EACCES: flags ask for more than
 * reading. ENODEV: there is no such counter, or no daemon. */
int vb_counter_open(const char *path, int flags);

#endif
