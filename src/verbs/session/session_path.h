// SPDX-License-Identifier: BSD-2-Clause
/* Finds the daemon that this process uses: the path of its control socket, from the environment. */
#ifndef PUMICE_SRC_VERBS_SESSION_SESSION_PATH_H
#define PUMICE_SRC_VERBS_SESSION_SESSION_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Fills path[size] with the path of the control socket that this process uses. In this order: the socket of a host of a
 * lab if PUMICE_LAB is set, PUMICE_SOCKET, the default places of the daemon (PM_ENV_* in pumice/abi.h). Returns 0, or
 * -ENAMETOOLONG if the path doesn't fit. */
int vb_session_path(char *path, size_t size);

/* Is this process a rank of an MPI job? Looks at the environment variables of MPI launchers. */
bool vb_session_is_rank(void);

/* The number of this process among those ranks of its MPI job that are on its host, from 0, as far as the launcher's
 * environment variables tell it. -1: it is no such rank. */
long vb_session_rank_on_host(void);

#endif
