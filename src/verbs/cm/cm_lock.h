// SPDX-License-Identifier: BSD-2-Clause
/* The lock of connection management in this process. It protects the connection, the channels, their descriptors and
 * their IDs. A thread holds it for some instructions only, and makes no request meanwhile. A fork waits for it, so the
 * child gets a consistent copy. */
#ifndef PUMICE_SRC_VERBS_CM_CM_LOCK_H
#define PUMICE_SRC_VERBS_CM_CM_LOCK_H

#include <stdbool.h>

/* Prepares for forks. To be called before the first channel is opened; it may be called again. */
void vb_cm_prepare(void);

void vb_cm_lock(void);
void vb_cm_unlock(void);

/* Does this process own the memory that it sees? Not between vfork and exec: the memory is the parent's then. It is
 * async-signal-safe. Only after vb_cm_prepare. */
bool vb_cm_is_owner(void);

#endif
