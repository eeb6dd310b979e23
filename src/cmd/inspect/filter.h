// SPDX-License-Identifier: BSD-2-Clause
/* pumice status --only and --pid: parts of a daemon's document. */
#ifndef PUMICE_CMD_SELECT_H
#define PUMICE_CMD_SELECT_H

#include <jansson.h>
#include <stdbool.h>

/* Names that --only takes, with commas between them, for a message. */
#define SELECT_KINDS "sessions, qps, srqs, xrcds, cqs, mrs, mws, groups, connectivity"

/* Are all of these, with commas between them, names of such lists? */
bool select_knows(const char *kinds);
/* Takes everything out of each device of the document but its name, address, port and these lists. */
void select_kinds(json_t *status, const char *kinds);
/* Takes out of all lists what is not of this process. What belongs to no session (XRC targets and domains, groups) goes, too. */
void select_process(json_t *status, json_int_t pid);

#endif
