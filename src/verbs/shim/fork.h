// SPDX-License-Identifier: BSD-2-Clause
/* After fork() the child has a copy of each context, but not the right to use it: the rings are shared with the
 * parent, and the daemon reaches the memory of the process that opened the session. So the child's copy is dead:
 * every call on it fails with EIO, and closing or destroying frees the child's memory and nothing else. The child
 * may open the device again.
 *
 * How it is told: the process' number of contexts generations stands on a page that the kernel wipes in the child
 * (MADV_WIPEONFORK). */
#ifndef VERBS_FORK_H
#define VERBS_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "src/verbs/base/objects.h"

extern const volatile uint32_t *vb_fork_page; /* never NULL */

/* Prepares the page; the generation that contexts opened now belong to, 0 if memory is short. */
uint32_t vb_fork_generation(void);

/* Makes the child of a fork close this session's socket, so that a parent that dies is seen by the daemon even if
 * the child lives on. */
void vb_fork_watch(struct vb_session *s);
void vb_fork_unwatch(struct vb_session *s);

/* False in a child of the process that opened the context; says so on stderr, once per process. */
bool vb_fork_complain(void);
static inline bool vb_owned(const struct vb_context *c)
{
    return __builtin_expect(*vb_fork_page == c->generation, 1) || vb_fork_complain();
}
/* The same, silently: for destroying. */
static inline bool vb_owned_quiet(const struct vb_context *c)
{
    return *vb_fork_page == c->generation;
}

#endif
