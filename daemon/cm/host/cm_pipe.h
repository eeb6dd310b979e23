// SPDX-License-Identifier: BSD-2-Clause
/* The pipe of a channel: one byte for each event that waits. A client has the read end, and the daemon the write end
 * only. So the write end tells when the last reader is gone, wherever descriptors of the read end were.
 *
 * The kernel locks a pipe while a process reads it, and the process may read into memory that never answers. So each
 * call for the pipe may be taken over (threads/takeover.h). After one that took too long, the client counts as stuck. */
#ifndef PUMICE_DAEMON_CM_HOST_CM_PIPE_H
#define PUMICE_DAEMON_CM_HOST_CM_PIPE_H

#include <stdbool.h>
#include <sys/types.h>

struct takeover;

struct cm_pipe {
    /* Makes the calls; NULL: the calling thread makes them, without a limit. */
    struct takeover *thread;
    unsigned limit_ms;
    int write_fd; /* never blocks for room */
    bool stuck;
    uid_t owner; /* of the client */
};

/* Returns 0, with *read_fd for the client, or -errno. */
int cm_pipe_init(struct cm_pipe *p, struct takeover *thread, unsigned limit_ms, uid_t owner, int *read_fd);
void cm_pipe_fini(struct cm_pipe *p);

/* Writes a byte. False: there is no room, no reader, or the client is stuck. */
bool cm_pipe_put(struct cm_pipe *p);
/* Takes up to n unread bytes back. */
void cm_pipe_take_back(struct cm_pipe *p, unsigned n);
bool cm_pipe_has_reader(const struct cm_pipe *p);

#endif
