// SPDX-License-Identifier: BSD-2-Clause
/* Opens a session: the main thread hands the connection to the device's thread, and waits for a bounded time. */
#ifndef PUMICE_DAEMON_SERVER_OPEN_CALL_H
#define PUMICE_DAEMON_SERVER_OPEN_CALL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/client_mem/client_mem.h"
#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"

/* Executes PM_OP_OPEN of the client that is connected by sock. The descriptors fds are no longer the caller's. True: sock
 * now belongs to the session, or to the device's thread, which answers the client later. False: sock is still the
 * caller's, and *rp holds the error. */
bool open_call(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
               struct client_fds fds, struct control_reply *rp);

#endif
