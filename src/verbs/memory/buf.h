// SPDX-License-Identifier: BSD-2-Clause
/* Buffers that the library allocates for an application (ibv_alloc_buf). They are ordinary memory of this process,
 * which begins at a page. The exported functions are in verbs/base/verbs_v65.h. */
#ifndef PUMICE_SRC_VERBS_MEMORY_BUF_H
#define PUMICE_SRC_VERBS_MEMORY_BUF_H

#include <stdbool.h>
#include <stdint.h>

#include "src/verbs/base/verbs_v65.h"

struct vb_buf {
    struct ibv_pd *pd; /* it was allocated with this PD or parent domain, and holds it */
    uint8_t *base;
    size_t size;
};

static inline struct vb_buf *vb_buf(struct ibv_buf *b)
{
    return (struct vb_buf *)(void *)b;
}

/* May [addr, addr + length) be registered in pd as a part of the buffer? */
static inline bool vb_buf_has(const struct vb_buf *b, const struct ibv_pd *pd, const void *addr, size_t length)
{
    uintptr_t at = (uintptr_t)addr, base = (uintptr_t)b->base;
    return b->pd == pd && at >= base && at - base <= b->size && length <= b->size - (at - base);
}

#endif
