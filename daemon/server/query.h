// SPDX-License-Identifier: BSD-2-Clause
/* Questions about devices, as clients without a session ask them: the main thread has each device's thread answer. All but
 * query_devices carry out a request, and return 0, or -errno after saying why. */
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
/* What all devices of a struct server have to tell; the caller's. */
json_t *query_devices(void *server);

#endif
