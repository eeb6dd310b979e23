// SPDX-License-Identifier: BSD-2-Clause
/* The daemon whose calls fail, as seen from outside: its counts of objects, its descriptors, its memory. */
#ifndef PUMICE_TESTS_FAILING_DAEMON_STATE_H
#define PUMICE_TESTS_FAILING_DAEMON_STATE_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon_state {
    unsigned objects; /* sessions, queue pairs and so on, of all devices */
    unsigned descriptors; /* open files */
    unsigned mappings; /* lines of /proc/PID/maps */
};

/* False: the daemon does not answer within five seconds. */
bool daemon_state_read(const char *socket, pid_t pid, struct daemon_state *out);

#endif
