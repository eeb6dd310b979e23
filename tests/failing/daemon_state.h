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
    unsigned threads;
};

/* Asks for the status, as a program does. 0: it came. Or the error of the reply; EPIPE: the daemon has closed the
 * connection; ETIMEDOUT: it does not answer within five seconds. */
int daemon_state_ask(const char *socket);
/* False: the daemon does not answer within five seconds. */
bool daemon_state_read(const char *socket, pid_t pid, struct daemon_state *out);

#endif
