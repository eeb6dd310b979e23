// SPDX-License-Identifier: BSD-2-Clause
/* Finds the user who owns the other end of a TCP connection within this host. The kernel answers (sock_diag(7)), so no
 * program can claim to be another user. */
#ifndef PUMICE_DAEMON_NET_SOCKET_OWNER_H
#define PUMICE_DAEMON_NET_SOCKET_OWNER_H

#include <sys/types.h>

#include "daemon/net/address.h"

/* Opens a socket for questions. -errno: the kernel can't answer. The caller closes it. */
int socket_owner_open(void);

/* The user who owns the TCP socket that is bound to `local` and connected to `remote`, both with their ports. 0, or
 * -errno: no process has the socket any more, or the kernel does not tell. */
int socket_owner(int fd, const union addr *local, const union addr *remote, uid_t *uid);

#endif
