// SPDX-License-Identifier: BSD-2-Clause
/* Removes from status documents everything that pumice status --only and --pid do not ask for. */
#ifndef PUMICE_SRC_CMD_INSPECT_FILTER_H
#define PUMICE_SRC_CMD_INSPECT_FILTER_H

#include <jansson.h>
#include <stdbool.h>

/* The names that --only accepts, for messages. */
#define FILTER_LISTS                                                                                                   \
    "gids, sessions, pds, qps, srqs, xrcds, cqs, comp_cntrs, mrs, mws, groups, connectivity, quotas, control, cm, "    \
    "listeners, connections, failures"

/* True if --only accepts all names in lists, which are separated by commas. */
bool filter_knows(const char *lists);

/* Keeps only these members of each device in the document: name, address, port, and the lists named in `lists`, which
 * are separated by commas. Removes the quotas, which belong to the daemon, unless they are named. Keeps of connection
 * management everything (cm), or the lists that are named. */
void filter_lists(json_t *status, const char *lists);

/* Keeps only the objects of this process in all lists. Also removes objects without a session (XRC targets and domains,
 * multicast groups). The counters of connection management stay. */
void filter_process(json_t *status, json_int_t pid);

#endif
