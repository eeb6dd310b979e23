// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/qp_attr.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_ring.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "wire/gid.h"

/* Checks the fields that are wider in the message than in the engine, so that no bits get lost. */
static bool fits(const struct pm_qp_attr *a, uint32_t mask)
{
    return (!(mask & QPA_STATE) || a->qp_state <= UINT8_MAX) &&
           (!(mask & QPA_CUR_STATE) || a->cur_qp_state <= UINT8_MAX) &&
           (!(mask & QPA_PATH_MTU) || a->path_mtu <= UINT8_MAX);
}

static int check_address(const struct session *s, const struct pm_av *av, struct control_reply *rp)
{
    const struct device *d = s->device;
    char gid[ADDR_TEXT_MAX], own[ADDR_TEXT_MAX];
    union addr to;

    const struct gid_entry *from = gid_table_at(&d->gids, device_gid_entry(d, av->sgid_index));
    if (!from)
        return control_fail(rp, -EINVAL, "source GID index %u: device %s has no address there", av->sgid_index,
                            d->name);
    if (gid_is_multicast(av->dgid) || !gid_to_addr(av->dgid, &from->addr, &to))
        return control_fail(rp, -EINVAL, "destination GID %s can't be reached from GID index %u, address %s",
                            gid_text(av->dgid, gid), av->sgid_index, addr_text(&from->addr, own));
    return 0;
}

static void attr_in(const struct device *d, const struct pm_qp_attr *a, struct qp_attr *out)
{
    *out = (struct qp_attr){
        .state = (uint8_t)a->qp_state,
        .cur_state = (uint8_t)a->cur_qp_state,
        .port = a->port_num,
        .path_mtu = (uint8_t)a->path_mtu,
        .timeout = a->timeout,
        .retry_cnt = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
        .min_rnr_timer = a->min_rnr_timer,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .sqd_async_notify = a->en_sqd_async_notify != 0,
        .pkey_index = a->pkey_index,
        .access =
            a->qp_access_flags & ~(uint32_t)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND),
        .dest_qpn = a->dest_qp_num,
        .rq_psn = a->rq_psn,
        .sq_psn = a->sq_psn,
        .qkey = a->qkey,
    };
    memcpy(out->av.dgid, a->av.dgid, sizeof(out->av.dgid));
    out->av.sgid_index = (uint8_t)device_gid_entry(d, a->av.sgid_index);
    out->av.traffic_class = a->av.traffic_class;
    out->av.hop_limit = a->av.hop_limit;
    out->av.sl = a->av.sl;
    out->av.flow_label = a->av.flow_label;
}

static void attr_out(const struct client_qp *q, const struct qp_attr *a, struct pm_qp_attr *out)
{
    *out = (struct pm_qp_attr){
        .qp_state = a->state,
        .cur_qp_state = a->state,
        .path_mtu = a->path_mtu,
        .path_mig_state = IBV_MIG_MIGRATED,
        .qkey = a->qkey,
        .rq_psn = a->rq_psn,
        .sq_psn = a->sq_psn,
        .dest_qp_num = a->dest_qpn,
        .qp_access_flags = a->access,
        .pkey_index = a->pkey_index,
        .en_sqd_async_notify = a->sqd_async_notify,
        .sq_draining = a->sq_draining,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .min_rnr_timer = a->min_rnr_timer,
        .port_num = a->port,
        .timeout = a->timeout,
        .retry_cnt = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
    };
    memcpy(out->av.dgid, a->av.dgid, sizeof(out->av.dgid));
    out->av.sgid_index = (uint8_t)(device_gid_index(q->device, a->av.sgid_index) - q->gid_v1);
    out->av.traffic_class = a->av.traffic_class;
    out->av.hop_limit = a->av.hop_limit;
    out->av.sl = a->av.sl;
    out->av.flow_label = a->av.flow_label;
}

/* Tells the other devices of the daemon which QP this one takes packets from. A QP in ERR takes none. */
static void publish_peer(struct client_qp *q)
{
    struct device *d = q->device;
    struct qp_attr attr;

    if (!d->connections || q->type == IBV_QPT_UD)
        return;
    qp_query(q->qp, &attr);
    connections_set_peer(d->connections, d->index, q->qpn, attr.state >= QPS_RTR ? attr.dest_qpn : 0);
}

static void after_modify(struct client_qp *q, uint32_t mask)
{
    if (!(mask & QPA_STATE))
        return;
    publish_peer(q);
    if (qp_state(q->qp) == QPS_RESET) {
        client_qp_reset_rings(q);
        qp_streams_restart(&q->streams);
    } else if (qp_state(q->qp) == QPS_ERR) {
        client_qp_mark_failed(q); /* handled in the next pass, before the loop sleeps */
    } else if (qp_state(q->qp) == QPS_RTR) {
        q->device->usage.connected += q->type != IBV_QPT_UD;
    }
}

int client_qp_check_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_qp_req *r = rq;
    const struct device_limits *l = &s->device->limits;

    if (!client_qp_find(s, r->qpn))
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", r->qpn);
    if (!fits(&r->attr, r->mask))
        return control_fail(rp, -EINVAL, "an attribute is out of its range");
    if (r->mask & QPA_MAX_RD_ATOMIC && r->attr.max_rd_atomic > l->max_init_rd_atomic)
        return control_fail(rp, -EINVAL, "max_rd_atomic is %u, the limit is %u (max_qp_init_rd_atom)",
                            r->attr.max_rd_atomic, l->max_init_rd_atomic);
    if (r->mask & QPA_MAX_DEST_RD_ATOMIC && r->attr.max_dest_rd_atomic > l->max_rd_atomic)
        return control_fail(rp, -EINVAL, "max_dest_rd_atomic is %u, the limit is %u (max_qp_rd_atom)",
                            r->attr.max_dest_rd_atomic, l->max_rd_atomic);
    return r->mask & QPA_AV ? check_address(s, &r->attr.av, rp) : 0;
}

int client_qp_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_qp_req *r = rq;
    struct client_qp *q = client_qp_find(s, r->qpn);
    const char *why = NULL;
    struct pm_handle *rep;
    struct qp_attr attr;

    int rc = client_qp_check_modify(s, rq, rp);
    if (rc)
        return rc;
    if (r->mask & (QPA_ALT_PATH | QPA_RATE_LIMIT))
        return control_fail(rp, -EOPNOTSUPP, "alternate paths and rate limits are not offered");
    attr_in(s->device, &r->attr, &attr);
    rc = qp_modify(q->qp, &attr, r->mask, &why);
    if (rc)
        return control_fail(rp, rc, "%s", why ? why : "the transition is not allowed");
    if (r->mask & QPA_AV)
        q->gid_v1 = device_gid_is_v1(s->device, r->attr.av.sgid_index);
    after_modify(q, r->mask);
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = qp_state(q->qp);
    return 0;
}

int client_qp_query(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct client_qp *q = client_qp_find(s, h->handle);
    struct pm_query_qp_rep *rep;
    struct qp_attr attr;

    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", h->handle);
    qp_query(q->qp, &attr);
    rep = control_payload(rp, sizeof(*rep));
    attr_out(q, &attr, &rep->attr);
    return 0;
}
