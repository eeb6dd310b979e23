// SPDX-License-Identifier: BSD-2-Clause
/* Answers requests about devices from clients without a session. The main thread calls these functions (except those
 * that say so), and the devices' threads collect the data. Each function that fills in a reply executes one request. It
 * returns 0, or -errno with the reason in *rp. They show only what the user may see (base/user.h). */
#ifndef PUMICE_DAEMON_SERVER_QUERY_H
#define PUMICE_DAEMON_SERVER_QUERY_H

#include <jansson.h>

#include "daemon/base/user.h"
#include "daemon/cm/cm_thread.h"
#include "daemon/server/device_set.h"
#include "daemon/server/watchdog.h"
#include "daemon/session/control_msg.h"

/* The parts of the daemon with objects of users. */
struct query_sources {
    struct device_set *devices;
    struct cm_thread *cm;
};

/* Returns the status of the daemon without its devices, as a new reference. In the main thread, which owns these data.
 * socket: path of the control socket; started: when the daemon started, clock_ns. */
json_t *query_daemon(const struct device_set *s, struct quota *quota, const struct control_turns *turns,
                     const struct user *u, const struct watchdog *w, const char *socket, uint64_t started);
/* PM_OP_STATUS: adds the devices and connection management to the status of the daemon, which it releases. In any
 * thread but those that are asked. */
int query_status(const struct query_sources *s, const struct user *u, json_t *daemon, struct control_reply *rp);
/* PM_OP_TM and PM_OP_LAYOUT, in any thread. */
int query_tags(struct device_set *s, const struct user *u, const struct pm_tm_req *r, struct control_reply *rp);
int query_layouts(struct device_set *s, const struct user *u, const struct pm_layout_req *r, struct control_reply *rp);
int query_check(struct device_set *s, const struct pm_check_req *r, struct control_reply *rp);
int query_counter(struct device_set *s, const struct pm_counter_req *r, struct control_reply *rp);
/* Returns the status of a struct query_sources as far as the user may see it, as a new reference: {"devices": [...],
 * "cm": {...}}. In any thread but those that are asked. */
json_t *query_objects(void *sources, const struct user *u);

#endif
