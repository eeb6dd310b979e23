// SPDX-License-Identifier: BSD-2-Clause
/* Serves the counters to Prometheus: a text over HTTP, at a loopback address only, if the option "metrics" is set. The
 * kernel tells which user asks. A user gets the counters of the devices, and those of its own QPs. */
#ifndef PUMICE_DAEMON_MONITOR_METRICS_H
#define PUMICE_DAEMON_MONITOR_METRICS_H

#include <jansson.h>

#include "daemon/base/error_text.h"
#include "daemon/base/user.h"
#include "daemon/net/address.h"

/* Makes the text (exposition format 0.0.4) for a status: {"devices": [status_device results], "cm": a cm_status_json
 * result}. The caller frees it. NULL: out of memory. Counters of QPs that are 0 are left out. */
char *metrics_text(const json_t *status);

struct metrics;
/* Listens at the address. Returns NULL, with `why`, if it can't. The requests wait until metrics_start. */
struct metrics *metrics_open(const union addr *at, json_t *(*objects)(void *ctx, const struct user *u), void *ctx,
                             char why[ERROR_TEXT_MAX]);
/* Serves GET /metrics in a thread of its own, which may wait for devices. `objects` is called in that thread, with the
 * user who asks, and returns a new reference. A text that took long to make is given out to its user for a while. The
 * thread has the rights of the caller. m may be NULL. Returns 0, or -errno with `why`. */
int metrics_start(struct metrics *m, char why[ERROR_TEXT_MAX]);
void metrics_close(struct metrics *m); /* m may be NULL */

#endif
