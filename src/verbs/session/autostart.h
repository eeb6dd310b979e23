// SPDX-License-Identifier: BSD-2-Clause
/* Starts a daemon when none is there, if the user wants that (PM_ENV_AUTOSTART). This is for machines without a service
 * manager. The daemon belongs to the user, and ends when no program has used it for some time (pumiced --idle-exit). */
#ifndef PUMICE_SRC_VERBS_SESSION_AUTOSTART_H
#define PUMICE_SRC_VERBS_SESSION_AUTOSTART_H

#include <stddef.h>

#include "pumice/abi.h"

struct vb_session;

/* As vb_session_connect to the daemon that this process uses (vb_session_path): path[size] becomes its path. If it is not
 * there, starts it. why: the last words of a daemon that could not start, or "". */
int vb_autostart_connect(struct vb_session *s, char *path, size_t size, char why[PM_WHY_MAX]);
/* The same for the daemon at this path. */
int vb_autostart_connect_to(struct vb_session *s, const char *path, char why[PM_WHY_MAX]);
/* To be called in the child of a fork: another thread of the parent may have been starting a daemon. */
void vb_autostart_in_child(void);

#endif
