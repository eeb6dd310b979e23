// SPDX-License-Identifier: BSD-2-Clause
/* Reports as JSON how much programs use a device (device/usage.h). */
#ifndef PUMICE_DAEMON_STATUS_USAGE_STATUS_H
#define PUMICE_DAEMON_STATUS_USAGE_STATUS_H

#include <jansson.h>

#include "daemon/device/usage.h"

/* Returns {"makers", "connected", "connected_pkts"} of all QPs, including destroyed ones, as a new reference. sent: the
 * packets that the existing connected QPs have sent. */
json_t *usage_json(const struct usage *u, uint64_t sent);

#endif
