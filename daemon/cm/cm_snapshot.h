// SPDX-License-Identifier: BSD-2-Clause
/* A copy of what connection management has, for the status of the daemon. It is taken in slices (base/slice.h) of the
 * connection management thread, so that many IDs do not hold up the clients. */
#ifndef PUMICE_DAEMON_CM_CM_SNAPSHOT_H
#define PUMICE_DAEMON_CM_CM_SNAPSHOT_H

#include "daemon/base/user.h"
#include "daemon/cm/cm_thread.h"

/* An ID of a program. */
struct cm_snapshot_id {
    uint32_t number;
    uid_t uid;
    pid_t pid; /* that opened the channel */
    uint32_t requests; /* listeners: connections that wait for the program */
    uint32_t groups; /* multicast groups that it has joined */
    struct cm_id_info info;
};
struct cm_snapshot {
    uint64_t taken; /* clock_ns */
    struct cm_snapshot_id *id;
    size_t num_ids;
    struct cm_failure failure[CM_FAILURES]; /* the latest one first */
    unsigned num_failures;
    struct cm_counters counters; /* of all users */
    unsigned num_channels; /* that the user may see */
};

/* Takes what the user may see. Any one thread may call it, but not the connection management thread. NULL: the thread
 * did not answer within wait_ns, or there is no memory. The caller frees the result by cm_snapshot_free. */
struct cm_snapshot *cm_snapshot_take(struct cm_thread *t, const struct user *u, uint64_t wait_ns);
void cm_snapshot_free(struct cm_snapshot *s);

#endif
