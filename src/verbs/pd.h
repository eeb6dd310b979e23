// SPDX-License-Identifier: BSD-2-Clause
/* Memory of objects that belong to a protection domain: a parent domain's own allocator gives it, if there is one. */
#ifndef VERBS_PD_H
#define VERBS_PD_H

#include "objects.h"

/* The resource_type that an allocator is told. */
enum vb_alloc {
    VB_ALLOC_QP = 1, /* a queue pair */
    VB_ALLOC_SRQ, /* the outstanding requests of an SRQ */
};
/* Zeroed memory, aligned to cache lines; NULL with errno. Each is to be freed with the same pd and type. */
void *vb_pd_alloc(struct ibv_pd *pd, size_t size, enum vb_alloc type);
void vb_pd_free(struct ibv_pd *pd, void *ptr, enum vb_alloc type);

#endif
