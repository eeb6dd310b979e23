// SPDX-License-Identifier: BSD-2-Clause
/* The memory that a request names: where it is in the program, and whether its regions allow what the device does with it.
 * Under the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_ACCESS_H
#define PUMICE_SRC_CHECK_REQUESTS_ACCESS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "src/check/objects/request.h"

/* Replaces the addresses in the list of a new request by those in the program. Checks its regions (RULE_ACCESS). writes: the
 * device writes to the memory. */
void access_locate(struct request *r, const struct ibv_context *context, bool writes);

#endif
