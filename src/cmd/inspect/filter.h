// SPDX-License-Identifier: BSD-2-Clause
/* Filters of status documents, for pumice status --only and --pid. */
#ifndef PUMICE_SRC_CMD_INSPECT_FILTER_H
#define PUMICE_SRC_CMD_INSPECT_FILTER_H

#include <jansson.h>
#include <stdbool.h>

/* The names that --only accepts, for messages. */
#define FILTER_LISTS "sessions, qps, srqs, xrcds, cqs, mrs, mws, groups, connectivity"

/* True if all names in this list, separated by commas, are names that --only accepts. */
bool filter_knows(const char *lists);

/* Keeps only the name, the address, the port and these lists (separated by commas) of each device in the document. */
void filter_lists(json_t *status, const char *lists);

/* Keeps only the objects of this process in all lists. Objects without a session (XRC targets and domains, multicast
 * groups) are removed too. */
void filter_process(json_t *status, json_int_t pid);

#endif
