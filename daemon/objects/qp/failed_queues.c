// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/objects/qp/failed_queues.h"

#include <infiniband/verbs.h>

#include "daemon/base/log.h"
#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_ring.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/session/session.h"

/* --- queue pairs ------------------------------------------------------------------------------- */

/* A client that writes an invalid ring gets IBV_EVENT_QP_FATAL, which a NIC reports for a corrupted work queue. */
static void fail_broken(struct client_qp *q)
{
    const struct session *s = q->session; /* XRC targets have no rings */
    struct qp_attr attr = {.state = QPS_ERR};

    q->device->io.bad_rings++;
    log_warn("session %u (%s, pid %d): queue pair 0x%06x failed: its ring holds %s", s->number, s->comm,
             (int)s->cred.pid, q->qpn, q->broken);
    qp_modify(q->qp, &attr, QPA_STATE, NULL);
    client_qp_event(q, IBV_EVENT_QP_FATAL);
}

static void fail_overrun(struct client_qp *q)
{
    const struct session *s = q->session;
    struct qp_attr attr = {.state = QPS_ERR};

    log_warn("session %u (%s, pid %d): queue pair 0x%06x failed: its completion queue overran", s->number, s->comm,
             (int)s->cred.pid, q->qpn);
    qp_modify(q->qp, &attr, QPA_STATE, NULL);
    client_qp_event(q, IBV_EVENT_QP_FATAL);
}

static void fail_unreachable(struct client_qp *q)
{
    struct qp_attr attr = {.state = QPS_ERR};

    log_warn("queue pair 0x%06x failed: connectivity of its peer: %s", q->qpn, q->unreachable);
    qp_modify(q->qp, &attr, QPA_STATE, NULL);
    client_qp_event(q, IBV_EVENT_QP_FATAL);
}

static void settle_qp(struct client_qp *q)
{
    if (q->broken && !q->errored)
        fail_broken(q);
    if (q->overran && !q->errored && qp_state(q->qp) != QPS_ERR)
        fail_overrun(q);
    if (q->unreachable && !q->errored && qp_state(q->qp) != QPS_ERR)
        fail_unreachable(q);
    if (qp_state(q->qp) != QPS_ERR || q->errored)
        return;
    q->errored = true;
    /* Sequentially consistent, and before the ring is read: pairs with the client's store of rq_tail before its load
     * of rq_notify. So either the daemon sees the request, or the client rings. */
    atomic_store(&q->page->rq_notify, 1);
    atomic_thread_fence(memory_order_seq_cst);
    client_qp_drain_send(q);
    qp_kick(q->qp);
}

/* --- shared receive queues --------------------------------------------------------------------- */

static void fail_user(void *obj, void *ctx)
{
    struct client_qp *q = obj;

    if (q->srq == ctx && !q->broken) {
        q->broken = "a broken request, in its shared receive queue";
        client_qp_mark_failed(q);
    }
}

static void settle_srq(struct client_srq *q)
{
    const struct session *s = q->session;

    if (!q->broken || q->errored)
        return;
    q->errored = true;
    q->session->device->io.bad_rings++;
    log_warn("session %u (%s, pid %d): shared receive queue %u failed: its ring holds %s", s->number, s->comm,
             (int)s->cred.pid, q->handle, q->broken);
    handles_each(&q->session->qps, fail_user, q);
}

unsigned failed_queues_settle(struct device *d)
{
    struct client_srq *srq;
    struct client_qp *q;
    unsigned n = 0;

    while ((srq = TAILQ_FIRST(&d->failed_srqs)) != NULL) {
        TAILQ_REMOVE(&d->failed_srqs, srq, failed_link);
        srq->in_failed = false;
        settle_srq(srq);
        n++;
    }
    while ((q = TAILQ_FIRST(&d->failed)) != NULL) {
        TAILQ_REMOVE(&d->failed, q, failed_link);
        q->in_failed = false;
        settle_qp(q);
        n++;
    }
    return n;
}
