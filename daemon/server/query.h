// SPDX-License-Identifier: BSD-2-Clause
/* Requests about devices from clients without a session. The main thread has each device's thread answer. Each
 * function (except query_devices) executes one request. It returns 0, or -errno with the reason in *rp. */
#ifndef PUMICE_DAEMON_QUERY_H
#define PUMICE_DAEMON_QUERY_H

#include <jansson.h>

#include "daemon/server/server.h"
#include "daemon/session/control.h"

int query_status(struct server *sv, struct control_reply *rp);
int query_tags(struct server *sv, const struct pm_tm_req *r, struct control_reply *rp);
int query_layouts(struct server *sv, const struct pm_layout_req *r, struct control_reply *rp);
int query_check(struct server *sv, const struct pm_check_req *r, struct control_reply *rp);
int query_counter(struct server *sv, const struct pm_counter_req *r, struct control_reply *rp);
/* Returns the status of all devices of a struct server. The caller owns it. */
json_t *query_devices(void *server);

#endif
