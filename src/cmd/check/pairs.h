// SPDX-License-Identifier: BSD-2-Clause
/* Compares the two ends of each connection of a run: attributes that do not fit (rule mismatch), and why the peer refused a
 * request (rules access and dead-key). */
#ifndef PUMICE_SRC_CMD_CHECK_PAIRS_H
#define PUMICE_SRC_CMD_CHECK_PAIRS_H

#include "src/cmd/check/reports.h"

/* Adds findings to the processes. Returns 0 or -ENOMEM. */
int pairs_compare(struct reports *all);

#endif
