// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups of UD queue pairs: ibv_attach_mcast and ibv_detach_mcast. The GID of a group is an IPv4-mapped or an
 * IPv6 multicast address. LIDs are ignored. */
#include <infiniband/verbs.h>

#include <errno.h>
#include <string.h>

#include "src/verbs/base/gid.h"
#include "src/verbs/session/call.h"

static int call(struct ibv_qp *qp, uint32_t op, const union ibv_gid *gid)
{
    struct vb_context *c = vb_ctx(qp->context);
    struct pm_mcast_req req = {.qpn = qp->qp_num};
    if (c->caps.max_mcast_grp == 0)
        return vb_err(-EOPNOTSUPP);
    if (qp->qp_type != IBV_QPT_UD || !vb_gid_is_group(gid->raw))
        return vb_err(-EINVAL);
    memcpy(req.gid, gid->raw, sizeof(req.gid));
    return vb_err(vb_call_simple(c, op, &req, sizeof(req), NULL, 0));
}

VB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return call(qp, PM_OP_ATTACH_MCAST, gid);
}

VB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return call(qp, PM_OP_DETACH_MCAST, gid);
}
