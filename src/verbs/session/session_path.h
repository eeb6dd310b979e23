// SPDX-License-Identifier: BSD-2-Clause
/* The daemon that this process uses, as its environment says it: the path of the daemon's control socket. */
#ifndef PUMICE_SRC_VERBS_SESSION_SESSION_PATH_H
#define PUMICE_SRC_VERBS_SESSION_SESSION_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Fills path[size] with the path of the control socket that this process uses. In this order: the socket of a host of a
 * lab if PUMICE_LAB is set, PUMICE_SOCKET, the default places of the daemon (PM_ENV_* in pumice/abi.h). Returns 0, or
 * -ENAMETOOLONG if the path doesn't fit. */
int vb_session_path(char *path, size_t size);

/* Is this process a rank of an MPI job? The environment variables of the launcher tell it. */
bool vb_session_is_rank(void);

#endif
