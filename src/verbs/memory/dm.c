// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/dm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/verbs/session/context.h"

#define WORD 4u

/* May a program copy length bytes at offset? Both must be whole words, and inside the device memory. */
static bool can_copy(const struct vb_dm *dm, uint64_t offset, size_t length)
{
    return offset % WORD == 0 && length % WORD == 0 && offset <= dm->length && length <= dm->length - offset;
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
    struct vb_dm *dm = vb_dm(ibdm);
    if (!can_copy(dm, offset, length))
        return EINVAL;
    memcpy(dm->base + offset, from, length);
    return 0;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
    struct vb_dm *dm = vb_dm(ibdm);
    if (!can_copy(dm, offset, length))
        return EINVAL;
    memcpy(to, dm->base + offset, length);
    return 0;
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    struct vb_context *c = vb_ctx(context);
    const uint64_t most = c->caps.max_dm_size;
    if (attr->comp_mask || attr->length == 0 || attr->log_align_req > 12) /* a mapping begins at a page */
        return vb_null(-EINVAL);
    struct vb_dm *dm = calloc(1, sizeof(*dm));
    if (!dm)
        return NULL;
    size_t used = atomic_fetch_add(&c->dm_used, attr->length);
    if (attr->length > most || used > most - attr->length) {
        atomic_fetch_sub(&c->dm_used, attr->length);
        free(dm);
        return vb_null(-ENOMEM);
    }
    void *base = mmap(NULL, attr->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        atomic_fetch_sub(&c->dm_used, attr->length);
        free(dm);
        return vb_null(-ENOMEM);
    }
    dm->base = base;
    dm->length = attr->length;
    dm->dm.context = context;
    dm->dm.memcpy_to_dm = copy_to;
    dm->dm.memcpy_from_dm = copy_from;
    return &dm->dm;
}

int vb_free_dm(struct ibv_dm *ibdm)
{
    struct vb_dm *dm = vb_dm(ibdm);
    if (atomic_load(&dm->refs))
        return vb_err(-EBUSY);
    munmap(dm->base, dm->length);
    atomic_fetch_sub(&vb_ctx(ibdm->context)->dm_used, dm->length);
    free(dm);
    return 0;
}
