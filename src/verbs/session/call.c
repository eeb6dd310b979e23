// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/call.h"

#include <errno.h>

#include "src/verbs/session/fork.h"

int vb_call(struct vb_context *c, const struct vb_call *call)
{
    if (!vb_owned(c) || atomic_load(&c->gone))
        return -EIO;
    int rc = vb_session_call(&c->session, call);
    if (rc == -EIO)
        vb_context_check(c);
    return rc;
}

int vb_call_simple(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len)
{
    struct vb_call call = {.op = op, .req = req, .req_len = req_len, .rep = rep, .rep_len = rep_len};
    return vb_call(c, &call);
}

int vb_drop(struct ibv_context *context, uint32_t op, uint32_t handle)
{
    struct vb_context *c = vb_ctx(context);
    struct pm_handle req = {handle};
    if (!vb_owned_quiet(c))
        return 0;
    int rc = vb_call_simple(c, op, &req, sizeof(req), NULL, 0);
    if (rc == 0 || rc == -EIO)
        return 0;
    errno = -rc;
    return -rc;
}
