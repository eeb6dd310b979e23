// SPDX-License-Identifier: BSD-2-Clause
/* Rejecting connections, and the messages about a message of ours: REJ, MRA. Alternate paths are refused: a RoCE device
 * has one port. */
#include <errno.h>
#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/cm/handlers.h"
#include "daemon/core/cm/retry.h"

#define GUID_LEN 8u

static enum cm_answered answered_in(uint8_t state)
{
    switch (state) {
    case CM_ID_REQ_RECEIVED:
        return CM_ANSWERS_REQ;
    case CM_ID_REP_RECEIVED:
        return CM_ANSWERS_REP;
    default:
        return CM_ANSWERS_OTHER;
    }
}

/* The peer of a REJ for a timeout does not know our communication ID. It finds its own by the GUID of our device. */
static void write_guid(struct cm_rej *j, uint64_t guid)
{
    j->ari_len = GUID_LEN;
    for (unsigned i = 0; i < GUID_LEN; i++)
        j->ari[i] = (uint8_t)(guid >> (56 - 8 * i));
}

static uint64_t read_guid(const struct cm_rej *j)
{
    uint64_t guid = 0;
    for (unsigned i = 0; i < GUID_LEN; i++)
        guid = guid << 8 | j->ari[i];
    return guid;
}

void send_reject(struct cm_id *id, uint8_t reason, const uint8_t *private_data, uint8_t len, uint64_t now)
{
    bool is_accepted = id->state == CM_ID_REP_SENT;
    struct cm_msg m;
    message_begin(id, CM_REJ, &m);
    m.rej.answers = (uint8_t)answered_in(id->state);
    m.rej.reason = reason;
    if (reason == CM_REJ_TIMEOUT)
        write_guid(&m.rej, id->route.node_guid);
    if (len)
        memcpy(m.rej.private_data, private_data, len);
    id->last_reject = reason;
    id->sent_reject = true;
    if (is_accepted) {
        message_send_and_keep(id, &m);
        enter_time_wait(id, now);
        return;
    }
    /* The REJ may be lost. Then the peer repeats its message, and gets the REJ again. */
    set_disconnected_but_known(id, now);
    message_send_and_keep(id, &m);
}

int cm_reject(struct cm_id *id, uint8_t reason, const uint8_t *private_data, uint8_t len, uint64_t now)
{
    if (!id->has_comm)
        return -EINVAL;
    if (id->qp_type == QPT_UD)
        return sidr_reject(id, CM_SIDR_REJECT, private_data, len, now);
    if (len > CM_REJ_PRIVATE_LEN)
        return -EINVAL;
    switch (id->state) {
    case CM_ID_REQ_SENT:
    case CM_ID_REQ_RECEIVED:
    case CM_ID_REP_SENT:
    case CM_ID_REP_RECEIVED:
        cm_id_leave_listener(id);
        send_reject(id, reason ? reason : CM_REJ_CONSUMER_DEFINED, private_data, len, now);
        CM_CHECK(id->cm);
        return 0;
    default:
        return -EINVAL;
    }
}

/* --- REJ ------------------------------------------------------------------------------------------ */

static struct cm_id *find_rejected(const struct received *r)
{
    const struct cm_rej *j = &r->m->rej;
    if (j->remote_comm_id) {
        struct cm_id *id = cm_id_by_local(r->cm, j->remote_comm_id);
        /* The peer knows its communication ID and we do not: it rejects the REQ, or the REJ came before the REP. */
        bool same = id && (id->remote_comm_id == j->local_comm_id || id->state == CM_ID_REQ_SENT);
        return same && cm_id_is_peer(id, r->d) ? id : NULL;
    }
    if (j->reason != CM_REJ_TIMEOUT || j->ari_len < GUID_LEN)
        return NULL;
    struct comm_key key = {.kind = COMM_REMOTE, .a = read_guid(j), .number = j->local_comm_id};
    struct comm_node *n = comm_table_find(&r->cm->comm, &key);
    return n && cm_id_is_peer(cm_id_of_remote(n), r->d) ? cm_id_of_remote(n) : NULL;
}

static void report_reject(struct cm_id *id, const struct cm_rej *j)
{
    struct cm_event ev = {.id = id, .type = CM_EVENT_REJECTED, .status = j->reason};
    if (id->disconnected)
        return;
    ev.param.private_data_len = CM_REJ_PRIVATE_LEN;
    memcpy(ev.param.private_data, j->private_data, CM_REJ_PRIVATE_LEN);
    cm_id_report(id, &ev);
}

void handle_rej(const struct received *r)
{
    struct cm_id *id = find_rejected(r);
    if (!id || id->qp_type == QPT_UD) {
        r->cm->counters.bad_messages++;
        return;
    }
    bool stale = r->m->rej.reason == CM_REJ_STALE_CONN;
    switch (id->state) {
    case CM_ID_REQ_SENT:
    case CM_ID_REQ_RECEIVED:
    case CM_ID_REP_SENT:
        break;
    case CM_ID_DREQ_SENT:
    case CM_ID_REP_RECEIVED:
    case CM_ID_ESTABLISHED:
        stale = true; /* the QPs may have been in use */
        break;
    default:
        r->cm->counters.duplicates++;
        return;
    }
    cm_id_leave_listener(id);
    id->last_reject = r->m->rej.reason;
    id->sent_reject = false;
    report_reject(id, &r->m->rej);
    if (stale)
        enter_time_wait(id, r->now);
    else
        set_disconnected_but_known(id, r->now);
}

/* --- MRA and LAP ---------------------------------------------------------------------------------- */

void handle_mra(const struct received *r)
{
    const struct cm_mra *a = &r->m->mra;
    struct cm_id *id = find_peer(r, a->remote_comm_id, a->answers == CM_ANSWERS_REQ ? 0 : a->local_comm_id);
    if (!id)
        return;
    if ((id->state == CM_ID_REQ_SENT && a->answers == CM_ANSWERS_REQ) ||
        (id->state == CM_ID_REP_SENT && a->answers == CM_ANSWERS_REP)) {
        if (id->mra_received) {
            r->cm->counters.duplicates++;
            return;
        }
        uint64_t service = cm_time_ns(min32(a->service_timeout, CM_SERVICE_TIMEOUT));
        retry_wait_longer(id, service + cm_time_ns(id->ack_timeout_code), r->now);
    }
}

void handle_lap(const struct received *r)
{
    const struct cm_lap *l = &r->m->lap;
    struct cm_msg m = {.transaction_id = r->m->transaction_id, .attribute = CM_APR};
    struct cm_id *id = find_peer(r, l->remote_comm_id, l->local_comm_id);
    if (!id || id->state != CM_ID_ESTABLISHED)
        return;
    m.apr.local_comm_id = id->local_comm_id;
    m.apr.remote_comm_id = id->remote_comm_id;
    m.apr.ap_status = CM_APR_UNSUPPORTED;
    message_answer(r, &m);
}
