// SPDX-License-Identifier: BSD-2-Clause
/* The control socket: requests and replies of pumice/abi.h. All functions return 0 or -errno. */
#ifndef VERBS_SESSION_H
#define VERBS_SESSION_H

#include <stddef.h>

#include "src/verbs/base/objects.h"

/* Fills path[size] with the control socket that this process should use, after the environment (see README of
 * PM_ENV_* in abi.h): a lab's host if PUMICE_LAB is set, else PUMICE_SOCKET, else the default places. -ENAMETOOLONG
 * if it doesn't fit. */
int vb_session_path(char *path, size_t size);
/* Whether this process is a rank of an MPI job, by what its launcher says in the environment. */
bool vb_session_is_rank(void);

/* Connects to the daemon at path. On success the caller owns s and ends it with vb_session_close. */
int vb_session_connect(struct vb_session *s, const char *path);
void vb_session_close(struct vb_session *s);

struct vb_call {
    uint32_t op; /* enum pm_op */
    const void *req; /* payload; NULL: none */
    size_t req_len;
    int send_fd; /* descriptor to pass along, -1: none */
    void *rep; /* where the reply's payload goes, rep_len bytes exactly */
    size_t rep_len;
    int *fds; /* where received descriptors go, num_fds exactly; the caller owns them on success */
    unsigned num_fds;
    /* Called once rep is filled, before the session's next reply is read: so what it notes is in the order of the replies. Under
     * the session's lock. NULL: nothing is. */
    void (*done)(const struct vb_call *call);
    void *arg; /* for done */
    char *why; /* PM_WHY_MAX bytes for what the daemon says when it refuses, else empty; NULL: nobody wants it */
};
/* Sends a request and waits for its reply. -EIO: the daemon is gone; -EPROTO: it spoke out of form; -EMFILE: there is no
 * room for the descriptors of the reply, whose payload is in rep: what was asked for is done; else what it answered, and
 * rep is as it was. */
int vb_session_call(struct vb_session *s, const struct vb_call *call);

/* The two usual shapes, for a context: -EIO in a forked child and when the daemon is gone (then the context is
 * marked so). */
int vb_call(struct vb_context *c, const struct vb_call *call);
int vb_call_simple(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len);
/* Destroys the daemon's object of that handle: 0 or errno value, with errno. A copy after fork and an object of a dead
 * daemon are only forgotten. */
int vb_drop(struct ibv_context *context, uint32_t op, uint32_t handle);

#endif
