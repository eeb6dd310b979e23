// SPDX-License-Identifier: BSD-2-Clause
/* The thread that changes files for all others. The threads of the devices handle packets and requests of strangers, so
 * the sandbox lets them change no file (daemon/sandbox/sandbox.h). This thread writes for them. */
#ifndef PUMICE_DAEMON_THREADS_FILE_THREAD_H
#define PUMICE_DAEMON_THREADS_FILE_THREAD_H

/* Starts the thread. It calls enter() first, and blocks all signals. 0 or -errno. */
int file_thread_start(void (*enter)(void));

/* Ends the thread. */
void file_thread_stop(void);

/* Runs fn(arg) in the thread, and returns when fn has returned. Any thread may call this. While the thread does not run
 * (without a sandbox, at the start, at the end, in tests), fn runs in the caller. */
void file_thread_do(void (*fn)(void *arg), void *arg);

#endif
