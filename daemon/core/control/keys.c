// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/keys.h"

#include "daemon/core/memory/mw.h"
#include "daemon/core/qp/engine_state.h"

int mr_register(struct engine *e, const struct mr_init *init, uint32_t *key)
{
    return key_register(&e->keys, init, key);
}

int mr_reregister(struct engine *e, uint32_t key, const struct mr_init *init)
{
    return key_reregister(&e->keys, key, init);
}

int mr_deregister(struct engine *e, uint32_t key)
{
    return key_deregister(&e->keys, key);
}

int mw_alloc(struct engine *e, uint32_t pd, uint8_t type, uint32_t *key)
{
    return mw_make(&e->keys, pd, type, key);
}

size_t mw_layout_size(uint32_t max_entries)
{
    return mw_shape_size(max_entries);
}

int mw_alloc_layout(struct engine *e, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key)
{
    return mw_make_layout(&e->keys, pd, type, max_entries, mem, key);
}

int mw_dealloc(struct engine *e, uint32_t key)
{
    return mw_remove(&e->keys, key);
}
