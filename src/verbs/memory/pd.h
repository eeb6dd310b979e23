// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains, thread domains and parent domains, and the memory of objects that belong to a domain. A parent
 * domain may bring an allocator of the application for that memory. */
#ifndef PUMICE_SRC_VERBS_MEMORY_PD_H
#define PUMICE_SRC_VERBS_MEMORY_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "src/verbs/base/api.h"

struct vb_pd {
    struct ibv_pd pd;
    struct vb_pd *parent; /* parent domain: the PD that it stands for; else NULL */
    _Atomic uint32_t refs; /* its objects (vb_pd_hold), and the parent domains on it */
    /* The application's allocator, for a parent domain. NULL: it gave none. */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
    void *alloc_context;
};

static inline struct vb_pd *vb_pd(struct ibv_pd *p)
{
    return VB_OF(struct vb_pd, pd, p);
}

/* The functions that a context points to: NULL with errno, or an errno value. */
struct ibv_td *vb_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr);

/* Counts an object of the PD. As long as there is one, ibv_dealloc_pd fails with EBUSY, whether the daemon lives or
 * not. */
void vb_pd_hold(struct ibv_pd *pd);
/* Ends this: the object was destroyed, or moved to another PD. */
void vb_pd_drop(struct ibv_pd *pd);

/* The resource_type that an allocator gets. */
enum vb_alloc {
    VB_ALLOC_QP = 1, /* a queue pair */
    VB_ALLOC_SRQ, /* the outstanding requests of an SRQ */
};
/* Allocates zeroed memory, aligned to cache lines. NULL with errno on failure. pd may be NULL. The memory holds the PD
 * until vb_pd_free. */
void *vb_pd_alloc(struct ibv_pd *pd, size_t size, enum vb_alloc type);
/* Frees it. pd and type must be those of vb_pd_alloc. */
void vb_pd_free(struct ibv_pd *pd, void *ptr, enum vb_alloc type);

#endif
