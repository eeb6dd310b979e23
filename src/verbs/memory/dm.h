// SPDX-License-Identifier: BSD-2-Clause
/* Device memory. Pumice has no hardware with memory of its own, so device memory is ordinary memory of this process.
 * The rules of the verbs API still hold: programs reach it only by copies of whole words, and its regions are zero
 * based. */
#ifndef PUMICE_SRC_VERBS_MEMORY_DM_H
#define PUMICE_SRC_VERBS_MEMORY_DM_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/verbs/base/api.h"

struct vb_dm {
    struct ibv_dm dm;
    uint8_t *base;
    size_t length;
    _Atomic uint32_t refs; /* memory regions of it */
};

static inline struct vb_dm *vb_dm(struct ibv_dm *d)
{
    return VB_OF(struct vb_dm, dm, d);
}

/* The functions that a context points to: NULL with errno, or an errno value. */
struct ibv_dm *vb_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);

#endif
