// SPDX-License-Identifier: BSD-2-Clause
/* The counters for Prometheus: a text by HTTP, at a loopback address only, if the option "metrics" asks for it. */
#ifndef PUMICE_DAEMON_METRICS_H
#define PUMICE_DAEMON_METRICS_H

#include <ev.h>
#include <jansson.h>

#include "daemon/base/error_text.h"
#include "daemon/net/address.h"

/* The text (exposition format 0.0.4) for these devices, an array of what status_device returns. The caller's, to be freed;
 * NULL: out of memory. Counters of queue pairs that are 0 are left out. */
char *metrics_text(const json_t *devices);

/* Serves GET /metrics in the loop, whose thread may wait for devices. devices is called for each request, and returns a new
 * reference. NULL, with why, if the address can't be had. */
struct metrics;
struct metrics *metrics_open(struct ev_loop *loop, const union addr *at, json_t *(*devices)(void *ctx), void *ctx,
                             char why[ERROR_TEXT_MAX]);
void metrics_close(struct metrics *m); /* NULL: nothing happens */

#endif
