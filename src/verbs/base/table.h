// SPDX-License-Identifier: BSD-2-Clause
/* Sparse arrays of pointers: QPs by number, and CQs, SRQs, MRs and MWs by handle or key. A key has 24 bits.
 *
 * Writers hold the lock of the context; readers need no lock. A table has two levels. The leaves are allocated when
 * they are needed, and stay until the table is freed. */
#ifndef PUMICE_SRC_VERBS_BASE_TABLE_H
#define PUMICE_SRC_VERBS_BASE_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define VB_TABLE_BITS 12
#define VB_TABLE_SIZE (1u << VB_TABLE_BITS)
struct vb_table {
    _Atomic(void *) *_Atomic *root; /* VB_TABLE_SIZE leaves of VB_TABLE_SIZE entries; a leaf may be NULL */
};

/* Makes an empty table. 0 or -ENOMEM. */
int vb_table_init(struct vb_table *t);
/* Frees the table, but not the objects in it. A table of zeros is allowed. */
void vb_table_fini(struct vb_table *t);
/* Sets the entry of key. NULL removes it, which never fails. The caller holds the lock of the context. Returns 0,
 * -ENOMEM, or -EPROTO if the key has more than 24 bits. */
int vb_table_set(struct vb_table *t, uint32_t key, void *value);

/* The entry of key, or NULL. It needs no lock as long as the object itself can't go away. */
static inline void *vb_table_get(const struct vb_table *t, uint32_t key)
{
    if (key >> (2 * VB_TABLE_BITS))
        return NULL;
    _Atomic(void *) *leaf = atomic_load_explicit(&t->root[key >> VB_TABLE_BITS], memory_order_acquire);
    return leaf ? atomic_load_explicit(&leaf[key & (VB_TABLE_SIZE - 1)], memory_order_acquire) : NULL;
}

#endif
