// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/qp_fail.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/resource.h"

/* The QP still acknowledges the packets that it has received, because the user may have seen their messages already. It
 * sends no more responses, unless its own NAK waits behind them. */
static void stop_responder(struct qp *qp)
{
    struct responder *r = qp->resp;
    r->ack_pending = r->ack_pending || r->ack_deadline;
    r->ack_deadline = 0;
    if (r->res_pending && !r->nak) {
        resp_drop_responses(qp);
        r->ack_pending = false; /* an ACK would overtake the responses */
    }
}

void qp_fail(struct qp *qp)
{
    if (qp->attr.state == QPS_ERR)
        return;
    report_error(qp, ERROR_PROGRAM, 0, 0); /* if nothing else was the reason */
    qp->attr.state = QPS_ERR;
    qp->req->flush_end = qp->req->sq.tail;
    qp->req->rnr_until = 0;
    stop_responder(qp);
    reorder_clear(&qp->e->reorder, &qp->resp->held);
    reorder_clear(&qp->e->reorder, &qp->req->held);
    qp->resp->sack_pending = false;
    if (qp->peer)
        qp_release(qp, qp->req->inflight);
    scoreboard_clear(&qp->req->board);
    sched_stop_waiting(&qp->sched);
    qp_schedule(qp);
}

void qp_fail_sends(struct qp *qp)
{
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return;
    qp->attr.state = QPS_SQE;
    qp->req->flush_end = qp->req->sq.tail;
    sched_stop_waiting(&qp->sched);
    qp_schedule(qp);
}

void qp_fail_with_nak(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p)
{
    COUNT(qp, naks_sent);
    qp->resp->nak = syndrome;
    qp->resp->nak_psn = psn;
    report_nak_sent(qp, syndrome, psn, p);
    report_error(qp, ERROR_REFUSED, 0, syndrome);
    qp_fail(qp);
}
