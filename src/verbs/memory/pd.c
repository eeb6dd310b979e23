// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/pd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/verbs/base/verbs_v65.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct pm_handle rep;
    struct vb_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    int rc = vb_call_simple(vb_ctx(context), PM_OP_ALLOC_PD, NULL, 0, &rep, sizeof(rep));
    if (rc) {
        free(pd);
        return vb_null(rc);
    }
    pd->pd.context = context;
    pd->pd.handle = rep.handle;
    return &pd->pd;
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct vb_pd *pd = vb_pd(ibpd);
    if (atomic_load(&pd->refs))
        return vb_err(-EBUSY);
    if (pd->parent) {
        atomic_fetch_sub(&pd->parent->refs, 1);
    } else {
        int rc = vb_drop(ibpd->context, PM_OP_DEALLOC_PD, ibpd->handle);
        if (rc)
            return rc;
    }
    free(pd);
    return 0;
}

/* A thread domain is a hint: the application serialises the calls on its objects. This library does not use the
 * hint. */
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask)
        return vb_null(-EINVAL);
    struct ibv_td *td = calloc(1, sizeof(*td));
    if (td)
        td->context = context;
    return td;
}

int vb_dealloc_td(struct ibv_td *td)
{
    free(td);
    return 0;
}

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    /* VB_PARENT_DOMAIN_UNPROTECTED only permits something. In a confidential guest the daemon is inside the guest, too,
     * and needs no memory that is shared with the host. */
    const uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | VB_PARENT_DOMAIN_UNPROTECTED;
    bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    if (!attr->pd || attr->pd->context != context)
        return vb_null(-EINVAL);
    if (attr->comp_mask & ~known)
        return vb_null(-EOPNOTSUPP);
    if (allocators && (!attr->alloc || !attr->free))
        return vb_null(-EINVAL);
    struct vb_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->parent = vb_pd(attr->pd)->parent ? vb_pd(attr->pd)->parent : vb_pd(attr->pd);
    pd->pd.context = context;
    pd->pd.handle = pd->parent->pd.handle;
    if (allocators) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
        pd->alloc_context = attr->pd_context;
    atomic_fetch_add(&pd->parent->refs, 1);
    return &pd->pd;
}

void vb_pd_hold(struct ibv_pd *pd)
{
    atomic_fetch_add(&vb_pd(pd)->refs, 1);
}

void vb_pd_drop(struct ibv_pd *pd)
{
    atomic_fetch_sub(&vb_pd(pd)->refs, 1);
}

#define ALIGN 64u

/* The header of a block of memory of a parent domain with an allocator. It says who must free the block. */
struct __attribute__((aligned(ALIGN))) block {
    bool custom; /* the allocator made the block; else it left that to this library */
};

void *vb_pd_alloc(struct ibv_pd *ibpd, size_t size, enum vb_alloc type)
{
    struct vb_pd *pd = ibpd ? vb_pd(ibpd) : NULL;
    bool ask = pd && pd->alloc;
    size = ((size + ALIGN - 1) & ~(size_t)(ALIGN - 1)) + (ask ? sizeof(struct block) : 0);
    void *p = ask ? pd->alloc(ibpd, pd->alloc_context, size, ALIGN, type) : IBV_ALLOCATOR_USE_DEFAULT;
    bool custom = p != IBV_ALLOCATOR_USE_DEFAULT;
    if (!custom)
        p = aligned_alloc(ALIGN, size);
    if (!p) {
        errno = ENOMEM;
        return NULL;
    }
    memset(p, 0, size);
    if (pd)
        vb_pd_hold(ibpd);
    if (!ask)
        return p;
    struct block *b = p;
    b->custom = custom;
    return b + 1;
}

void vb_pd_free(struct ibv_pd *ibpd, void *ptr, enum vb_alloc type)
{
    struct vb_pd *pd = ibpd ? vb_pd(ibpd) : NULL;
    struct block *b = (struct block *)ptr - 1;
    if (!pd || !pd->alloc)
        free(ptr);
    else if (b->custom)
        pd->free(ibpd, pd->alloc_context, b, type);
    else
        free(b);
    if (pd)
        vb_pd_drop(ibpd);
}

VB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    return vb_null(-EOPNOTSUPP);
}
VB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}
