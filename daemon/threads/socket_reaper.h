// SPDX-License-Identifier: BSD-2-Clause
/* Closes sockets of clients so that close() never blocks. A TCP socket with SO_LINGER and unsent data blocks a close() for
 * as long as the client likes, and so does a Unix socket that holds a message with such a socket. But the kernel does not
 * linger if the thread that has the last descriptor ends.
 *
 * So a thread with a table of descriptors of its own receives the sockets through a Unix socket, and ends. Before that, it
 * starts a successor for the next sockets. */
#ifndef PUMICE_DAEMON_THREADS_SOCKET_REAPER_H
#define PUMICE_DAEMON_THREADS_SOCKET_REAPER_H

#include <stdbool.h>

/* Starts the first thread. To be called before any client connects: the thread then has no descriptor of one. Without
 * memory or descriptors, there is no reaper. */
void socket_reaper_start(void);
/* The thread ends when it has closed what it was given. */
void socket_reaper_stop(void);

/* Takes a socket and closes it. False: the caller keeps it, because there is no reaper, because too many sockets wait, or
 * because the kernel refuses to send this one (a Unix socket that holds a Unix socket, and so on). Any thread may call it.
 * It does not block. */
bool socket_reaper_take(int fd);

#endif
