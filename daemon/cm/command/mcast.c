// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups. RoCE needs no subnet administrator: the group of an IP address is this address as a GID. The program
 * attaches its QP itself (ibv_attach_mcast), and the device then joins the group in the network. */
#include "daemon/cm/host/ucma_event.h"

#include <errno.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/core/cm/cm.h"
#include "wire/gid.h"

#define MCAST_QPN 0xffffffu
#define UDP_QKEY 0x01234567u /* of all IDs of the port space UDP */
#define HOP_LIMIT 64

static void write_joined(const struct cm_host *h, const struct ucma_join *j, const struct cm_id_info *info,
                         struct rdma_ucm_event_resp *r)
{
    struct av av = {
        .sgid_index = info->route.sgid_index,
        .traffic_class = info->route.traffic_class,
        .hop_limit = HOP_LIMIT,
    };

    memcpy(av.dgid, j->mgid, sizeof(av.dgid));
    *r = (struct rdma_ucm_event_resp){.event = CM_EVENT_MULTICAST_JOIN};
    r->param.ud.qp_num = MCAST_QPN;
    r->param.ud.qkey = info->port_space == CM_PS_UDP || info->port_space == CM_PS_IPOIB ? UDP_QKEY : 0;
    ucma_copy_ah(h, &av, &r->param.ud.ah_attr);
}

static int join(struct command *c, uint32_t number, uint64_t uid, const union ucma_sockaddr *sa)
{
    struct rdma_ucm_create_id_resp resp;
    struct rdma_ucm_event_resp ev;
    char why[QUOTA_WHY_MAX];
    struct cm_id_info info;
    struct ucma_join *j;
    struct cm_addr group;
    struct ucma_id *id;
    uint32_t scope;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    int rc = command_id(c, number, &id);
    if (rc == 0)
        rc = ucma_sockaddr_read(sa, &group, &scope);
    if (rc)
        return rc;
    cm_id_query(id->cm, &info);
    if (info.route.device == CM_NO_DEVICE || !gid_is_multicast(group.gid))
        return -EINVAL;
    rc = ucma_join_create(id, uid, &j, why);
    if (rc)
        return control_fail(c->rp, rc, "%s", why);
    memcpy(j->mgid, group.gid, sizeof(j->mgid));
    write_joined(c->host, j, &info, &ev);
    if (id->uid && ucma_event_add(id, j, &ev) != 0) {
        ucma_join_destroy(j);
        return -ENOMEM;
    }
    resp.id = j->number;
    return command_result(c, &resp, sizeof(resp));
}

int command_join_ip_mcast(struct command *c)
{
    union ucma_sockaddr sa = {.v6 = c->in.join_ip_mcast.addr};

    if (sa.sa.sa_family != AF_INET && sa.sa.sa_family != AF_INET6)
        return -EINVAL;
    return join(c, c->in.join_ip_mcast.id, c->in.join_ip_mcast.uid, &sa);
}

/* A member that only sends does not attach its QP, so it needs nothing else here. */
int command_join_mcast(struct command *c)
{
    const struct rdma_ucm_join_mcast *in = &c->in.join_mcast;
    union ucma_sockaddr sa = {.storage = in->addr};

    if (!in->addr_size || in->addr_size != ucma_sockaddr_size(&sa) ||
        (in->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER && in->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER))
        return -EINVAL;
    return join(c, in->id, in->uid, &sa);
}

int command_leave_mcast(struct command *c)
{
    struct rdma_ucm_destroy_id_resp resp;
    struct ucma_join *j;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    int rc = ucma_join_find(c->channel, c->in.destroy_id.id, &j);
    if (rc)
        return rc;
    resp.events_reported = ucma_join_destroy(j);
    return command_result(c, &resp, sizeof(resp));
}
