// SPDX-License-Identifier: BSD-2-Clause
/* The users of a device. The device's thread divides its time between them, however many sessions and queue pairs each
 * has. A user without a session or queue pair is not in the list. */
#ifndef PUMICE_DAEMON_DEVICE_DEVICE_USER_H
#define PUMICE_DAEMON_DEVICE_DEVICE_USER_H

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/core/base/scheduler.h"

struct engine;

struct device_user {
    LIST_ENTRY(device_user) link;
    uid_t uid;
    unsigned holders; /* its sessions and queue pairs */
    struct sched_share share; /* of its queue pairs */
};
LIST_HEAD(device_user_list, device_user);

/* Finds the user, or adds it. NULL: no memory. The caller holds it until device_user_put. */
struct device_user *device_user_get(struct device_user_list *users, struct engine *e, uid_t uid);
/* u may be NULL. */
void device_user_put(struct device_user *u);

#endif
