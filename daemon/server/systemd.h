// SPDX-License-Identifier: BSD-2-Clause
/* Takes the listening socket that a service manager passes to the daemon (sd_listen_fds(3)). If the daemon can't start,
 * refuses the clients that wait at it. Messages to the service manager, such as "READY=1", are sent elsewhere: main.c
 * calls sd_notify(3) of libsystemd. */
#ifndef PUMICE_DAEMON_SERVER_SYSTEMD_H
#define PUMICE_DAEMON_SERVER_SYSTEMD_H

#include "daemon/base/error_text.h"

/* Takes the control socket that the service manager passed. Returns its descriptor, close-on-exec and non-blocking, and
 * writes its path to path[0 ... 108).
 * -ENOENT: nothing was passed. -EINVAL, with why: something else was passed, or more than one socket.
 * This removes the variables from the environment, so a second call finds nothing. */
int systemd_socket(char path[108], char why[ERROR_TEXT_MAX]);

/* For a daemon that can't start: accepts every client that waits at a passed descriptor, sends it the reason, and
 * closes its connection. Without this, the service manager would start the daemon in a loop while a client waits. So
 * this includes the descriptors that systemd_socket refuses.
 *
 * On a socket of another kind this reads datagrams, or accepts connections, and drops them. If nothing was passed, this
 * does nothing. */
void systemd_refuse(const char *why);

#endif
