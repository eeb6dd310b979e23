// SPDX-License-Identifier: BSD-2-Clause
/* Memory keys: what an lkey or rkey lets its holder touch. A key is an index (24 bits) and a tag (8 bits) that changes
 * whenever the index is used again, so that a stale key is recognised. */
#ifndef PUMICE_CORE_KEY_H
#define PUMICE_CORE_KEY_H

#include "daemon/core/engine.h"

struct mr {
    struct mr_init init;
    uint32_t windows; /* memory windows bound to it */
    uint32_t next_free; /* index; 0: end of the list */
    uint8_t tag;
    bool used;
};
struct key_table {
    struct mr *mr; /* [size], index 0 is never used, so that no key is 0 */
    uint32_t size;
    uint32_t untouched; /* indexes from here on were never used */
    uint32_t free; /* first of the free list; 0: empty */
    uint32_t free_last; /* its last one, if it is not empty */
};

/* entries: max + 1 zeroed ones. */
void key_table_init(struct key_table *t, struct mr *entries, uint32_t max);

/* True if `key` gives all of `access` (enum access_flags; 0: reading locally) to [addr, addr + len) for users of
 * protection domain pd; *out then says where that is. len > 0. */
bool key_resolve(const struct key_table *t, uint32_t pd, uint32_t key, uint64_t addr, uint32_t len, uint32_t access,
                 struct piece *out);

/* The same for bytes [off, off + len) of an SGE list; returns how many pieces were written to out[0 ... max), or -1
 * if some SGE does not allow it, or there are more pieces than max. The list holds at least off + len bytes. */
int sgl_resolve(const struct key_table *t, uint32_t pd, const struct sge *sge, unsigned num_sge, uint32_t off,
                uint32_t len, uint32_t access, struct piece *out, unsigned max);

#endif
