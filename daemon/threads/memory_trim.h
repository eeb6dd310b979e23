// SPDX-License-Identifier: BSD-2-Clause
/* Gives free memory back to the kernel. malloc keeps what was freed between pieces that are still in use, so a daemon would
 * keep most of the largest memory that it ever had. */
#ifndef PUMICE_DAEMON_THREADS_MEMORY_TRIM_H
#define PUMICE_DAEMON_THREADS_MEMORY_TRIM_H

#include <stdbool.h>

/* To be called after much memory was freed. A thread of its own gives free memory back a second later, once for all calls
 * until then. Any thread may call this; it does not wait. Without a thread, nothing is given back. */
void memory_trim_later(void);

/* While one is held, the thread waits (a minute at most). To give back a hundred MiB takes the kernel some milliseconds, in
 * which it lets no other thread of the process map or unmap memory. So the end of a session holds it. */
void memory_trim_hold(bool hold);

#endif
