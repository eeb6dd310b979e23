// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/message.h"

#include <string.h>

#define ROOM 4u /* messages that one timer makes at most */

static void count(struct cm_counters *c, uint16_t attribute)
{
    switch (attribute) {
    case CM_REQ:
    case CM_SIDR_REQ:
        c->req_sent++;
        break;
    case CM_REP:
    case CM_SIDR_REP:
        c->rep_sent++;
        break;
    case CM_RTU:
        c->rtu_sent++;
        break;
    case CM_REJ:
        c->rej_sent++;
        break;
    case CM_DREQ:
        c->dreq_sent++;
        break;
    case CM_DREP:
        c->drep_sent++;
        break;
    case CM_MRA:
        c->mra_sent++;
        break;
    }
}

/* A place in the ring. NULL: it is full. */
static struct cm_datagram *take_place(struct cm *cm, uint16_t attribute)
{
    if (cm->out_tail - cm->out_head == CM_OUT_SLOTS)
        return NULL;
    count(&cm->counters, attribute);
    return &cm->out[cm->out_tail++ % CM_OUT_SLOTS];
}

static void push(struct cm_id *id, uint16_t attribute, const uint8_t mad[MAD_LEN])
{
    struct cm_datagram *out = take_place(id->cm, attribute);
    if (!out)
        return;
    out->device = id->route.device;
    out->sgid_index = id->route.sgid_index;
    out->traffic_class = id->route.traffic_class;
    out->hop_limit = id->route.hop_limit;
    out->abandoned_qpn = id->is_ending ? id->local_qpn : 0;
    memcpy(out->local_gid, id->bind.addr.gid, sizeof(out->local_gid));
    memcpy(out->remote_gid, id->dst.gid, sizeof(out->remote_gid));
    memcpy(out->mad, mad, MAD_LEN);
}

void message_begin(const struct cm_id *id, uint16_t attribute, struct cm_msg *m)
{
    memset(m, 0, sizeof(*m));
    m->attribute = attribute;
    m->transaction_id = id->tid;
    switch (attribute) {
    case CM_REQ:
        m->req.local_comm_id = id->local_comm_id;
        break;
    case CM_MRA:
        m->mra.local_comm_id = id->local_comm_id;
        m->mra.remote_comm_id = id->remote_comm_id;
        break;
    case CM_REJ:
        m->rej.local_comm_id = id->local_comm_id;
        m->rej.remote_comm_id = id->remote_comm_id;
        break;
    case CM_REP:
        m->rep.local_comm_id = id->local_comm_id;
        m->rep.remote_comm_id = id->remote_comm_id;
        break;
    case CM_RTU:
    case CM_DREP:
        m->rtu.local_comm_id = id->local_comm_id;
        m->rtu.remote_comm_id = id->remote_comm_id;
        break;
    case CM_DREQ:
        m->dreq.local_comm_id = id->local_comm_id;
        m->dreq.remote_comm_id = id->remote_comm_id;
        break;
    case CM_SIDR_REQ:
        m->sidr_req.request_id = id->local_comm_id;
        break;
    case CM_SIDR_REP:
        m->sidr_rep.request_id = id->remote_comm_id;
        break;
    }
}

void message_send(struct cm_id *id, const struct cm_msg *m)
{
    uint8_t mad[MAD_LEN];
    cm_msg_encode(m, mad);
    push(id, m->attribute, mad);
}

void message_send_and_keep(struct cm_id *id, const struct cm_msg *m)
{
    cm_msg_encode(m, id->kept);
    id->has_kept = true;
    push(id, m->attribute, id->kept);
}

void message_repeat(struct cm_id *id)
{
    struct mad_header h;
    if (!id->has_kept)
        return;
    mad_decode(id->kept, &h);
    push(id, h.attribute_id, id->kept);
    id->cm->counters.retries++;
}

void message_answer(const struct received *r, const struct cm_msg *m)
{
    struct cm_datagram *out = take_place(r->cm, m->attribute);
    if (!out)
        return;
    *out = *r->d;
    out->abandoned_qpn = 0;
    out->device = r->route->device;
    out->sgid_index = r->route->sgid_index;
    out->hop_limit = CM_HOP_LIMIT;
    cm_msg_encode(m, out->mad);
}

void message_answer_reject(const struct received *r, enum cm_reject_reason reason)
{
    struct cm_msg m = {.transaction_id = r->m->transaction_id, .attribute = CM_REJ};
    m.rej.reason = (uint16_t)reason;
    switch (r->m->attribute) {
    case CM_REP:
        m.rej.answers = CM_ANSWERS_REP;
        m.rej.remote_comm_id = r->m->rep.local_comm_id;
        m.rej.local_comm_id = r->m->rep.remote_comm_id;
        break;
    case CM_RTU:
        m.rej.answers = CM_ANSWERS_OTHER;
        m.rej.remote_comm_id = r->m->rtu.local_comm_id;
        m.rej.local_comm_id = r->m->rtu.remote_comm_id;
        break;
    default:
        m.rej.answers = CM_ANSWERS_REQ;
        m.rej.remote_comm_id = r->m->req.local_comm_id;
        break;
    }
    message_answer(r, &m);
}

bool message_has_room(const struct cm *cm)
{
    return CM_OUT_SLOTS - (cm->out_tail - cm->out_head) >= ROOM;
}
