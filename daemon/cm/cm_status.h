// SPDX-License-Identifier: BSD-2-Clause
/* Makes the part of the daemon's status that shows connection management (docs/man/pumice-status.1). */
#ifndef PUMICE_DAEMON_CM_CM_STATUS_H
#define PUMICE_DAEMON_CM_CM_STATUS_H

#include <jansson.h>

#include "daemon/cm/cm_snapshot.h"

/* Returns a new reference:
 *
 *     answers, channels, ids   whether the thread answers, and numbers of channels and IDs
 *     states                   how many IDs are in each state
 *     counters                 messages and errors, of all users
 *     listeners, connections   IDs that listen, and all others
 *     failures                 the latest connections that failed, the latest one first
 *
 * s NULL: the thread did not answer. names: of the devices, by their index. */
json_t *cm_status_json(const struct cm_snapshot *s, const char *const *names, unsigned num_names);
/* Adds the names of the programs ("comm") to the rows of the result, as far as these programs have sessions on the
 * devices, an array of status_device results. */
void cm_status_add_programs(json_t *cm, const json_t *devices);

#endif
