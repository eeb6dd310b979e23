// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/cm/host/ucma_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

#define PORT 1 /* each device has one */

void ucma_copy_ah(const struct cm_host *h, const struct av *av, struct ib_uverbs_ah_attr *out)
{
    const uint8_t v1 = h->devices.info[0].gid_v1; /* the devices of a daemon have one profile */

    memset(out, 0, sizeof(*out));
    memcpy(out->grh.dgid, av->dgid, sizeof(out->grh.dgid));
    out->grh.flow_label = av->flow_label;
    out->grh.sgid_index = (uint8_t)(av->sgid_index << v1 | v1);
    out->grh.hop_limit = av->hop_limit;
    out->grh.traffic_class = av->traffic_class;
    out->sl = av->sl;
    out->is_global = 1;
    out->port_num = PORT;
}

static void copy_private_data(const struct cm_conn_param *from, uint8_t *data, uint8_t *len)
{
    memcpy(data, from->private_data, from->private_data_len);
    *len = from->private_data_len;
}

static void write_resp(const struct cm_host *h, const struct cm_event *ev, struct rdma_ucm_event_resp *r)
{
    memset(r, 0, sizeof(*r));
    r->event = ev->type;
    r->status = (uint32_t)ev->status;
    r->ece.vendor_id = ev->ece.vendor_id;
    r->ece.attr_mod = ev->ece.attr_mod;
    if (ev->ud) {
        r->param.ud.qp_num = ev->param.qp_num;
        r->param.ud.qkey = ev->param.qkey;
        ucma_copy_ah(h, &ev->av, &r->param.ud.ah_attr);
        copy_private_data(&ev->param, r->param.ud.private_data, &r->param.ud.private_data_len);
        return;
    }
    struct rdma_ucm_conn_param *c = &r->param.conn;
    c->qp_num = ev->param.qp_num;
    c->qkey = ev->param.qkey;
    c->srq = ev->param.srq;
    c->responder_resources = ev->param.responder_resources;
    c->initiator_depth = ev->param.initiator_depth;
    c->flow_control = ev->param.flow_control;
    c->retry_count = ev->param.retry_count;
    c->rnr_retry_count = ev->param.rnr_retry_count;
    copy_private_data(&ev->param, c->private_data, &c->private_data_len);
}

static int add(struct ucma_id *id, struct ucma_id *child, struct ucma_join *join,
               const struct rdma_ucm_event_resp *resp)
{
    if (id->channel->over || id->channel->num_notes >= UCMA_EVENTS_MAX)
        return -ENOBUFS;
    struct cm_note *n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->id = id;
    n->child = child;
    n->join = join;
    n->resp = *resp;
    n->resp.uid = join ? join->uid : id->uid;
    n->resp.id = join ? join->number : child ? child->number : id->number;
    cm_channel_add(id->channel, n);
    return 0;
}

int ucma_event_add(struct ucma_id *id, struct ucma_join *join, const struct rdma_ucm_event_resp *resp)
{
    return add(id, NULL, join, resp);
}

/* A new connection becomes an ID of the listener's channel. If the channel can't take it, it is forgotten. As
 * with Linux, the peer then repeats its request. */
static void deliver_request(const struct cm_host *h, const struct cm_event *ev, struct ucma_id *listener, uint64_t now)
{
    struct rdma_ucm_event_resp resp;
    char why[QUOTA_WHY_MAX];
    struct ucma_id *child;

    if (listener->requests >= listener->backlog || listener->channel->over ||
        ucma_id_create(listener->channel, ev->id, 0, &child, why) != 0) {
        cm_forget_request(ev->id); /* the peer repeats it */
        return;
    }
    cm_id_set_owner(ev->id, child);
    child->scope = listener->scope;
    child->is_ib = listener->is_ib;
    write_resp(h, ev, &resp);
    if (add(listener, child, NULL, &resp) == 0)
        listener->requests++;
    else
        ucma_id_destroy(child, now);
}

static void deliver(struct cm_host *h, const struct cm_event *ev, uint64_t now)
{
    struct rdma_ucm_event_resp resp;
    struct ucma_id *id;

    if (ev->type == CM_EVENT_CONNECT_REQUEST) {
        deliver_request(h, ev, cm_id_owner(ev->listener), now);
        return;
    }
    id = cm_id_owner(ev->id);
    cm_failures_note(&h->failures, ev, id->owner.uid, id->channel->pid, now);
    /* A program knows nothing of a connection that it has not accepted. If that fails meanwhile, the accept fails. */
    if (!id->uid)
        return;
    write_resp(h, ev, &resp);
    int rc = ucma_event_add(id, NULL, &resp);
    if (rc && !id->channel->over)
        log_warn("pid %d, uid %u: an event of connection management is lost: %s", (int)id->channel->pid,
                 (unsigned)id->owner.uid, strerror(-rc));
}

void ucma_events_deliver(struct cm_host *h, uint64_t now)
{
    struct cm_event ev;

    while (cm_pop_event(h->cm, &ev))
        deliver(h, &ev, now);
}
