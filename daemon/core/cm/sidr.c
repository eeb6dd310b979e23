// SPDX-License-Identifier: BSD-2-Clause
/* Datagram services (SIDR, IBA 12.11): the active side asks which QP serves a port, and the passive side tells. */
#include <errno.h>
#include <string.h>

#include "daemon/core/cm/handlers.h"
#include "daemon/core/cm/retry.h"

/* --- active side -------------------------------------------------------------------------------- */

int sidr_connect(struct cm_id *id, const struct cm_conn_param *param, uint64_t now)
{
    struct cm_msg m;
    if (!id->has_comm)
        cm_id_get_comm(id);
    message_begin(id, CM_SIDR_REQ, &m);
    m.sidr_req.pkey = CM_PKEY;
    m.sidr_req.service_id = cm_service_id(id->bind.port_space, id->dst.port);
    int rc = write_private_data(id, param, m.sidr_req.private_data, sizeof(m.sidr_req.private_data));
    if (rc)
        return rc;
    id->response_ns = cm_time_ns(id->cm->cfg.response_timeout);
    id->state = CM_ID_REQ_SENT;
    message_send_and_keep(id, &m);
    retry_start(id, now);
    CM_CHECK(id->cm);
    return 0;
}

static void write_av(const struct cm_id *id, struct av *av)
{
    *av = (struct av){
        .sgid_index = id->route.sgid_index,
        .traffic_class = id->route.traffic_class,
        .hop_limit = id->route.hop_limit,
    };
    memcpy(av->dgid, id->dst.gid, sizeof(av->dgid));
}

static void report_answer(struct cm_id *id, const struct cm_sidr_rep *p)
{
    struct cm_event ev = {.id = id, .ud = true, .ece = {p->ece_vendor_id, p->ece_attr_mod}};
    ev.param.private_data_len = CM_SIDR_REP_PRIVATE_LEN;
    memcpy(ev.param.private_data, p->private_data, CM_SIDR_REP_PRIVATE_LEN);
    if (p->status != CM_SIDR_SUCCESS) {
        ev.type = CM_EVENT_UNREACHABLE;
        ev.status = p->status;
    } else {
        ev.type = CM_EVENT_ESTABLISHED;
        ev.param.qp_num = p->qpn;
        ev.param.qkey = p->qkey;
        write_av(id, &ev.av);
    }
    cm_id_report(id, &ev);
}

void handle_sidr_rep(const struct received *r)
{
    const struct cm_sidr_rep *p = &r->m->sidr_rep;
    struct cm_id *id = find_peer(r, p->request_id, 0);
    if (!id)
        return;
    if (id->passive || id->qp_type != QPT_UD || id->state != CM_ID_REQ_SENT) {
        r->cm->counters.duplicates++;
        return;
    }
    set_disconnected(id);
    if (p->status == CM_SIDR_SUCCESS) {
        id->state = CM_ID_ESTABLISHED;
        id->remote_qpn = p->qpn;
        id->qkey = p->qkey;
        r->cm->counters.established++;
    }
    report_answer(id, p);
}

/* --- passive side ------------------------------------------------------------------------------- */

static uint64_t half(const uint8_t *bytes)
{
    uint64_t v;
    memcpy(&v, bytes, sizeof(v));
    return v;
}

static void answer_status(const struct received *r, enum cm_sidr_status status)
{
    struct cm_msg m = {.transaction_id = r->m->transaction_id, .attribute = CM_SIDR_REP};
    m.sidr_rep.request_id = r->m->sidr_req.request_id;
    m.sidr_rep.service_id = r->m->sidr_req.service_id;
    m.sidr_rep.status = (uint8_t)status;
    message_answer(r, &m);
}

void handle_sidr_req(const struct received *r)
{
    const struct cm_sidr_req *q = &r->m->sidr_req;
    struct comm_key key = {half(r->d->remote_gid), half(r->d->remote_gid + 8), q->request_id, COMM_SIDR};
    struct cm_ip_header h;
    struct comm_node *n = comm_table_find(&r->cm->comm, &key);
    if (n) {
        r->cm->counters.duplicates++;
        retry_answer_again(cm_id_of_remote(n), r->now); /* if it is answered yet */
        return;
    }
    struct cm_id *l = cm_ip_header_decode(q->private_data, &h) ? find_listener(r, q->service_id, &h) : NULL;
    if (!l || (l->qp_type && l->qp_type != QPT_UD)) {
        answer_status(r, l ? CM_SIDR_REJECT : CM_SIDR_UNSUPPORTED);
        return;
    }
    struct cm_id *id = new_child(r, l, QPT_UD, &h);
    if (!id)
        return;
    id->remote_comm_id = q->request_id;
    id->route.traffic_class = r->d->traffic_class;
    comm_table_insert(&r->cm->comm, &id->by_remote, &key);
    struct cm_event ev = {.ud = true};
    report_request(id, &ev, q->private_data, CM_SIDR_REQ_PRIVATE_LEN);
}

static void send_sidr_rep(struct cm_id *id, struct cm_msg *m, const uint8_t *private_data, uint8_t len, uint64_t now)
{
    m->sidr_rep.service_id = cm_service_id(id->bind.port_space, id->bind.addr.port);
    if (len)
        memcpy(m->sidr_rep.private_data, private_data, len);
    cm_id_leave_listener(id);
    id->may_delay = false;
    message_send_and_keep(id, m);
    retry_keep_answer(id, now);
}

static bool can_answer(const struct cm_id *id, uint8_t private_data_len)
{
    return id->passive && id->state == CM_ID_REQ_RECEIVED && private_data_len <= CM_SIDR_REP_PRIVATE_LEN;
}

int sidr_accept(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now)
{
    struct cm_msg m;
    if (!can_answer(id, param ? param->private_data_len : 0))
        return -EINVAL;
    id->state = CM_ID_ESTABLISHED;
    id->local_qpn = param ? param->qp_num & 0xffffff : 0;
    id->qkey = param && param->qkey ? param->qkey : CM_UDP_QKEY;
    id->ece = ece ? *ece : (struct cm_ece){0};
    id->cm->counters.established++;
    message_begin(id, CM_SIDR_REP, &m);
    m.sidr_rep.qpn = id->local_qpn;
    m.sidr_rep.qkey = id->qkey;
    m.sidr_rep.ece_vendor_id = id->ece.vendor_id;
    m.sidr_rep.ece_attr_mod = id->ece.attr_mod;
    send_sidr_rep(id, &m, param ? param->private_data : NULL, param ? param->private_data_len : 0, now);
    return 0;
}

int sidr_reject(struct cm_id *id, enum cm_sidr_status status, const uint8_t *private_data, uint8_t len, uint64_t now)
{
    struct cm_msg m;
    if (!can_answer(id, len))
        return -EINVAL;
    id->state = CM_ID_DISCONNECTED;
    id->sent_reject = true;
    message_begin(id, CM_SIDR_REP, &m);
    m.sidr_rep.status = (uint8_t)status;
    send_sidr_rep(id, &m, private_data, len, now);
    return 0;
}
