// SPDX-License-Identifier: BSD-2-Clause
/* Creates memory that the daemon shares with a client: a memfd. The daemon seals it, so that the client can't shrink it
 * while the daemon uses it. */
#ifndef PUMICE_DAEMON_SESSION_SEGMENT_H
#define PUMICE_DAEMON_SESSION_SEGMENT_H

#include <stddef.h>

#include "daemon/base/quota.h"
#include "daemon/session/segment_guard.h"

struct control_reply;

struct segment {
    void *p; /* mapped, initially zero, page aligned; NULL: none */
    size_t size; /* bytes, whole pages */
    int fd; /* for the client; -1 after it was handed out */
    struct quota_owner owner; /* pays for it */
    struct guarded *guard; /* NULL: p is NULL */
};

/* Returns 0 or -errno. *rp has the reason if the owner's quota is the reason. owner NULL: nobody pays; then rp is not
 * used. name appears in /proc/PID/maps. */
int segment_create(struct segment *s, const struct quota_owner *owner, const char *name, size_t size,
                   struct control_reply *rp);
void segment_destroy(struct segment *s);

/* *lost becomes true if a page of the segment can't be had; the segment then has zeros, which the client does not see.
 * *lost must stay valid until segment_destroy. */
void segment_guard(struct segment *s, atomic_bool *lost);

/* Returns the descriptor. The caller sends and closes it. */
int segment_take_fd(struct segment *s);

#endif
