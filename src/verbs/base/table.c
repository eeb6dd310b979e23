// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/table.h"

#include <errno.h>
#include <stdlib.h>

int vb_table_init(struct vb_table *t)
{
    t->root = calloc(VB_TABLE_SIZE, sizeof(*t->root));
    return t->root ? 0 : -ENOMEM;
}

void vb_table_fini(struct vb_table *t)
{
    for (uint32_t i = 0; t->root && i < VB_TABLE_SIZE; i++)
        free((void *)atomic_load(&t->root[i]));
    free((void *)t->root);
    t->root = NULL;
}

int vb_table_set(struct vb_table *t, uint32_t key, void *value)
{
    if (key >> (2 * VB_TABLE_BITS))
        return value ? -EPROTO : 0;
    _Atomic(void *) *leaf = atomic_load(&t->root[key >> VB_TABLE_BITS]);
    if (!leaf) {
        if (!value)
            return 0;
        leaf = calloc(VB_TABLE_SIZE, sizeof(*leaf));
        if (!leaf)
            return -ENOMEM;
        atomic_store_explicit(&t->root[key >> VB_TABLE_BITS], leaf, memory_order_release);
    }
    atomic_store_explicit(&leaf[key & (VB_TABLE_SIZE - 1)], value, memory_order_release);
    return 0;
}
