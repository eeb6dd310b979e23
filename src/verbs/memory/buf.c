// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/verbs/memory/pd.h"

VB_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
    void *base;
    struct vb_buf *b = calloc(1, sizeof(*b));
    if (!b)
        return vb_null(-ENOMEM);
    int rc = posix_memalign(&base, (size_t)sysconf(_SC_PAGESIZE), size);
    if (rc) {
        free(b);
        return vb_null(-rc);
    }
    *b = (struct vb_buf){.pd = pd, .base = base, .size = size};
    vb_pd_hold(pd);
    *out = (struct ibv_buf *)(void *)b;
    return base;
}

VB_EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
    struct vb_buf *b = vb_buf(buf);
    vb_pd_drop(b->pd);
    free(b->base);
    free(b);
}

/* No buffer is in a dma-buf: this process and the daemon share a kernel, and need no device to reach the memory. */
VB_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
    (void)buf;
    errno = ENODATA;
    return -1;
}
