// SPDX-License-Identifier: BSD-2-Clause
/* Memory of outstanding requests, for a quick answer to "may a request need this?" without a lock. A page of memory has a
 * counter, which it shares with few others. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_LENT_H
#define PUMICE_SRC_CHECK_OBJECTS_LENT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Under the lock of records.h. A request with this memory is outstanding. Entries at address 0 are left out. */
void lent_add(const struct ibv_sge *list, unsigned n);
/* It no longer is. The list is as it was. */
void lent_remove(const struct ibv_sge *list, unsigned n);

/* False: no request has memory that begins in [from, to). Callers on any thread. */
bool lent_may_begin_in(uint64_t from, uint64_t to);
/* False: no request has any memory. */
bool lent_any(void);

#endif
