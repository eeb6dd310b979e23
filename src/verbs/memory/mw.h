// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows: allocating and freeing them. Binding is in datapath/bind.h. */
#ifndef PUMICE_SRC_VERBS_MEMORY_MW_H
#define PUMICE_SRC_VERBS_MEMORY_MW_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "src/verbs/base/api.h"

struct vb_qp;

struct vb_mw {
    struct ibv_mw mw;
    uint32_t max_entries; /* of the layouts it can be bound to; 0: none */
    _Atomic uint32_t key; /* of the newest bind that was posted and, as far as is known, not refused */
    /* Under the lock of the context: */
    uint32_t binds; /* number of the newest bind that was posted; they count from 1 */
    uint32_t undone; /* after a refused bind: the binds up to this number no longer count */
    const struct vb_qp *binder; /* the QP where the newest bind was posted */
};

static inline struct vb_mw *vb_mw(struct ibv_mw *w)
{
    return VB_OF(struct vb_mw, mw, w);
}

/* The functions that a context points to: NULL with errno, or an errno value. */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);

/* As vb_alloc_mw, but the window can also be bound to a layout of up to max_entries entries. */
struct ibv_mw *vb_alloc_mw_entries(struct ibv_pd *pd, enum ibv_mw_type type, uint32_t max_entries);

#endif
