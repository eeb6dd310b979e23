// SPDX-License-Identifier: BSD-2-Clause
/* pumice status --only and --pid: parts of a daemon's document. */
#ifndef PUMICE_SRC_CMD_INSPECT_FILTER_H
#define PUMICE_SRC_CMD_INSPECT_FILTER_H

#include <jansson.h>
#include <stdbool.h>

/* Names that --only takes, with commas between them, for a message. */
#define FILTER_LISTS "sessions, qps, srqs, xrcds, cqs, mrs, mws, groups, connectivity"

/* Are all of these, with commas between them, names of such lists? */
bool filter_knows(const char *kinds);
/* Takes everything out of each device of the document but its name, address, port and these lists. */
void filter_lists(json_t *status, const char *kinds);
/* Takes out of all lists what is not of this process. What belongs to no session (XRC targets and domains, groups) goes, too. */
void filter_process(json_t *status, json_int_t pid);

#endif
