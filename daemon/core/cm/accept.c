// SPDX-License-Identifier: BSD-2-Clause
/* The passive side of connections. */
#include <errno.h>
#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/cm/handlers.h"
#include "daemon/core/cm/retry.h"

#define EVENT_COMM_EST 4u /* IBV_EVENT_COMM_EST */
#define SERVICE_TIMEOUT_MAX 24u /* a longer time in a message of the peer is not believed */

/* --- REQ: finding the listener ---------------------------------------------------------------------- */

struct cm_id *find_listener(const struct received *r, uint64_t service_id, const struct cm_ip_header *h)
{
    if (service_id >> 32)
        return NULL;
    struct binding *b = port_space_find(&r->cm->ports, (uint16_t)(service_id >> 16), (uint16_t)service_id,
                                        h->ip_version == 6, r->d->local_gid);
    return b ? list_entry(b, struct cm_id, bind) : NULL;
}

struct cm_id *new_child(const struct received *r, struct cm_id *listener, uint8_t qp_type, const struct cm_ip_header *h)
{
    struct cm_id *id = listener->unowned < listener->backlog ? cm_id_new(r->cm) : NULL;
    if (!id) {
        r->cm->counters.no_room++;
        return NULL;
    }
    id->qp_type = qp_type;
    id->bind.port_space = listener->bind.port_space;
    id->bind.addr.v6 = id->dst.v6 = h->ip_version == 6;
    memcpy(id->bind.addr.gid, r->d->local_gid, sizeof(id->bind.addr.gid));
    memcpy(id->dst.gid, r->d->remote_gid, sizeof(id->dst.gid));
    id->bind.addr.port = listener->bind.addr.port;
    id->dst.port = h->source_port;
    id->route = *r->route;
    id->route.hop_limit = CM_HOP_LIMIT;
    id->tos = listener->tos;
    id->tos_set = listener->tos_set;
    id->state = CM_ID_REQ_RECEIVED;
    id->passive = true;
    id->may_delay = true;
    cm_id_get_comm(id);
    id->tid = r->m->transaction_id;
    id->listener = listener;
    list_append(&listener->children, &id->sibling);
    listener->waiting++;
    listener->unowned++;
    return id;
}

void report_request(struct cm_id *child, struct cm_event *ev, const uint8_t *private_data, uint32_t len)
{
    struct cm_id *l = child->listener;
    ev->id = child;
    ev->listener = l;
    ev->type = CM_EVENT_CONNECT_REQUEST;
    ev->param.private_data_len = (uint8_t)(len - CM_IP_HEADER_LEN);
    memcpy(ev->param.private_data, private_data + CM_IP_HEADER_LEN, ev->param.private_data_len);
    if (event_list_add(&l->cm->events, &l->events, l->owner != NULL, ev))
        return;
    l->cm->counters.no_room++;
    cm_id_free(child);
}

/* --- REQ ------------------------------------------------------------------------------------------ */

/* enum qp_type of the passive side; 0: a transport that programs can't ask for. */
static uint8_t qp_type_of(const struct cm_req *q)
{
    switch (q->transport) {
    case CM_TRANSPORT_RC:
        return QPT_RC;
    case CM_TRANSPORT_UC:
        return QPT_UC;
    case CM_TRANSPORT_EXTENDED:
        return q->extended_transport == CM_EXTENDED_XRC ? QPT_XRC_RECV : 0;
    default:
        return 0;
    }
}

/* The peer repeats its REQ: it has not got our answer. */
static void answer_again(struct cm_id *id, const struct received *r)
{
    r->cm->counters.duplicates++;
    if (!cm_id_is_peer(id, r->d))
        return;
    switch (id->state) {
    case CM_ID_REQ_RECEIVED: {
        struct cm_msg m;
        message_begin(id, CM_MRA, &m);
        m.mra.answers = CM_ANSWERS_REQ;
        m.mra.service_timeout = CM_SERVICE_TIMEOUT;
        message_send(id, &m);
        break;
    }
    case CM_ID_REP_SENT:
    case CM_ID_DISCONNECTED:
        retry_answer_again(id, r->now); /* the REP, or the REJ */
        break;
    case CM_ID_TIME_WAIT:
        if (id->sent_reject)
            message_repeat(id); /* of an ID that had sent its REP */
        else
            message_answer_reject(r, CM_REJ_STALE_CONN);
        break;
    }
}

/* An older connection is with this QP of the peer. The peer does not know it any more. */
static void end_stale(struct cm_id *old, const struct received *r)
{
    message_answer_reject(r, CM_REJ_STALE_CONN);
    if (old->state == CM_ID_ESTABLISHED && cm_id_is_peer(old, r->d))
        send_dreq(old, r->now);
}

/* Why a REQ is rejected at once; 0: it is not. */
static enum cm_reject_reason wrong_with(const struct received *r, const struct cm_id *listener)
{
    const struct cm_req *q = &r->m->req;
    uint8_t qp_type = qp_type_of(q);
    if (memcmp(q->primary.local_gid, r->d->remote_gid, 16) != 0 ||
        memcmp(q->primary.remote_gid, r->d->local_gid, 16) != 0)
        return CM_REJ_INVALID_GID;
    if (!listener)
        return CM_REJ_INVALID_SERVICE_ID;
    if (!qp_type || (listener->qp_type && listener->qp_type != qp_type))
        return CM_REJ_INVALID_TRANSPORT_TYPE;
    if (q->path_mtu < 1 || q->path_mtu > r->route->path_mtu)
        return CM_REJ_INVALID_MTU;
    return (enum cm_reject_reason)0;
}

static void note_req(struct cm_id *id, const struct cm_req *q)
{
    id->remote_guid = q->local_ca_guid;
    id->remote_comm_id = q->local_comm_id;
    id->remote_qpn = q->local_qpn;
    id->responder_resources = q->initiator_depth;
    id->initiator_depth = q->responder_resources;
    id->retry_count = q->retry_count;
    id->rnr_retry_count = q->rnr_retry_count;
    id->sq_psn = q->starting_psn;
    id->rq_psn = cm_id_new_psn(id->cm);
    id->route.path_mtu = q->path_mtu;
    id->route.traffic_class = q->primary.traffic_class;
    id->ack_timeout_code = q->primary.local_ack_timeout ? q->primary.local_ack_timeout : 1;
    id->response_ns = cm_time_ns(min32(q->local_response_timeout, SERVICE_TIMEOUT_MAX));
    id->max_retries = q->max_cm_retries;
}

static void report_req(struct cm_id *id, const struct cm_req *q)
{
    struct cm_event ev = {
        .param =
            {
                .qp_num = q->local_qpn,
                .responder_resources = q->initiator_depth,
                .initiator_depth = q->responder_resources,
                .flow_control = q->flow_control,
                .retry_count = q->retry_count,
                .rnr_retry_count = q->rnr_retry_count,
                .srq = q->srq,
            },
        .ece = {q->ece_vendor_id, q->ece_attr_mod},
    };
    report_request(id, &ev, q->private_data, CM_REQ_PRIVATE_LEN);
}

void handle_req(const struct received *r)
{
    const struct cm_req *q = &r->m->req;
    struct comm_key remote = {.kind = COMM_REMOTE, .a = q->local_ca_guid, .number = q->local_comm_id};
    struct comm_key qp = {.kind = COMM_REMOTE_QP, .a = q->local_ca_guid, .number = q->local_qpn};
    struct cm_ip_header h;
    struct comm_node *n = comm_table_find(&r->cm->comm, &remote);
    if (n) {
        answer_again(cm_id_of_remote(n), r);
        return;
    }
    if ((n = comm_table_find(&r->cm->comm, &qp)) != NULL) {
        end_stale(cm_id_of_remote_qp(n), r);
        return;
    }
    struct cm_id *l = cm_ip_header_decode(q->private_data, &h) ? find_listener(r, q->service_id, &h) : NULL;
    enum cm_reject_reason wrong = wrong_with(r, l);
    if (wrong) {
        message_answer_reject(r, wrong);
        return;
    }
    struct cm_id *id = new_child(r, l, qp_type_of(q), &h);
    if (!id)
        return;
    note_req(id, q);
    comm_table_insert(&r->cm->comm, &id->by_remote, &remote);
    comm_table_insert(&r->cm->comm, &id->by_remote_qp, &qp);
    report_req(id, q);
}

void cm_forget_request(struct cm_id *id)
{
    struct cm *cm = id->cm;
    if (id->state == CM_ID_REQ_RECEIVED)
        cm_id_free(id);
    CM_CHECK(cm);
}

/* --- REP and RTU ------------------------------------------------------------------------------------ */

static void write_rep(struct cm_id *id, const struct cm_conn_param *param, struct cm_msg *m)
{
    struct cm_rep *p = &m->rep;
    message_begin(id, CM_REP, m);
    p->starting_psn = id->rq_psn;
    p->responder_resources = param->responder_resources;
    p->target_ack_delay = id->cm->cfg.ack_delay;
    p->rnr_retry_count = (uint8_t)min32(param->rnr_retry_count, 7);
    p->local_ca_guid = id->route.node_guid;
    p->ece_vendor_id = id->ece.vendor_id;
    p->ece_attr_mod = id->ece.attr_mod;
    if (id->qp_type == QPT_XRC_RECV) { /* it sends no requests, and receives in SRQs */
        p->local_eecn = id->local_qpn;
        p->srq = true;
    } else {
        p->local_qpn = id->local_qpn;
        p->initiator_depth = param->initiator_depth;
        p->flow_control = param->flow_control;
        p->srq = param->srq;
    }
    memcpy(p->private_data, param->private_data, param->private_data_len);
}

static int send_rep(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now)
{
    struct cm_msg m;
    if (id->state != CM_ID_REQ_RECEIVED || param->private_data_len > CM_REP_PRIVATE_LEN)
        return -EINVAL;
    cm_id_leave_listener(id);
    id->local_qpn = param->qp_num & 0xffffff;
    id->responder_resources = param->responder_resources;
    id->initiator_depth = param->initiator_depth;
    id->ece = ece ? *ece : (struct cm_ece){0};
    id->may_delay = false;
    id->state = CM_ID_REP_SENT;
    write_rep(id, param, &m);
    message_send_and_keep(id, &m);
    retry_start(id, now);
    return 0;
}

int cm_accept(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now)
{
    int rc = -EINVAL;
    if (!id->has_comm || id->disconnected)
        return -EINVAL;
    if (id->qp_type == QPT_UD)
        rc = sidr_accept(id, param, ece, now);
    else if (param)
        rc = send_rep(id, param, ece, now);
    else if (id->state == CM_ID_REP_RECEIVED)
        rc = connect_finish(id, now);
    if (rc) /* the peer must not wait for a program that failed */
        cm_reject(id, 0, NULL, 0, now);
    CM_CHECK(id->cm);
    return rc;
}

static void establish(struct cm_id *id)
{
    retry_stop(id);
    id->state = CM_ID_ESTABLISHED;
    id->has_kept = false;
    id->cm->counters.established++;
    cm_id_report_status(id, CM_EVENT_ESTABLISHED, 0);
}

/* The program has rejected or destroyed the ID after its REP, and the REJ was lost. Without an answer the peer would
 * believe that it is connected. */
static void refuse_rtu(struct cm_id *id, const struct received *r)
{
    r->cm->counters.bad_messages++;
    if (!id || id->remote_comm_id != r->m->rtu.local_comm_id)
        message_answer_reject(r, CM_REJ_INVALID_COMM_ID);
    else if (cm_id_is_peer(id, r->d) && id->sent_reject)
        retry_answer_again(id, r->now);
}

void handle_rtu(const struct received *r)
{
    struct cm_id *id = cm_id_by_local(r->cm, r->m->rtu.remote_comm_id);
    bool is_peer = id && id->remote_comm_id == r->m->rtu.local_comm_id && cm_id_is_peer(id, r->d);
    if (!is_peer || id->sent_reject)
        refuse_rtu(id, r);
    else if (id->state == CM_ID_REP_SENT)
        establish(id);
    else
        r->cm->counters.duplicates++;
}

int cm_notify(struct cm_id *id, uint32_t event, uint64_t now)
{
    (void)now;
    if (event != EVENT_COMM_EST || !id->has_comm)
        return -EINVAL;
    if (id->state == CM_ID_ESTABLISHED)
        return -EISCONN;
    if (id->state != CM_ID_REP_SENT)
        return -EINVAL;
    establish(id);
    CM_CHECK(id->cm);
    return 0;
}
