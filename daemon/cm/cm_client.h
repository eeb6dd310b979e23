// SPDX-License-Identifier: BSD-2-Clause
/* The connection of a process to the connection management thread (include/pumice/abi_cm.h). It carries the operations
 * on channels. Channels live as long as their pipes have readers, whatever happens to connections. */
#ifndef PUMICE_DAEMON_CM_CM_CLIENT_H
#define PUMICE_DAEMON_CM_CM_CLIENT_H

#include <sys/queue.h>
#include <sys/socket.h>

#include "daemon/base/activity.h"
#include "daemon/cm/host/cm_host.h"
#include "daemon/device/control_turns.h"

struct cm_client;
TAILQ_HEAD(cm_client_list, cm_client);

/* All connections. */
struct cm_clients {
    struct cm_host *host;
    struct control_turns turns;
    struct activity *activity; /* of the thread */
    struct cm_client_list list;
};

/* control_share: as control_turns_init. */
void cm_clients_init(struct cm_clients *cs, struct cm_host *h, struct activity *activity, unsigned control_share);
/* Ends all connections. */
void cm_clients_fini(struct cm_clients *cs);

/* Takes a connection, answers its PM_OP_CM_OPEN, and serves it from then on. After an error, the client has got the
 * answer, and the socket is closed. */
void cm_client_open(struct cm_clients *cs, int sock, const struct ucred *cred);

#endif
