// SPDX-License-Identifier: BSD-2-Clause
/* How much programs use a device (device/usage.h), as JSON. */
#ifndef PUMICE_DAEMON_STATUS_USAGE_STATUS_H
#define PUMICE_DAEMON_STATUS_USAGE_STATUS_H

#include <jansson.h>

struct device;

/* {"makers", "connected", "connected_pkts"} of all QPs, those that are gone included. The caller's. */
json_t *usage_json(struct device *d);

#endif
