// SPDX-License-Identifier: BSD-2-Clause
/* Gives free memory back to the kernel. malloc keeps what was freed between pieces that are still in use, so a daemon would
 * keep most of the largest memory that it ever had. */
#ifndef PUMICE_DAEMON_THREADS_MEMORY_TRIM_H
#define PUMICE_DAEMON_THREADS_MEMORY_TRIM_H

/* To be called after much memory was freed. A thread of its own gives free memory back a second later, once for all calls
 * until then. Any thread may call this; it does not wait. Without a thread, nothing is given back. */
void memory_trim_later(void);

#endif
