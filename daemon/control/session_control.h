// SPDX-License-Identifier: BSD-2-Clause
/* Starts and ends sessions, and serves their control connections: PM_OP_OPEN makes a session, each request on its connection is carried out by
 * control/dispatch.h, and the end of the connection or of the process ends the session with all its objects. */
#ifndef PUMICE_DAEMON_CONTROL_SESSION_CONTROL_H
#define PUMICE_DAEMON_CONTROL_SESSION_CONTROL_H

#include <sys/socket.h>

#include "pumice/abi.h"

struct control_reply;
struct device;
struct session;

/* Makes a session on device d and fills in *rp for PM_OP_OPEN. sock, the client's connection (-1: none, for tests), becomes the
 * session's when this succeeds. mem_fd (-1: none) becomes the session's in any case. 0, or -errno with the reason in *rp. */
int session_open(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
                 struct control_reply *rp, struct session **out);

/* Ends a session and frees all its objects. To be called between passes only. */
void session_close(struct session *s);
/* Ends all sessions of a device, before device_fini. */
void session_close_all(struct device *d);

#endif
