// SPDX-License-Identifier: BSD-2-Clause
/* The latest connections that failed, for `pumice why`. */
#ifndef PUMICE_DAEMON_CM_HOST_CM_FAILURES_H
#define PUMICE_DAEMON_CM_HOST_CM_FAILURES_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/cm/cm.h"

#define CM_FAILURES 64u /* that are remembered; the oldest are forgotten */

struct cm_failure {
    uint64_t at; /* clock_ns */
    struct cm_id_info id; /* when the program got the event */
    uint8_t event; /* enum cm_event_type: ADDR_ERROR, UNREACHABLE, REJECTED, … */
    int32_t status; /* of the event: -errno, or the reason of a reject */
    uid_t uid; /* of the program */
    pid_t pid;
};
struct cm_failures {
    uint32_t n; /* failures so far; the next one goes to entry n % CM_FAILURES */
    struct cm_failure entry[CM_FAILURES];
};

/* Remembers the event, if it is a failure of a connection. */
void cm_failures_note(struct cm_failures *f, const struct cm_event *ev, uid_t uid, pid_t pid, uint64_t now);
/* The i-th latest one, from 0. NULL: there are no more. */
const struct cm_failure *cm_failures_latest(const struct cm_failures *f, unsigned i);

#endif
