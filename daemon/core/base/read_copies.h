// SPDX-License-Identifier: BSD-2-Clause
/* The memory of an engine for data of READs that wait to be sent while a later request of the same QP is executed. What
 * was posted before is read before.
 *
 * Copies live for one batch, as a rule: responses leave after the packets of a batch were taken in. So memory is given
 * out from the start to the end, and all of it is free again when the last copy is gone. */
#ifndef PUMICE_DAEMON_CORE_BASE_READ_COPIES_H
#define PUMICE_DAEMON_CORE_BASE_READ_COPIES_H

#include <stddef.h>
#include <stdint.h>

struct read_copies {
    uint8_t *bytes;
    uint32_t size, used;
    uint32_t count; /* copies that exist */
};

/* Memory for a copy of len bytes. NULL: there is no room. */
static inline uint8_t *read_copies_take(struct read_copies *c, uint32_t len)
{
    if (len > c->size - c->used)
        return NULL;
    uint8_t *p = c->bytes + c->used;
    c->used += len;
    c->count++;
    return p;
}
/* A copy is no longer needed. */
static inline void read_copies_put(struct read_copies *c)
{
    if (--c->count == 0)
        c->used = 0;
}

#endif
