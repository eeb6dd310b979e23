// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "src/verbs/memory/pd.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    return vb_alloc_mw_entries(pd, type, 0);
}

struct ibv_mw *vb_alloc_mw_entries(struct ibv_pd *pd, enum ibv_mw_type type, uint32_t max_entries)
{
    struct vb_context *c = vb_ctx(pd->context);
    struct pm_alloc_mw_req req = {.pd = pd->handle, .type = type, .max_entries = max_entries};
    struct pm_handle rep;
    if (c->caps.max_mw == 0)
        return vb_null(-EOPNOTSUPP);
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return vb_null(-EINVAL);
    struct vb_mw *mw = calloc(1, sizeof(*mw));
    if (!mw)
        return NULL;
    int rc = vb_call_simple(c, PM_OP_ALLOC_MW, &req, sizeof(req), &rep, sizeof(rep));
    if (rc) {
        free(mw);
        return vb_null(rc);
    }
    mw->mw =
        (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = rep.handle, .handle = rep.handle >> 8, .type = type};
    mw->max_entries = max_entries;
    mw->key = rep.handle;
    vb_pd_hold(pd);
    pthread_mutex_lock(&c->lock);
    rc = vb_table_set(&c->mws, mw->mw.handle, mw);
    pthread_mutex_unlock(&c->lock);
    if (rc) {
        vb_dealloc_mw(&mw->mw);
        return vb_null(rc);
    }
    return &mw->mw;
}

int vb_dealloc_mw(struct ibv_mw *mw)
{
    struct vb_context *c = vb_ctx(mw->context);
    struct vb_mw *vmw = vb_mw(mw);
    int rc = vb_drop(mw->context, PM_OP_DEALLOC_MW, vmw->key);
    if (rc)
        return rc;
    if (vb_owned_quiet(c)) {
        pthread_mutex_lock(&c->lock);
        if (vb_table_get(&c->mws, mw->handle) == vmw) /* else another window has the place already */
            vb_table_set(&c->mws, mw->handle, NULL);
        pthread_mutex_unlock(&c->lock);
    }
    vb_pd_drop(mw->pd);
    free(vmw);
    return 0;
}
