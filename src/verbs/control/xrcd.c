// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "src/verbs/session/call.h"

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct vb_context *c = vb_ctx(context);
    struct pm_open_xrcd_req req = {.has_fd = attr->fd != -1, .oflags = (uint32_t)attr->oflags};
    struct pm_handle rep;
    struct vb_call call = {.op = PM_OP_OPEN_XRCD,
                           .req = &req,
                           .req_len = sizeof(req),
                           .send_fds = &attr->fd,
                           .num_send_fds = attr->fd >= 0,
                           .rep = &rep,
                           .rep_len = sizeof(rep)};
    if (c->caps.max_xrcd == 0)
        return vb_null(-EOPNOTSUPP);
    if ((attr->comp_mask & both) != both || (attr->comp_mask & ~both) || (attr->oflags & ~(O_CREAT | O_EXCL)))
        return vb_null(-EINVAL);
    if (attr->fd == -1 && attr->oflags != O_CREAT)
        return vb_null(-EINVAL);
    if (attr->fd != -1 && fcntl(attr->fd, F_GETFD) < 0)
        return NULL; /* EBADF */
    struct vb_xrcd *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    int rc = vb_call(c, &call);
    if (rc) {
        free(x);
        return vb_null(rc);
    }
    x->xrcd.context = context;
    x->handle = rep.handle;
    return &x->xrcd;
}

int vb_close_xrcd(struct ibv_xrcd *xrcd)
{
    int rc = vb_drop(xrcd->context, PM_OP_CLOSE_XRCD, vb_xrcd(xrcd)->handle);
    if (rc == 0)
        free(vb_xrcd(xrcd));
    return rc;
}
