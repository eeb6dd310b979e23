// SPDX-License-Identifier: BSD-2-Clause
/* Opens sessions, and serves their control connections. PM_OP_OPEN creates a session. control/dispatch.h
 * executes each request on its connection. The end of the connection or of the process ends the session with all
 * its objects (session_end.h). */
#ifndef PUMICE_DAEMON_CONTROL_SESSION_CONTROL_H
#define PUMICE_DAEMON_CONTROL_SESSION_CONTROL_H

#include <sys/socket.h>

#include "daemon/client_mem/client_mem.h"
#include "pumice/abi.h"

struct control_reply;
struct device;
struct session;

/* Creates a session on device d and fills in *rp for PM_OP_OPEN. On success, sock, the client's connection (-1: none,
 * for tests), becomes the session's. The descriptors fds become the session's in any case. Returns 0, or -errno with
 * the reason in *rp. */
int session_open(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
                 struct client_fds fds, struct control_reply *rp, struct session **out);

#endif
