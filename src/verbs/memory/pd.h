// SPDX-License-Identifier: BSD-2-Clause
/* Objects that belong to a protection domain, and their memory: a parent domain's own allocator gives it, if there is one. */
#ifndef VERBS_PD_H
#define VERBS_PD_H

#include "src/verbs/base/objects.h"

/* The resource_type that an allocator is told. */
enum vb_alloc {
    VB_ALLOC_QP = 1, /* a queue pair */
    VB_ALLOC_SRQ, /* the outstanding requests of an SRQ */
};
/* An object of the PD is made, or ended: until then the PD can't be, with or without a daemon that would refuse it. */
void vb_pd_hold(struct ibv_pd *pd);
void vb_pd_drop(struct ibv_pd *pd);

/* Zeroed memory, aligned to cache lines; NULL with errno. Each is to be freed with the same pd and type, and
 * holds the PD until then. pd may be NULL. */
void *vb_pd_alloc(struct ibv_pd *pd, size_t size, enum vb_alloc type);
void vb_pd_free(struct ibv_pd *pd, void *ptr, enum vb_alloc type);

#endif
