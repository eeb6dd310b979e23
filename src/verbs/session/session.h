// SPDX-License-Identifier: BSD-2-Clause
/* The control socket: the library sends a request and the daemon answers with a reply (pumice/abi.h). All functions
 * return 0 or -errno. */
#ifndef PUMICE_SRC_VERBS_SESSION_SESSION_H
#define PUMICE_SRC_VERBS_SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A connection to the daemon. One request is under way at a time. */
struct vb_session {
    _Atomic int fd; /* -1: closed */
    pthread_mutex_t lock; /* held from the request to the reply */
};

/* Connects to the daemon at path. On success the caller owns s and ends it with vb_session_close. */
int vb_session_connect(struct vb_session *s, const char *path);
void vb_session_close(struct vb_session *s);

/* A request and the places for its reply. */
struct vb_call {
    uint32_t op; /* enum pm_op */
    const void *req; /* payload; NULL: none */
    size_t req_len;
    const int *send_fds; /* descriptors to send with the request, which stay the caller's */
    unsigned num_send_fds; /* at most PM_FDS_MAX */
    void *rep; /* place for the payload of the reply: rep_len bytes exactly */
    size_t rep_len;
    /* Not NULL: the payload may also be shorter. Its length goes here. */
    size_t *rep_size;
    /* Place for the descriptors of the reply: num_fds exactly. On success the caller owns them. */
    int *fds;
    unsigned num_fds;
    /* Called under the lock of the session when rep is filled, before the library reads the next reply of the session.
     * So the calls have the order of the replies. NULL: no call. */
    void (*done)(const struct vb_call *call);
    void *arg; /* for done */
    /* Place of PM_WHY_MAX bytes for the daemon's explanation of a refusal, "" if there is none. NULL: the caller wants
     * no explanation. */
    char *why;
};

/* Sends a request and waits for its reply. Returns 0 or
 *   -EIO     the daemon is gone
 *   -EPROTO  the reply is malformed
 *   -EMFILE  this process has no room for the descriptors of the reply; the daemon carried out the request, and rep
 *            holds the payload
 *   else     the error that the daemon answered; rep is unchanged */
int vb_session_call(struct vb_session *s, const struct vb_call *call);

#endif
