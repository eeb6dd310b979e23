// SPDX-License-Identifier: BSD-2-Clause
/* The connection of this process to its daemon for connection management (pumice/abi_cm.h). All channels share it. The
 * process makes it when it opens the first channel. It makes a new one after the old one broke, because the daemon may
 * have been started again, and after a fork, because the old one is the parent's. A child keeps the socket of its
 * parent open until then. */
#ifndef PUMICE_SRC_VERBS_CM_CM_CONNECTION_H
#define PUMICE_SRC_VERBS_CM_CM_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "pumice/abi.h"
#include "src/verbs/session/session.h"

struct vb_cm_connection {
    struct vb_session session;
    uint64_t serial; /* no other connection of this process has this number; never 0 */
    uint32_t generation; /* of the process that made it (session/fork.h) */
    unsigned refs; /* under the lock */
    atomic_bool broken;
};

/* The daemon's text when it refused a connection. */
struct vb_cm_refusal {
    char path[256]; /* of the daemon's socket */
    char why[PM_WHY_MAX]; /* "": no explanation */
};

/* Returns the connection, which it makes if there is none. The caller gives it back with vb_cm_release. Errors:
 *   -ENOTCONN     there is no daemon, or this user may not use it
 *   -EPROTONOSUPPORT  the daemon refuses: it is of another version. Fills refusal, if that is not NULL
 *   -EDQUOT       the user has as many connections as the daemon allows. Fills refusal, too
 *   else          the process or the daemon is short of descriptors or memory */
int vb_cm_connect(struct vb_cm_connection **connection, struct vb_cm_refusal *refusal);
/* The connection with this serial number, if it is still the one of this process. Otherwise NULL. */
struct vb_cm_connection *vb_cm_connected(uint64_t serial);
void vb_cm_release(struct vb_cm_connection *c);

/* As vb_session_call. If the connection does not work any more, it becomes broken. */
int vb_cm_connection_call(struct vb_cm_connection *c, const struct vb_call *call);

#endif
