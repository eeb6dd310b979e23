// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/advise.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/verbs/memory/mr.h"
#include "src/verbs/session/context.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Checks one range, and stores the start and length of its pages in *start and *length. Returns 0 or an errno value. */
static int check(struct ibv_pd *pd, const struct ibv_sge *sge, bool write, uintptr_t *start, size_t *length)
{
    struct vb_context *c = vb_ctx(pd->context);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&c->lock);
    const struct vb_mr *mr = vb_table_get(&c->mrs, sge->lkey >> 8);
    int rc = 0;
    if (!mr || mr->mr.lkey != sge->lkey)
        rc = ENOENT;
    else if (mr->mr.pd->handle != pd->handle || !mr->on_demand)
        rc = EINVAL;
    else if (sge->addr < mr->iova || sge->addr - mr->iova > mr->mr.length ||
             sge->length > mr->mr.length - (sge->addr - mr->iova))
        rc = EFAULT;
    else if (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
        rc = EPERM;
    if (rc == 0) {
        uintptr_t first = (uintptr_t)mr->mr.addr + (uintptr_t)(sge->addr - mr->iova);
        *start = first & ~(page - 1);
        *length = sge->length ? first + sge->length - *start : 0;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge, uint32_t num)
{
    bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && !write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return EOPNOTSUPP;
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || num == 0)
        return EINVAL;
    if (!vb_owned(vb_ctx(pd->context)))
        return EIO;
    for (uint32_t i = 0; i < num; i++) {
        uintptr_t start;
        size_t length;
        int rc = check(pd, &sge[i], write, &start, &length);
        if (rc)
            return rc;
        /* NO_FAULT asks for pages that are present already, so there is nothing to do. A kernel without this advice
         * fetches a page when its data is needed. */
        if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && length &&
            madvise((void *)start, length, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0 && errno != EINVAL)
            return EFAULT;
    }
    return 0;
}
