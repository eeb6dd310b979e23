// SPDX-License-Identifier: BSD-2-Clause
/* The main thread's part in connection management: it starts and ends the thread (cm/cm_thread.h), and hands connections
 * to it. */
#ifndef PUMICE_DAEMON_SERVER_CM_CALL_H
#define PUMICE_DAEMON_SERVER_CM_CALL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/cm/cm_thread.h"
#include "daemon/server/device_set.h"
#include "pumice/abi_cm.h"

/* Makes and starts the thread for the devices. Returns 0, or -errno with why. */
int cm_call_start(struct cm_thread *t, const struct device_set *devices, struct quota *quota, const struct settings *s,
                  char why[ERROR_TEXT_MAX]);

/* Executes PM_OP_CM_OPEN of the client that is connected by sock. rq: struct pm_cm_open_req. True: sock now belongs to the thread, which answers the
 * client. False: sock is still the caller's, and *rp holds the error. */
bool cm_call_open(struct cm_thread *t, int sock, const struct ucred *cred, const void *rq, struct control_reply *rp);

#endif
