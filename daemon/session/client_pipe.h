// SPDX-License-Identifier: BSD-2-Clause
/* A pipe whose read end a client has. The kernel locks a pipe while a process reads it, and the process may read into
 * memory that never answers. Then each call for the pipe waits for that lock, even a write that must not block. So all
 * calls are guarded (client_mem/copier.h). After one that took too long, the client counts as stuck, and its session
 * ends. */
#ifndef PUMICE_DAEMON_SESSION_CLIENT_PIPE_H
#define PUMICE_DAEMON_SESSION_CLIENT_PIPE_H

#include <stddef.h>
#include <sys/types.h>

struct client_mem;
struct client_pipe {
    struct client_mem *mem; /* of the client; NULL: calls are not guarded */
    int read_fd; /* for the client; -1 after it was handed out */
    int write_fd; /* never blocks for room */
    /* The daemon's read end. It never blocks for data, because its flags do not depend on those of the client's end.
     * Because of it, the kernel does not report that the client has closed the client's end. */
    int own_read_fd;
};

/* Returns 0 or -errno. mem must live longer than the pipe. */
int client_pipe_init(struct client_pipe *p, struct client_mem *mem);
void client_pipe_fini(struct client_pipe *p);

/* These return -errno for an error, and -ETIMEDOUT if the client is stuck. */
ssize_t client_pipe_write(const struct client_pipe *p, const void *from, size_t len); /* up to PIPE_BUF: all or none */
ssize_t client_pipe_read(const struct client_pipe *p, void *to, size_t len);
ssize_t client_pipe_unread(const struct client_pipe *p); /* bytes in the pipe */
/* Returns the read end of another pipe, which has a copy of the first bytes, at most `bytes` of them. The caller closes
 * it. */
int client_pipe_copy(const struct client_pipe *p, size_t bytes);

#endif
