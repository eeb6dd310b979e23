// SPDX-License-Identifier: BSD-2-Clause
/* New memory regions, however the program registers them. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_REGION_H
#define PUMICE_SRC_CHECK_REQUESTS_REGION_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "src/check/base/trace.h"

/* The region was registered, or has other attributes now. mr: NULL if the call failed. memory: NULL if it is not in the program.
 * iova: the address of its first byte, as requests name it. Returns mr. */
struct ibv_mr *region_made(struct ibv_mr *mr, const void *memory, size_t length, uint64_t iova, unsigned access,
                           const struct trace *where);

/* A region of which nothing else is known has this key. */
void region_has_key(const struct ibv_mr *mr);

#endif
