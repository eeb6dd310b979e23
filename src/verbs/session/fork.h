// SPDX-License-Identifier: BSD-2-Clause
/* Contexts after fork(). The child has a copy of each context, but must not use it. The rings are shared with the
 * parent, and the daemon works on the memory of the process that opened the session. So every call on the copy fails
 * with EIO. Closing it, or destroying an object of it, only frees memory of the child. The child may open the device
 * again.
 *
 * Each context has the generation number of the process that opened it. The generation number of this process is on a
 * page that the kernel wipes in the child (MADV_WIPEONFORK). The context is a copy if the numbers differ. */
#ifndef PUMICE_SRC_VERBS_SESSION_FORK_H
#define PUMICE_SRC_VERBS_SESSION_FORK_H

#include <stdbool.h>
#include <stdint.h>

struct vb_session;

/* The generation number of this process; 0: none. Never NULL. */
extern const volatile uint32_t *vb_fork_page;

/* Prepares the page. Returns the generation of the contexts that are opened now, or 0 if memory is short. */
uint32_t vb_fork_generation(void);

/* Makes the child of a fork close the socket of this session. So the daemon notices the death of the parent even if the
 * child lives on. The library watches at most 64 sessions. */
void vb_fork_watch(struct vb_session *s);
void vb_fork_unwatch(struct vb_session *s);

/* Explains on stderr, once per process, that the context belongs to the parent. Returns false. */
bool vb_fork_complain(void);

#endif
