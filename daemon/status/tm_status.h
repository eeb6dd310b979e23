// SPDX-License-Identifier: BSD-2-Clause
/* Describes matching lists as JSON: their state, their entries, and their recent events. Runs in the device's
 * thread. */
#ifndef PUMICE_DAEMON_STATUS_TM_STATUS_H
#define PUMICE_DAEMON_STATUS_TM_STATUS_H

#include <jansson.h>

#include "daemon/device/device.h"
#include "daemon/objects/srq/srq.h"

/* Synchronization, lengths and counters of the list of q. q must have a list. */
json_t *tm_status_summary(const struct client_srq *q);
/* All lists of the device, with as many entries and events as rq asks for. */
json_t *tm_status_device(struct device *d, const struct pm_tm_req *rq);

#endif
