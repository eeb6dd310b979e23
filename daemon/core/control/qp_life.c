// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/qp_life.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/memory/mw.h"
#include "daemon/core/path/mcast.h"
#include "daemon/core/qp/comp_cntr.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/qp_type.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/responder/receive.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/srq.h"
#include "daemon/core/tm/tag_list.h"
#include "wire/gid.h"

/* The caps that take effect. With an SRQ the receive queue holds the one request that a message has taken. */
static struct qp_caps caps_of(const struct qp_init *init)
{
    struct qp_caps caps = init->caps;
    if (init->type == QPT_XRC_RECV)
        return (struct qp_caps){.max_recv_wr = 1, .max_recv_sge = ENGINE_MAX_SGE}; /* of any SRQ of its domain */
    if (init->type == QPT_XRC_SEND) {
        caps.max_recv_wr = caps.max_recv_sge = 0;
    } else if (init->srq) {
        caps.max_recv_wr = 1;
        caps.max_recv_sge = init->srq->max_sge;
    }
    return caps;
}

#define QP_BYTES ((sizeof(struct qp) + 63) & ~(size_t)63)

size_t qp_state_size(void)
{
    return QP_BYTES;
}

size_t qp_size(const struct qp_init *init)
{
    struct qp_caps caps = caps_of(init);
    if (caps.max_send_wr > QUEUE_MAX_WR || caps.max_recv_wr > QUEUE_MAX_WR || caps.max_send_sge > ENGINE_MAX_SGE ||
        caps.max_recv_sge > ENGINE_MAX_SGE || caps.max_inline > ENGINE_MAX_INLINE)
        return 0;
    return QP_BYTES + qp_traffic_size(&caps, init->srq && init->srq->tm);
}

#define FIRST_QPN 17u
#define LAST_QPN (QPN_MULTICAST - 1)
#define QPN_BITS 24u

/* Gives the QP the next number whose slot in the table is free. */
static int assign_number(struct engine *e, struct qp *qp)
{
    if (e->qps.count == e->cfg.max_qp)
        return -ENOMEM;
    qp_table_grow(&e->qps);
    for (;;) {
        uint32_t qpn = permute(&e->cfg.number_secret, 0, QPN_BITS, e->next_qpn);
        e->next_qpn = (e->next_qpn + 1) & QPN_MASK;
        if (qpn < FIRST_QPN || qpn > LAST_QPN || !qp_table_is_free(&e->qps, qpn))
            continue;
        qp->qpn = qpn;
        qp_table_add(&e->qps, qpn, qp);
        return 0;
    }
}

/* Does the QP have what its type needs (IBA 11.2.5.1, A14.2)? */
static bool has_all_parts(const struct engine *e, const struct qp_init *init)
{
    switch (init->type) {
    case QPT_XRC_SEND:
        return init->pd && init->send_cq && !init->srq;
    case QPT_XRC_RECV:
        return init->xrcd && !init->srq;
    default:
        return init->pd && init->send_cq && init->recv_cq && !(init->srq && (init->srq->xrcd || init->srq->e != e));
    }
}

int qp_create(struct engine *e, const struct qp_init *init, void *mem, struct qp **out)
{
    const struct qp_type_info *type = qp_type_info(init->type);
    if (!type->exists || !has_all_parts(e, init) || qp_size(init) == 0)
        return -EINVAL;
    if (init->srq && init->srq->tm && init->type != QPT_RC)
        return -EINVAL;
    struct qp *qp = mem;
    int err = assign_number(e, qp);
    if (err)
        return err;
    qp->e = e;
    sched_entity_init(&qp->sched, init->share ? init->share : &e->scheduler.common);
    list_init(&qp->groups);
    list_init(&qp->windows);
    list_init(&qp->urgent);
    timer_init(&qp->timer);
    qp->owner = init->owner;
    qp->send_cq = init->send_cq;
    qp->recv_cq = init->recv_cq;
    qp->pd = init->pd;
    qp->xrcd = init->xrcd;
    qp->type = init->type;
    qp->service = type->service;
    qp->send_ops = type->send_ops;
    qp->sq_sig_all = init->sq_sig_all;
    qp->caps = caps_of(init);
    qp_traffic_attach(qp, init->queues ? init->queues : (uint8_t *)qp + QP_BYTES);
    list_init(&qp->taker);
    if (init->srq) {
        qp->tm = init->srq->tm;
        qp->srqn = init->srq->number;
        init->srq->users++;
    }
    qp->attr.state = QPS_RESET;
    if (qp->tm)
        qp_wake(qp);
    *out = qp;
    return 0;
}

/* Takes the QP off all lists of the engine, but not out of the table of QPs. A request that it took from an SRQ goes
 * back there: no completion will name the request, so its owner could not use the slot again. */
static void detach(struct qp *qp)
{
    struct engine *e = qp->e;
    if (qp->awake) {
        resp_drop_responses(qp);
        reorder_clear(&e->reorder, &qp->resp->held);
        reorder_clear(&e->reorder, &qp->req->held);
        sched_make_unready(&qp->sched);
        sched_stop_waiting(&qp->sched);
        list_remove(&qp->urgent);
        tm_detach(qp);
        srq_put_back(qp);
        timer_wheel_set(e->timers, &qp->timer, NEVER);
    }
    if (qp->peer && qp->type != QPT_UD) {
        if (qp->awake)
            qp_release(qp, qp->req->inflight);
        peer_window_put(qp->peer);
        if (qp->peer->users == 0)
            timer_wheel_set(e->timers, &qp->peer->congestion.timer, NEVER);
    }
    qp->peer = NULL;
}

/* Nothing points at the QP afterwards. Its windows are unbound. It is off all lists, and its timer is stopped (detach).
 * It is out of the table. Its queued completions and events are dropped. Packets of earlier batches are the owner's.
 * The owner has sent them before it makes control calls. */
void qp_destroy(struct qp *qp)
{
    struct engine *e = qp->e;
    struct time_wait received;
    if (qp->awake && resp_received(qp, &received))
        time_wait_add(&e->time_wait, &received);
    mw_unbind_all(&e->keys, &qp->windows);
    mcast_leave_all(&e->mcast, &qp->groups);
    detach(qp);
    completion_forget(qp);
    comp_cntr_detach(qp);
    if (qp->srqn)
        srq_find(e, qp->srqn)->users--;
    qp_table_remove(&e->qps, qp->qpn);
}

/* To RESET: all requests vanish without completions (IBA 10.3.1.1). */
void qp_reset(struct qp *qp)
{
    detach(qp);
    qp->attr = (struct qp_attr){.state = QPS_RESET};
    if (!qp->awake)
        return;
    qp->req->sq.head = qp->req->sq.tail;
    qp->resp->rq.head = qp->resp->rq.tail;
    qp->last_wqe_reported = false;
    report_forget(qp);
    memset(qp->dcqcn, 0, sizeof(*qp->dcqcn));
    qp_start_requester(qp);
    qp_start_responder(qp);
}

void *qp_owner(const struct qp *qp)
{
    return qp->owner;
}

uint32_t qp_number(const struct qp *qp)
{
    return qp->qpn;
}

void qp_kick(struct qp *qp)
{
    qp_wake(qp);
    qp_schedule(qp);
}

void qp_recv_posted(struct qp *qp)
{
    if (qp->awake)
        resp_recv_posted(qp);
}

int mcast_attach(struct qp *qp, const uint8_t gid[16])
{
    if (qp->type != QPT_UD || !gid_is_multicast(gid))
        return -EINVAL;
    return mcast_join(&qp->e->mcast, qp, &qp->groups, gid);
}

int mcast_detach(struct qp *qp, const uint8_t gid[16])
{
    if (qp->type != QPT_UD || !gid_is_multicast(gid))
        return -EINVAL;
    return mcast_leave(&qp->e->mcast, qp, gid);
}
