// SPDX-License-Identifier: BSD-2-Clause
/* Survives the loss of pages that the daemon shares with a client. The kernel sends SIGBUS if a page of a segment can't
 * be had: the machine has no memory for it, or the client has punched a hole into the file and there is no memory for a
 * new page. (The seals of the segment prevent that the client makes the file shorter.) The signal's handler then maps
 * zeros in place of the pages, and notes that the segment is lost. So the daemon goes on, and ends the session.
 *
 * The handler runs in the thread that touched the page. It takes a lock, which is safe: no thread touches a segment
 * while it holds the lock. */
#ifndef PUMICE_DAEMON_SESSION_SEGMENT_GUARD_H
#define PUMICE_DAEMON_SESSION_SEGMENT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct guarded;

/* Installs the handler for the process. A SIGBUS outside of the guarded memory ends the process, as before. */
void segment_guard_install(void);

/* Starts to guard mapped pages [p, p + size). The caller calls segment_guard_remove before it unmaps them. NULL: out of
 * memory. */
struct guarded *segment_guard_add(void *p, size_t size);
void segment_guard_remove(struct guarded *g);
/* *lost becomes true if a page is lost. It must stay valid until segment_guard_remove. Without this call, the loss of a
 * page ends the process. */
void segment_guard_owner(struct guarded *g, atomic_bool *lost);

/* Number of segments that were lost so far: when it changes, a session must end. */
unsigned segment_guard_losses(void);

#endif
