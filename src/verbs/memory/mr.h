// SPDX-License-Identifier: BSD-2-Clause
/* Memory regions. ibv_reg_mr and its later forms are exported. The memory stays private memory of this process; the
 * daemon copies from and to it. The calls for fork support (ibv_fork_init …) are here too, and do nothing. */
#ifndef PUMICE_SRC_VERBS_MEMORY_MR_H
#define PUMICE_SRC_VERBS_MEMORY_MR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/verbs/base/api.h"

struct vb_dm;

struct vb_mr {
    struct ibv_mr mr;
    uint64_t iova;
    uint32_t access; /* as the daemon has it */
    bool on_demand; /* IBV_ACCESS_ON_DEMAND */
    struct vb_dm *dm; /* the device memory that it is a region of; else NULL */
};

static inline struct vb_mr *vb_mr(struct ibv_mr *m)
{
    return VB_OF(struct vb_mr, mr, m);
}

/* ibv_reg_dm_mr, a function that a context points to: NULL with errno on failure. */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access);

#endif
