// SPDX-License-Identifier: BSD-2-Clause
/* The active side of connections. */
#include <errno.h>
#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/cm/handlers.h"
#include "daemon/core/cm/retry.h"

int write_private_data(const struct cm_id *id, const struct cm_conn_param *param, uint8_t *data, uint32_t size)
{
    struct cm_ip_header h = {.ip_version = id->bind.addr.v6 ? 6 : 4, .source_port = id->bind.addr.port};
    if (param->private_data_len > size - CM_IP_HEADER_LEN)
        return -EINVAL;
    memcpy(h.source, id->bind.addr.gid, sizeof(h.source));
    memcpy(h.destination, id->dst.gid, sizeof(h.destination));
    cm_ip_header_encode(&h, data);
    memcpy(data + CM_IP_HEADER_LEN, param->private_data, param->private_data_len);
    return 0;
}

static void write_path(const struct cm_id *id, struct cm_path *p)
{
    *p = (struct cm_path){
        .local_lid = 0xffff,
        .remote_lid = 0xffff,
        .traffic_class = id->route.traffic_class,
        .hop_limit = id->route.hop_limit,
        .local_ack_timeout = cm_ack_timeout(id->cm->cfg.ack_delay, id->cm->cfg.packet_life),
    };
    memcpy(p->local_gid, id->bind.addr.gid, sizeof(p->local_gid));
    memcpy(p->remote_gid, id->dst.gid, sizeof(p->remote_gid));
}

static void write_transport(const struct cm_id *id, const struct cm_conn_param *param, struct cm_req *q)
{
    q->transport = id->qp_type == QPT_RC   ? CM_TRANSPORT_RC
                   : id->qp_type == QPT_UC ? CM_TRANSPORT_UC
                                           : CM_TRANSPORT_EXTENDED;
    if (id->qp_type == QPT_XRC_SEND) { /* a QP without a receive side: it grants nothing, and is sent no requests */
        q->extended_transport = CM_EXTENDED_XRC;
        return;
    }
    q->responder_resources = param->responder_resources;
    q->retry_count = id->retry_count;
    q->rnr_retry_count = id->rnr_retry_count;
    q->srq = param->srq;
}

static int write_req(struct cm_id *id, const struct cm_conn_param *param, struct cm_msg *m)
{
    const struct cm_config *cfg = &id->cm->cfg;
    struct cm_req *q = &m->req;
    message_begin(id, CM_REQ, m);
    q->service_id = cm_service_id(id->bind.port_space, id->dst.port);
    q->local_ca_guid = id->route.node_guid;
    q->local_qpn = id->local_qpn;
    q->initiator_depth = param->initiator_depth;
    q->remote_response_timeout = q->local_response_timeout = cfg->response_timeout;
    q->flow_control = param->flow_control;
    q->starting_psn = id->rq_psn;
    q->max_cm_retries = cfg->max_retries;
    q->pkey = CM_PKEY;
    q->path_mtu = id->route.path_mtu;
    q->ece_vendor_id = id->ece.vendor_id;
    q->ece_attr_mod = id->ece.attr_mod;
    write_transport(id, param, q);
    write_path(id, &q->primary);
    return write_private_data(id, param, q->private_data, sizeof(q->private_data));
}

/* The QP and its limits, as the program gives them. */
static void note_param(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece)
{
    const struct cm_config *cfg = &id->cm->cfg;
    id->local_qpn = param->qp_num & 0xffffff;
    id->responder_resources = param->responder_resources;
    id->initiator_depth = param->initiator_depth;
    id->retry_count = (uint8_t)min32(param->retry_count, 7);
    id->rnr_retry_count = (uint8_t)min32(param->rnr_retry_count, 7);
    id->ack_timeout_code = (uint8_t)(cfg->packet_life + 1);
    id->response_ns = cm_time_ns(cfg->response_timeout) + 2 * cm_time_ns(cfg->packet_life);
    id->max_retries = cfg->max_retries;
    id->ece = ece ? *ece : (struct cm_ece){0};
}

static bool can_connect(uint8_t qp_type)
{
    return qp_type == QPT_RC || qp_type == QPT_UC || qp_type == QPT_XRC_SEND || qp_type == QPT_UD;
}

int cm_connect(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now)
{
    struct cm_msg m;
    if (id->state != CM_ID_ROUTE_RESOLVED || !can_connect(id->qp_type))
        return -EINVAL;
    note_param(id, param, ece);
    if (id->qp_type == QPT_UD)
        return sidr_connect(id, param, now);
    if (!id->has_comm) { /* a second try, after private data that were too long */
        cm_id_get_comm(id);
        id->rq_psn = cm_id_new_psn(id->cm);
    }
    int rc = write_req(id, param, &m);
    if (rc)
        return rc;
    id->state = CM_ID_REQ_SENT;
    message_send_and_keep(id, &m);
    retry_start(id, now);
    CM_CHECK(id->cm);
    return 0;
}

/* --- REP ------------------------------------------------------------------------------------------ */

struct cm_id *find_peer(const struct received *r, uint32_t local, uint32_t remote)
{
    struct cm_id *id = cm_id_by_local(r->cm, local);
    if (id && id->remote_comm_id == remote && cm_id_is_peer(id, r->d))
        return id;
    r->cm->counters.bad_messages++;
    return NULL;
}

static uint32_t rep_qpn(const struct cm_id *id, const struct cm_rep *p)
{
    return id->qp_type == QPT_XRC_SEND ? p->local_eecn : p->local_qpn;
}

/* The peer has a QP that an older connection of ours is with. That one is stale, or the peer errs. */
static bool is_stale(struct cm_id *id, const struct received *r)
{
    const struct cm_rep *p = &r->m->rep;
    struct comm_key qp = {.kind = COMM_REMOTE_QP, .a = p->local_ca_guid, .number = rep_qpn(id, p)};
    if (comm_table_insert(&r->cm->comm, &id->by_remote_qp, &qp))
        return false;
    struct cm_id *old = cm_id_of_remote_qp(comm_table_find(&r->cm->comm, &qp));
    message_answer_reject(r, CM_REJ_STALE_CONN);
    if (old->state == CM_ID_ESTABLISHED && cm_id_is_peer(old, r->d))
        send_dreq(old, r->now);
    return true;
}

static void report_response(struct cm_id *id, const struct cm_rep *p)
{
    struct cm_event ev = {
        .id = id,
        .type = CM_EVENT_CONNECT_RESPONSE,
        .param =
            {
                .qp_num = id->remote_qpn,
                .responder_resources = p->initiator_depth,
                .initiator_depth = p->responder_resources,
                .flow_control = p->flow_control,
                .rnr_retry_count = p->rnr_retry_count,
                .srq = p->srq,
                .private_data_len = CM_REP_PRIVATE_LEN,
            },
        .ece = {p->ece_vendor_id, p->ece_attr_mod},
    };
    memcpy(ev.param.private_data, p->private_data, CM_REP_PRIVATE_LEN);
    cm_id_report(id, &ev);
}

static void take_rep(struct cm_id *id, const struct received *r)
{
    const struct cm_rep *p = &r->m->rep;
    struct comm_key remote = {.kind = COMM_REMOTE, .a = p->local_ca_guid, .number = p->local_comm_id};
    if (is_stale(id, r))
        return;
    if (!comm_table_insert(&r->cm->comm, &id->by_remote, &remote)) {
        comm_table_remove(&r->cm->comm, &id->by_remote_qp);
        r->cm->counters.bad_messages++;
        return;
    }
    retry_stop(id);
    id->state = CM_ID_REP_RECEIVED;
    id->may_delay = true;
    id->has_kept = false;
    id->remote_guid = p->local_ca_guid;
    id->remote_comm_id = p->local_comm_id;
    id->remote_qpn = rep_qpn(id, p);
    id->responder_resources = p->initiator_depth;
    id->initiator_depth = p->responder_resources;
    id->sq_psn = p->starting_psn;
    id->rnr_retry_count = p->rnr_retry_count;
    id->target_ack_delay = p->target_ack_delay;
    id->ack_timeout_code = cm_ack_timeout(p->target_ack_delay, (uint8_t)(id->ack_timeout_code - 1));
    report_response(id, p);
}

/* The peer repeats its REP: it has not got our answer. */
static void answer_again(struct cm_id *id, const struct received *r)
{
    r->cm->counters.duplicates++;
    if (id->state == CM_ID_REP_RECEIVED) {
        struct cm_msg m;
        message_begin(id, CM_MRA, &m);
        m.mra.answers = CM_ANSWERS_REP;
        m.mra.service_timeout = CM_SERVICE_TIMEOUT;
        message_send(id, &m);
    } else if (id->state == CM_ID_DISCONNECTED && !id->has_kept) {
        message_answer_reject(r, CM_REJ_INVALID_COMM_ID);
    } else if (id->state == CM_ID_ESTABLISHED || id->state == CM_ID_DISCONNECTED) {
        retry_answer_again(id, r->now); /* the RTU, or the REJ */
    }
}

void handle_rep(const struct received *r)
{
    const struct cm_rep *p = &r->m->rep;
    struct cm_id *id = cm_id_by_local(r->cm, p->remote_comm_id);
    if (id && !cm_id_is_peer(id, r->d)) {
        r->cm->counters.bad_messages++;
        return;
    }
    if (id && !id->passive && id->state == CM_ID_REQ_SENT && id->qp_type != QPT_UD) {
        take_rep(id, r);
        return;
    }
    if (id && !id->passive && id->remote_comm_id == p->local_comm_id) {
        answer_again(id, r);
        return;
    }
    /* The program has destroyed the ID, or given up. Without this the peer would repeat the REP for a minute. */
    message_answer_reject(r, CM_REJ_INVALID_COMM_ID);
    r->cm->counters.bad_messages++;
}

int connect_finish(struct cm_id *id, uint64_t now)
{
    struct cm_msg m;
    (void)now;
    id->state = CM_ID_ESTABLISHED;
    id->may_delay = false;
    id->cm->counters.established++;
    message_begin(id, CM_RTU, &m);
    message_send_and_keep(id, &m);
    return 0;
}
