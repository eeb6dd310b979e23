// SPDX-License-Identifier: BSD-2-Clause
/* What pumiced and a service manager tell each other, if one started it: a listening socket that was made beforehand
 * (sd_listen_fds(3)), and "ready" and "stopping" (sd_notify(3)). The two protocols are environment variables and one
 * datagram, and they are stable; so this needs no library, and works with whatever else speaks them. */
#ifndef PUMICE_DAEMON_SERVICE_H
#define PUMICE_DAEMON_SERVICE_H

#include "daemon/base/error_text.h"

/* The control socket that was passed: a descriptor, close-on-exec and non-blocking, with its path in
 * path[0 ... 108). -ENOENT: none was. -EINVAL, with why: something else was passed, or more than one. The variables are
 * gone from the environment afterwards, so a second call finds none. */
int systemd_socket(char path[108], char why[ERROR_TEXT_MAX]);

/* Takes everybody who waits at what was passed, tells them why they are not served, and hangs up; for a daemon that can't
 * start. That goes for each descriptor, and for those that systemd_socket does not take, too: with somebody left waiting at
 * any of them, the service manager would start the daemon again and again, as fast as it can. Who connects to another kind
 * of socket is only hung up on. Nothing happens if nothing was passed. */
void systemd_refuse(const char *why);

/* Tells the service manager, if there is one. state is one or more lines such as "READY=1". 0, or -errno. */
int systemd_notify(const char *state);

#endif
