// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups of UD queue pairs. A group's GID is a mapped IPv4 group or an IPv6 group; LIDs mean nothing. */
#include <arpa/inet.h>
#include <errno.h>

#include "src/verbs/base/ops.h"
#include "src/verbs/base/session.h"

static bool is_group(const union ibv_gid *gid)
{
    const struct in6_addr *a = (const struct in6_addr *)(const void *)gid->raw;
    return IN6_IS_ADDR_MULTICAST(a) || (IN6_IS_ADDR_V4MAPPED(a) && (gid->raw[12] & 0xf0) == 0xe0);
}

static int call(struct ibv_qp *qp, uint32_t op, const union ibv_gid *gid)
{
    struct vb_context *c = vb_ctx(qp->context);
    struct pm_mcast_req req = {.qpn = qp->qp_num};
    if (c->caps.max_mcast_grp == 0)
        return vb_err(-EOPNOTSUPP);
    if (qp->qp_type != IBV_QPT_UD || !is_group(gid))
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
