// SPDX-License-Identifier: BSD-2-Clause
/* Local keys of regions that were deregistered, the latest ones. Under the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_DEAD_KEYS_H
#define PUMICE_SRC_CHECK_OBJECTS_DEAD_KEYS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/check/base/trace.h"

void dead_keys_add(const struct ibv_context *context, uint32_t lkey, const struct trace *where);
/* The key is in use again. */
void dead_keys_remove(const struct ibv_context *context, uint32_t lkey);
/* Is it one? *where: the place that deregistered it. */
bool dead_keys_has(const struct ibv_context *context, uint32_t lkey, const struct trace **where);

#endif
