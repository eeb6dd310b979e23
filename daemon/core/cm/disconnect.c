// SPDX-License-Identifier: BSD-2-Clause
/* The end of connections: DREQ, DREP, time wait. */
#include <errno.h>
#include <string.h>

#include "daemon/core/cm/handlers.h"
#include "daemon/core/cm/retry.h"

void set_disconnected(struct cm_id *id)
{
    cm_id_set_timer(id, CM_TIMER_NONE, NEVER);
    cm_id_leave_tables(id);
    id->may_delay = false;
    id->has_kept = false;
    id->state = CM_ID_DISCONNECTED;
}

void set_disconnected_but_known(struct cm_id *id, uint64_t now)
{
    struct comm_key key = id->by_remote.key;
    set_disconnected(id);
    if (!key.kind)
        return;
    comm_table_insert(&id->cm->comm, &id->by_remote, &key);
    retry_keep_answer(id, now);
}

/* The QP of the peer may be used for a new connection at once. Delayed REQs of the old one are still known. */
void enter_time_wait(struct cm_id *id, uint64_t now)
{
    comm_table_remove(&id->cm->comm, &id->by_remote_qp);
    id->may_delay = false;
    id->state = CM_ID_TIME_WAIT;
    cm_id_set_timer(id, CM_TIMER_TIME_WAIT, now + cm_time_ns(id->ack_timeout_code));
}

static void end_time_wait(struct cm_id *id)
{
    set_disconnected(id);
    if (id->disconnected)
        cm_id_report_status(id, CM_EVENT_TIMEWAIT_EXIT, 0);
}

void send_dreq(struct cm_id *id, uint64_t now)
{
    struct cm_msg m;
    message_begin(id, CM_DREQ, &m);
    m.dreq.remote_qpn = id->remote_qpn;
    id->state = CM_ID_DREQ_SENT;
    message_send_and_keep(id, &m);
    retry_start(id, now);
}

static void send_drep(struct cm_id *id, uint64_t now)
{
    struct cm_msg m;
    message_begin(id, CM_DREP, &m);
    message_send_and_keep(id, &m);
    enter_time_wait(id, now);
}

int cm_disconnect(struct cm_id *id, uint64_t now)
{
    if (!id->has_comm)
        return -EINVAL;
    if (id->state == CM_ID_ESTABLISHED && id->qp_type != QPT_UD)
        send_dreq(id, now);
    else if (id->state == CM_ID_DREQ_RECEIVED)
        send_drep(id, now);
    CM_CHECK(id->cm);
    return 0;
}

static void report_disconnected(struct cm_id *id, int32_t status)
{
    if (id->disconnected)
        return;
    id->disconnected = true;
    cm_id_report_status(id, CM_EVENT_DISCONNECTED, status);
}

/* --- DREQ and DREP ------------------------------------------------------------------------------------ */

/* No connection of ours: the sender may forget it. */
static void answer_unknown(const struct received *r)
{
    struct cm_msg m = {.transaction_id = r->m->transaction_id, .attribute = CM_DREP};
    m.rtu.local_comm_id = r->m->dreq.remote_comm_id;
    m.rtu.remote_comm_id = r->m->dreq.local_comm_id;
    r->cm->counters.duplicates++;
    message_answer(r, &m);
}

void handle_dreq(const struct received *r)
{
    const struct cm_dreq *q = &r->m->dreq;
    struct cm_id *id = cm_id_by_local(r->cm, q->remote_comm_id);
    if (!id || id->remote_comm_id != q->local_comm_id) {
        answer_unknown(r);
        return;
    }
    if (!cm_id_is_peer(id, r->d) || id->local_qpn != q->remote_qpn || id->qp_type == QPT_UD) {
        r->cm->counters.bad_messages++;
        return;
    }
    switch (id->state) {
    case CM_ID_REP_SENT:
    case CM_ID_DREQ_SENT:
    case CM_ID_ESTABLISHED:
        break;
    case CM_ID_TIME_WAIT:
    case CM_ID_DISCONNECTED:
        answer_unknown(r);
        return;
    default:
        r->cm->counters.duplicates++;
        return;
    }
    retry_stop(id);
    id->has_kept = false;
    id->state = CM_ID_DREQ_RECEIVED;
    id->tid = r->m->transaction_id;
    report_disconnected(id, 0);
    if (id->is_ending) /* no program is left that would answer */
        send_drep(id, r->now);
}

void handle_drep(const struct received *r)
{
    struct cm_id *id = find_peer(r, r->m->rtu.remote_comm_id, r->m->rtu.local_comm_id);
    if (!id)
        return;
    if (id->state != CM_ID_DREQ_SENT && id->state != CM_ID_DREQ_RECEIVED) {
        r->cm->counters.duplicates++;
        return;
    }
    report_disconnected(id, 0);
    enter_time_wait(id, r->now);
}

/* --- timers ----------------------------------------------------------------------------------------- */

/* The peer did not answer. */
static void give_up(struct cm_id *id, uint64_t now)
{
    id->cm->counters.timeouts++;
    id->last_status = -ETIMEDOUT;
    switch (id->state) {
    case CM_ID_REQ_SENT:
        if (id->qp_type != QPT_UD)
            send_reject(id, CM_REJ_TIMEOUT, NULL, 0, now); /* the peer may know the REQ, and its REP was lost */
        set_disconnected(id);
        cm_id_report_status(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        break;
    case CM_ID_REP_SENT:
        set_disconnected_but_known(id, now);
        cm_id_report_status(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        break;
    default: /* DREQ_SENT */
        report_disconnected(id, -ETIMEDOUT);
        enter_time_wait(id, now);
        break;
    }
}

static void forget_answer(struct cm_id *id)
{
    id->has_kept = false;
    cm_id_leave_tables(id);
}

void handle_timer(struct cm_id *id, uint64_t now)
{
    uint8_t use = id->timer_use;
    id->timer_use = CM_TIMER_NONE;
    switch (use) {
    case CM_TIMER_RETRY:
        if (!retry_expire(id, now))
            give_up(id, now);
        break;
    case CM_TIMER_FORGET:
        forget_answer(id);
        break;
    case CM_TIMER_TIME_WAIT:
        end_time_wait(id);
        break;
    }
    if (id->is_ending && id->timer_use == CM_TIMER_NONE)
        cm_id_free(id);
}

/* --- the end of an ID ----------------------------------------------------------------------------------- */

/* Tells the peer, as cm_destroy_id of Linux. */
static void tell_peer(struct cm_id *id, uint64_t now)
{
    switch (id->state) {
    case CM_ID_REQ_SENT:
        if (id->qp_type == QPT_UD)
            set_disconnected(id);
        else
            send_reject(id, CM_REJ_TIMEOUT, NULL, 0, now);
        break;
    case CM_ID_REQ_RECEIVED:
        if (id->qp_type == QPT_UD) {
            sidr_reject(id, CM_SIDR_REJECT, NULL, 0, now);
            break;
        } /* fall through */
    case CM_ID_REP_SENT:
    case CM_ID_REP_RECEIVED:
        send_reject(id, CM_REJ_CONSUMER_DEFINED, NULL, 0, now);
        break;
    case CM_ID_ESTABLISHED:
        if (id->qp_type == QPT_UD)
            break;
        if (id->qp_type == QPT_XRC_RECV) /* its QP may serve other processes: the initiator disconnects */
            set_disconnected_but_known(id, now);
        else
            send_dreq(id, now);
        break;
    case CM_ID_DREQ_RECEIVED:
        send_drep(id, now);
        break;
    }
}

static void destroy(struct cm_id *id, uint64_t now);

static void end_listener(struct cm_id *id, uint64_t now)
{
    while (!list_empty(&id->children)) {
        struct cm_id *child = list_entry(id->children.next, struct cm_id, sibling);
        bool owned = child->owner != NULL;
        cm_id_leave_listener(child);
        if (!owned)
            destroy(child, now);
    }
}

static void destroy(struct cm_id *id, uint64_t now)
{
    struct cm_event ev;
    while (event_list_drop(&id->cm->events, &id->events, &ev)) {
    }
    end_listener(id, now);
    cm_id_leave_listener(id);
    port_space_release(&id->bind);
    id->is_ending = true;
    id->owner = NULL;
    tell_peer(id, now);
    if (id->timer_use == CM_TIMER_NONE)
        cm_id_free(id);
    else
        list_append(&id->cm->ending, &id->ending);
}

/* The owner has no pointer to the ID after this. The peer still may send messages about it: they find the ID as long
 * as its timer runs. */
void cm_id_destroy(struct cm_id *id, uint64_t now)
{
    struct cm *cm = id->cm;
    destroy(id, now);
    CM_CHECK(cm);
}
