// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "src/verbs/base/explain.h"
#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/memory/buf.h"
#include "src/verbs/memory/dm.h"
#include "src/verbs/memory/pd.h"
#include "src/verbs/memory/shared_file.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"
#include "src/verbs/shim/hugepage.h"

/* Converts access flags to those of the daemon. It does not need the flags that are optional or that choose the kind of
 * pages. Returns 0 or -EINVAL. */
static int access_flags(unsigned access, uint32_t *out)
{
    const unsigned plain = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                           IBV_ACCESS_ON_DEMAND | VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_FLUSH_PERSISTENT;
    access &= ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB);
    if (access & ~plain)
        return -EINVAL;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    *out = access;
    return 0;
}

/* Makes the region known to ibv_advise_mr. */
static int publish(struct vb_mr *mr)
{
    struct vb_context *c = vb_ctx(mr->mr.context);
    pthread_mutex_lock(&c->lock);
    int rc = vb_table_set(&c->mrs, mr->mr.lkey >> 8, mr);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* Sends the request with the region's file, if it has one, and ends the use of the file. */
static int call_with_file(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len,
                          const struct vb_shared_file *file)
{
    struct vb_call call = {.op = op, .req = req, .req_len = req_len, .rep = rep, .rep_len = rep_len};
    call.send_fds = &file->fd;
    call.num_send_fds = file->fd >= 0;
    int rc = vb_call(c, &call);
    vb_shared_file_end(file);
    if (rc != -EBADF || file->fd < 0)
        return rc;
    call.num_send_fds = 0; /* another thread of the program has just closed it */
    return vb_call(c, &call);
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
    struct vb_shared_file file;
    vb_shared_file_find(&file, &req);
    rc = call_with_file(vb_ctx(pd->context), PM_OP_REG_MR, &req, sizeof(req), &rep, sizeof(rep), &file);
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
    mr->on_demand = access & IBV_ACCESS_ON_DEMAND;
    rc = publish(mr);
    if (rc) {
        vb_drop(pd->context, PM_OP_DEREG_MR, rep.handle);
        free(mr);
        return vb_null(rc);
    }
    vb_pd_hold(pd);
    if (!mr->on_demand)
        vb_hugepage_use(addr, length, req.access & IBV_ACCESS_LOCAL_WRITE);
    return &mr->mr;
}

/* The iova of a region for which the program gives none. */
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

/* The inline ibv_reg_mr of the header also calls this, with iova == addr, if the compiler doesn't know the flags. */
VB_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    if (iova == (uint64_t)(uintptr_t)addr)
        iova = natural_iova(addr, access);
    return reg_mr(pd, addr, length, iova, access);
}

static struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, const struct vb_mr_attr_v65 *a)
{
    const uint64_t known =
        VB_REG_MR_IOVA | VB_REG_MR_ADDR | VB_REG_MR_FD | VB_REG_MR_FD_OFFSET | VB_REG_MR_DMAH | VB_REG_MR_BUF;
    bool file = a->mask & (VB_REG_MR_FD | VB_REG_MR_FD_OFFSET);
    if (a->mask & ~known)
        return vb_null(-EOPNOTSUPP);
    if (file ? a->mask & (VB_REG_MR_ADDR | VB_REG_MR_BUF) || ~a->mask & (VB_REG_MR_FD_OFFSET | VB_REG_MR_FD)
             : !(a->mask & VB_REG_MR_ADDR))
        return vb_null(-EINVAL);
    if (a->mask & VB_REG_MR_BUF && (!a->buf || !vb_buf_has(vb_buf(a->buf), pd, a->addr, a->length)))
        return vb_null(-EINVAL);
    if (a->mask & VB_REG_MR_DMAH)
        return vb_null(-EOPNOTSUPP); /* ibv_alloc_dmah makes none */
    if (file)
        return ibv_reg_dmabuf_mr(pd, a->fd_offset, a->length, a->iova, a->fd, a->access);
    unsigned access = (unsigned)a->access;
    return reg_mr(pd, a->addr, a->length, a->mask & VB_REG_MR_IOVA ? a->iova : natural_iova(a->addr, access), access);
}

VB_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
    return reg_mr_ex(pd, (const struct vb_mr_attr_v65 *)(const void *)attr);
}

VB_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
    return reg_mr_ex(
        pd, &(struct vb_mr_attr_v65){
                .length = length, .access = access, .mask = VB_REG_MR_BUF | VB_REG_MR_ADDR, .addr = addr, .buf = buf});
}

VB_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct vb_mr *mr = vb_mr(ibmr);
    bool bad = mr->dm || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
               ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) ||
               ((flags & IBV_REREG_MR_CHANGE_PD) && !pd) || (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS));
    struct pm_rereg_mr_req req = {.key = ibmr->lkey};
    req.mr = (struct pm_reg_mr_req){.pd = flags & IBV_REREG_MR_CHANGE_PD && pd ? pd->handle : ibmr->pd->handle,
                                    .access = mr->access,
                                    .va = (uint64_t)(uintptr_t)ibmr->addr,
                                    .length = ibmr->length,
                                    .iova = mr->iova};
    if (bad || vb_ctx(ibmr->context)->caps.absent & PM_ABSENT_REREG) {
        errno = bad ? EINVAL : -vb_explain(-EOPNOTSUPP, "this device has no ibv_rereg_mr");
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
    struct vb_shared_file file = {.fd = -1};
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
        vb_shared_file_find(&file, &req.mr);
    int rc = call_with_file(vb_ctx(ibmr->context), PM_OP_REREG_MR, &req, sizeof(req), NULL, 0, &file);
    if (rc) {
        errno = -rc;
        return IBV_REREG_MR_ERR_CMD;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        vb_pd_hold(pd);
        vb_pd_drop(ibmr->pd);
        ibmr->pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        ibmr->addr = addr;
        ibmr->length = length;
    }
    mr->access = req.mr.access;
    mr->on_demand = req.mr.access & IBV_ACCESS_ON_DEMAND;
    mr->iova = req.mr.iova;
    if (!mr->on_demand && flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS))
        vb_hugepage_use(ibmr->addr, ibmr->length, mr->access & IBV_ACCESS_LOCAL_WRITE);
    return 0;
}

struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset, size_t length, unsigned access)
{
    struct vb_dm *dm = vb_dm(ibdm);
    if (!(access & IBV_ACCESS_ZERO_BASED) || ibdm->context != pd->context || offset > dm->length ||
        length > dm->length - offset)
        return vb_null(-EINVAL);
    struct ibv_mr *mr = reg_mr(pd, dm->base + offset, length, 0, access);
    if (mr) {
        atomic_fetch_add(&dm->refs, 1);
        vb_mr(mr)->dm = dm;
        mr->addr = NULL; /* a program has no address of device memory */
    }
    return mr;
}

VB_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct vb_mr *mr = vb_mr(ibmr);
    struct vb_context *c = vb_ctx(ibmr->context);
    int rc = vb_drop(ibmr->context, PM_OP_DEREG_MR, ibmr->lkey);
    if (rc)
        return rc;
    if (vb_owned_quiet(c)) {
        pthread_mutex_lock(&c->lock);
        if (vb_table_get(&c->mrs, ibmr->lkey >> 8) == mr) /* else another region has the key already */
            vb_table_set(&c->mrs, ibmr->lkey >> 8, NULL);
        pthread_mutex_unlock(&c->lock);
    }
    if (mr->dm)
        atomic_fetch_sub(&mr->dm->refs, 1);
    vb_pd_drop(ibmr->pd);
    free(mr);
    return 0;
}

VB_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                           int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    return vb_null(-EOPNOTSUPP);
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

/* Fork support needs no preparation. The daemon always copies from and to the memory of the process that registered it,
 * even if a page is copy-on-write. A child can't use the objects of its parent. */
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
