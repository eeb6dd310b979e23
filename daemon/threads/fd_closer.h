// SPDX-License-Identifier: BSD-2-Clause
/* Closes descriptors that clients sent, in threads of its own. The close() of such a descriptor may block for as long as
 * the client likes: a TCP socket with SO_LINGER and unsent data, a file on a dead FUSE or NFS server. So no thread that
 * serves others closes one itself. Sockets go to the reaper (socket_reaper.h), where they never block. What the reaper does
 * not take, and all other descriptors, wait here.
 *
 * Each user has a lane with FD_CLOSER_PER_USER threads at most, so the descriptors of one user do not wait for those of
 * another. While a descriptor is in a lane, it counts as an open file of that user (base/quota.h). */
#ifndef PUMICE_DAEMON_THREADS_FD_CLOSER_H
#define PUMICE_DAEMON_THREADS_FD_CLOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_CLOSER_PER_USER 2u
/* Threads that close descriptors of users. There are FD_CLOSER_PER_USER more, for sockets that hold nothing of a user.
 * Threads end after a while without work. */
#define FD_CLOSER_THREADS 128u
/* Descriptors of one user that may wait while the closer makes no progress with them, and in any case. */
#define FD_CLOSER_STUCK_MAX 16u
#define FD_CLOSER_WAITING_MAX 4096u

struct quota;
/* From now on, descriptors in the lanes of users count as open files, even if that exceeds the limit of the user. NULL:
 * no longer. */
void fd_closer_set_quota(struct quota *quota);

/* Takes the descriptor and closes it later. owner: the user whose client sent it. Any thread may call it. It does not
 * block. If there is no memory or no thread, the descriptor waits for a later call, or is closed here. */
void fd_closer_close(int fd, uid_t owner);
/* Takes a connected socket: ends the connection now, and closes the socket later. Unread messages in it may bring
 * descriptors, which are closed with it. Without such a message, the socket does not wait for other descriptors of the
 * user. */
void fd_closer_close_socket(int fd, uid_t owner);

/* True if the daemon should take no further descriptors from this user: those that it sent earlier can't be closed, or
 * the daemon has all files that it can have for clients. */
bool fd_closer_crowded(uid_t owner);

struct fd_closer_counts {
    unsigned waiting; /* descriptors that are not closed yet, those being closed included */
    unsigned stuck; /* descriptors whose close() has been running for FD_CLOSER_STUCK_NS or longer */
};
#define FD_CLOSER_STUCK_NS (200u * 1000000ull)
struct fd_closer_counts fd_closer_counts(void);

#endif
