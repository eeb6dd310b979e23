// SPDX-License-Identifier: BSD-2-Clause
/* The counters of a port, as programs read them: /sys/class/infiniband/DEVICE/ports/1/counters/NAME, and hw_counters.
 *
 * The kernel composes such a file's text whenever it is read from its beginning, so that a program which keeps it open (perftest's -W)
 * sees what has happened meanwhile. Here the daemon has the number, and nobody keeps files up to date: what open gives is a memory file
 * of this process with the text, and its name says which counter it is. A read from its beginning asks the daemon first, so counting
 * costs the daemon nothing. */
#ifndef PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H
#define PUMICE_SRC_VERBS_SHIM_COUNTER_FILES_H

#include <stdbool.h>

/* Whether path is of that form; if there is such a counter the daemon knows. */
bool vb_counter_is(const char *path);
/* Opens it, as open does. EACCES: not for reading only; ENODEV: the daemon is gone. */
int vb_counter_open(const char *path, int flags);

#endif
