// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fork.h"
#include "ops.h"
#include "session.h"

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

/* Destroys the daemon's object. A copy after fork and an object of a dead daemon are only forgotten. */
static int drop(struct ibv_context *context, uint32_t op, uint32_t handle)
{
    struct vb_context *c = vb_ctx(context);
    struct pm_handle req = {handle};
    if (!vb_owned_quiet(c))
        return 0;
    int rc = vb_call_simple(c, op, &req, sizeof(req), NULL, 0);
    return rc == -EIO ? 0 : vb_err(rc);
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct vb_pd *pd = vb_pd(ibpd);
    if (atomic_load(&pd->refs))
        return vb_err(-EBUSY);
    if (pd->parent) {
        atomic_fetch_sub(&pd->parent->refs, 1);
    } else {
        int rc = drop(ibpd->context, PM_OP_DEALLOC_PD, ibpd->handle);
        if (rc)
            return rc;
    }
    free(pd);
    return 0;
}

/* Thread domains are a hint that an application serialises; nothing here depends on it. */
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
    if (!attr->pd)
        return vb_null(-EINVAL);
    /* Own allocators would have nothing to allocate: the rings are the daemon's. */
    if (attr->comp_mask)
        return vb_null(-EOPNOTSUPP);
    struct vb_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->parent = vb_pd(attr->pd)->parent ? vb_pd(attr->pd)->parent : vb_pd(attr->pd);
    pd->pd.context = context;
    pd->pd.handle = pd->parent->pd.handle;
    atomic_fetch_add(&pd->parent->refs, 1);
    return &pd->pd;
}

/* The access flags as the daemon gets them: what is optional or about the kind of pages means nothing to it. */
static int access_flags(unsigned access, uint32_t *out)
{
    const unsigned plain = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;
    access &= ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB);
    if (access & IBV_ACCESS_ON_DEMAND)
        return -EOPNOTSUPP;
    if (access & ~plain)
        return -EINVAL;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    *out = access;
    return 0;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define HUGE_PAGE ((uintptr_t)2 << 20)
#define COLLAPSE_MAX                                                                                                   \
    ((size_t)256                                                                                                       \
     << 20) /* longer regions stay as they are: registering must not take long, nor fill memory that is never used */

/* The daemon copies from and to this memory by system calls that look up every page, which costs more than the copy
 * itself: with huge pages it is twice as fast. Like the pinning of a NIC this makes the pages present; their content
 * and sharing stay as they are. Where it can't be done nothing is lost. */
static void use_huge_pages(void *addr, size_t length)
{
    uintptr_t first = ((uintptr_t)addr + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)addr + length) & ~(HUGE_PAGE - 1);
    int saved = errno;
    if (length <= COLLAPSE_MAX && first < end)
        madvise((void *)first, end - first, MADV_COLLAPSE);
    errno = saved;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    struct pm_reg_mr_req req = {.pd = pd->handle, .va = (uint64_t)(uintptr_t)addr, .length = length, .iova = iova};
    struct pm_handle rep;
    int rc = access_flags(access, &req.access);
    if (rc)
        return vb_null(rc);
    struct vb_mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    rc = vb_call_simple(vb_ctx(pd->context), PM_OP_REG_MR, &req, sizeof(req), &rep, sizeof(rep));
    if (rc) {
        free(mr);
        return vb_null(rc);
    }
    mr->mr = (struct ibv_mr){.context = pd->context,
                             .pd = pd,
                             .addr = addr,
                             .length = length,
                             .handle = rep.handle,
                             .lkey = rep.handle,
                             .rkey = rep.handle};
    mr->iova = iova;
    mr->access = req.access;
    use_huge_pages(addr, length);
    return &mr->mr;
}

static uint64_t natural_iova(const void *addr, unsigned access)
{
    return access & IBV_ACCESS_ZERO_BASED ? 0 : (uint64_t)(uintptr_t)addr;
}

#undef ibv_reg_mr
VB_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg_mr(pd, addr, length, natural_iova(addr, (unsigned)access), (unsigned)access);
}

#undef ibv_reg_mr_iova
VB_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return reg_mr(pd, addr, length, iova, (unsigned)access);
}

/* The header's ibv_reg_mr comes here too, with iova == addr, when it can't see the flags. */
VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    if (iova == (uint64_t)(uintptr_t)addr)
        iova = natural_iova(addr, access);
    return reg_mr(pd, addr, length, iova, access);
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct vb_mr *mr = VB_OF(struct vb_mr, mr, ibmr);
    bool bad = flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
               ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) ||
               ((flags & IBV_REREG_MR_CHANGE_PD) && !pd) || (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS));
    struct pm_rereg_mr_req req = {.key = ibmr->lkey};
    req.mr = (struct pm_reg_mr_req){.pd = flags & IBV_REREG_MR_CHANGE_PD && pd ? pd->handle : ibmr->pd->handle,
                                    .access = mr->access,
                                    .va = (uint64_t)(uintptr_t)ibmr->addr,
                                    .length = ibmr->length,
                                    .iova = mr->iova};
    if (bad) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
        int rc = access_flags((unsigned)access, &req.mr.access);
        if (rc) {
            errno = -rc;
            return IBV_REREG_MR_ERR_INPUT;
        }
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        req.mr.va = (uint64_t)(uintptr_t)addr;
        req.mr.length = length;
        req.mr.iova = natural_iova(addr, req.mr.access);
    }
    int rc = vb_call_simple(vb_ctx(ibmr->context), PM_OP_REREG_MR, &req, sizeof(req), NULL, 0);
    if (rc) {
        errno = -rc;
        return IBV_REREG_MR_ERR_CMD;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD)
        ibmr->pd = pd;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        ibmr->addr = addr;
        ibmr->length = length;
    }
    mr->access = req.mr.access;
    mr->iova = req.mr.iova;
    return 0;
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    int rc = drop(mr->context, PM_OP_DEREG_MR, mr->lkey);
    if (rc == 0)
        free(VB_OF(struct vb_mr, mr, mr));
    return rc;
}

VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                           int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    return vb_null(-EOPNOTSUPP);
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
VB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    (void)pd, (void)handle;
    return vb_null(-EOPNOTSUPP);
}
VB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}
VB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    (void)context, (void)handle;
    return vb_null(-EOPNOTSUPP);
}
VB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

/* Fork support: nothing to prepare, since the daemon works on the memory of the process that registered it,
 * copy-on-write or not, and a child can't use its parent's objects anyway. */
VB_EXPORT int ibv_fork_init(void)
{
    return 0;
}
VB_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}
VB_EXPORT int ibv_dontfork_range(void *base, size_t size);
VB_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}
VB_EXPORT int ibv_dofork_range(void *base, size_t size);
VB_EXPORT int ibv_dofork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}
