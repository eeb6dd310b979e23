// SPDX-License-Identifier: BSD-2-Clause
/* ibv_advise_mr: prefetching pages of on-demand regions. The daemon reaches all client memory on demand, so the library
 * only makes the pages present, by madvise. */
#ifndef PUMICE_SRC_VERBS_MEMORY_ADVISE_H
#define PUMICE_SRC_VERBS_MEMORY_ADVISE_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* A function that a context points to. 0 or an errno value. EOPNOTSUPP: unknown advice. ENOENT: no such lkey. EINVAL:
 * unknown flags, no range, a region of another PD, or one that is not on-demand. EFAULT: a range outside its region, or
 * pages that can't be made present. EPERM: the region is not writable. EIO: a forked child. */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge,
                 uint32_t num);

#endif
