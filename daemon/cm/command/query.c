// SPDX-License-Identifier: BSD-2-Clause
/* The queries of programs about an ID: addresses, GIDs and paths. RoCE has no path records of a subnet administrator, so they
 * are made here, as Linux makes them. */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/core/cm/cm.h"

#define PORT 1
#define PKEY 0xffffu
#define SELECT_EXACTLY 2u
#define PACKET_LIFE 18u /* 4.096 us * 2^18, as Linux assumes for RoCE */

/* Without the device's index, which the daemon does not know as the program counts. Then librdmacm finds the device by its
 * GUID. */
#define ADDR_RESP_LEN (offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
#define ROUTE_RESP_LEN (offsetof(struct rdma_ucm_query_route_resp, ibdev_index))

static bool has_device(const struct cm_id_info *info)
{
    return info->route.device != CM_NO_DEVICE;
}

/* Has the ID a path? Datagram services have none on the passive side. */
static bool has_path(const struct cm_id_info *info)
{
    return has_device(info) && info->state >= CM_ID_ROUTE_RESOLVED;
}

static size_t write_addr(const struct ucma_id *id, const struct cm_id_info *info, const struct cm_addr *a,
                         union ucma_sockaddr *out)
{
    if (!id->is_ib || cm_addr_is_none(a))
        return ucma_sockaddr_write(a, id->scope, out);
    memset(out, 0, sizeof(*out));
    ucma_sockaddr_write_ib(a, info->port_space, &out->ib);
    return sizeof(out->ib);
}

/* --- path records ------------------------------------------------------------------------------ */

static void write_route(const struct cm_id_info *info, struct ib_user_path_rec *r)
{
    memcpy(r->dgid, info->dst.gid, sizeof(r->dgid));
    memcpy(r->sgid, info->src.gid, sizeof(r->sgid));
    r->pkey = htobe16(PKEY);
    if (!has_path(info))
        return;
    r->hop_limit = info->route.hop_limit;
    r->traffic_class = info->route.traffic_class;
    r->reversible = 1;
    r->numb_path = 1;
    r->mtu_selector = r->rate_selector = r->packet_life_time_selector = SELECT_EXACTLY;
    r->mtu = info->route.path_mtu;
    r->rate = IBV_RATE_40_GBPS;
    r->packet_life_time = PACKET_LIFE;
}

static void write_path(const struct cm_id_info *info, struct ucma_path_data *p)
{
    memset(p, 0, sizeof(*p));
    p->flags = UCMA_PATH_FLAGS;
    memcpy(p->path.dgid, info->dst.gid, sizeof(p->path.dgid));
    memcpy(p->path.sgid, info->src.gid, sizeof(p->path.sgid));
    p->path.flow_hop = htobe32(info->route.hop_limit);
    p->path.traffic_class = info->route.traffic_class;
    p->path.reversible_count = 0x80 | 1;
    p->path.pkey = htobe16(PKEY);
    p->path.mtu = (uint8_t)(SELECT_EXACTLY << 6 | info->route.path_mtu);
    p->path.rate = SELECT_EXACTLY << 6 | IBV_RATE_40_GBPS;
    p->path.lifetime = SELECT_EXACTLY << 6 | PACKET_LIFE;
}

int command_query_route(struct command *c)
{
    struct rdma_ucm_query_route_resp resp = {0};
    union ucma_sockaddr src, dst;
    struct cm_id_info info;
    struct ucma_id *id;

    if (c->out_max < ROUTE_RESP_LEN)
        return -ENOSPC;
    int rc = command_id(c, c->in.query.id, &id);
    if (rc)
        return rc;
    cm_id_query(id->cm, &info);
    if (ucma_sockaddr_write(&info.src, id->scope, &src))
        resp.src_addr = src.v6;
    if (ucma_sockaddr_write(&info.dst, id->scope, &dst))
        resp.dst_addr = dst.v6;
    if (has_device(&info)) {
        resp.node_guid = htobe64(info.route.node_guid);
        resp.port_num = PORT;
        resp.num_paths = has_path(&info);
        write_route(&info, &resp.ib_route[0]);
    }
    return command_result(c, &resp, ROUTE_RESP_LEN);
}

/* --- QUERY ------------------------------------------------------------------------------------- */

static void write_device(const struct cm_id_info *info, struct rdma_ucm_query_addr_resp *resp)
{
    if (!has_device(info))
        return;
    resp->node_guid = htobe64(info->route.node_guid);
    resp->port_num = PORT;
    resp->pkey = htobe16(PKEY);
}

static int query_addr(struct command *c, const struct ucma_id *id, const struct cm_id_info *info)
{
    struct rdma_ucm_query_addr_resp resp = {0};
    union ucma_sockaddr sa;

    if (c->out_max < ADDR_RESP_LEN)
        return -ENOSPC;
    resp.src_size = (uint16_t)write_addr(id, info, &info->src, &sa);
    resp.src_addr = sa.storage;
    resp.dst_size = (uint16_t)write_addr(id, info, &info->dst, &sa);
    resp.dst_addr = sa.storage;
    write_device(info, &resp);
    return command_result(c, &resp, ADDR_RESP_LEN);
}

static int query_path(struct command *c, const struct cm_id_info *info)
{
    struct rdma_ucm_query_path_resp head = {.num_paths = has_path(info)};
    struct ucma_path_data path;
    uint8_t resp[sizeof(head) + sizeof(path)];

    if (c->out_max < sizeof(head))
        return -ENOSPC;
    write_path(info, &path);
    memcpy(resp, &head, sizeof(head));
    memcpy(resp + sizeof(head), &path, sizeof(path));
    bool all = has_path(info) && c->out_max >= sizeof(resp);
    return command_result(c, resp, all ? sizeof(resp) : sizeof(head));
}

static int query_gid(struct command *c, const struct cm_id_info *info)
{
    struct rdma_ucm_query_addr_resp resp = {0};
    union ucma_sockaddr sa = {0};

    if (c->out_max < ADDR_RESP_LEN)
        return -ENOSPC;
    write_device(info, &resp);
    resp.src_size = resp.dst_size = sizeof(sa.ib);
    ucma_sockaddr_write_ib(&info->src, info->port_space, &sa.ib);
    resp.src_addr = sa.storage;
    ucma_sockaddr_write_ib(&info->dst, info->port_space, &sa.ib);
    resp.dst_addr = sa.storage;
    return command_result(c, &resp, ADDR_RESP_LEN);
}

int command_query(struct command *c)
{
    struct cm_id_info info;
    struct ucma_id *id;
    int rc = command_id(c, c->in.query.id, &id);

    if (rc)
        return rc;
    cm_id_query(id->cm, &info);
    switch (c->in.query.option) {
    case RDMA_USER_CM_QUERY_ADDR:
        return query_addr(c, id, &info);
    case RDMA_USER_CM_QUERY_PATH:
        return query_path(c, &info);
    case RDMA_USER_CM_QUERY_GID:
        return query_gid(c, &info);
    default:
        return -ENOSYS;
    }
}
