// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/qp_query.h"

#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/window.h"

void qp_query(const struct qp *qp, struct qp_attr *attr)
{
    *attr = qp->attr;
    if (qp->attr.state >= QPS_RTR)
        attr->rq_psn = qp->resp.epsn;
    if (qp->attr.state >= QPS_RTS)
        attr->sq_psn = qp->req.sent_psn;
    attr->sq_draining = qp->attr.state == QPS_SQD && !req_is_drained(&qp->req);
}

void qp_info(const struct qp *qp, struct qp_info *info)
{
    const struct requester *r = &qp->req;
    const struct send_wqe *next = r->cur != r->sq.tail ? req_wqe(r, r->cur) : NULL;
    bool reading = next && wqe_is_answered(next);
    *info = (struct qp_info){
        .qpn = qp->qpn,
        .dest_qpn = qp->attr.dest_qpn,
        .type = qp->type,
        .state = qp->attr.state,
        .sq_posted = queue_used(&r->sq),
        .rq_posted = queue_used(&qp->resp.rq),
        .una_psn = r->una_psn,
        .next_psn = r->next_psn,
        .max_psn = r->sent_psn,
        .epsn = qp->resp.epsn,
        .msn = qp->resp.msn,
        .retries_left = r->retries_left,
        .rnr_retries_left = r->rnr_left,
        .reads_outstanding = r->rd_count,
        .deadline = req_deadline(qp),
        .srtt_ns = r->srtt,
        .window_bytes = r->cwnd,
        .inflight_bytes = r->inflight,
        .rate = qp->dcqcn.rate,
        .waiting_rate = qp->dcqcn.waiting,
        .waiting_rnr = r->rnr_until != 0,
        .waiting_srqn =
            r->rnr_until && qp->type == QPT_XRC_SEND && r->una != r->sq.tail ? req_wqe(r, r->una)->wr.srqn : 0,
        .waiting_fence = next && ((next->wr.flags & SEND_FENCE && r->rd_count) ||
                                  (next->wr.opcode == WR_LOCAL_INV && r->una != r->cur)),
        .waiting_reads = reading && r->rd_count >= qp->attr.max_rd_atomic,
        .waiting_window = req_window_full(qp),
        .waiting_peer = sched_is_waiting(&qp->sched),
        .waiting_drain = qp->attr.state == QPS_SQD && !req_is_drained(&qp->req),
        .windowless = !qp_is_reliable(qp),
        .progress_at = r->una_psn != r->sent_psn ? r->progress_at : 0,
        .rnr_until = r->rnr_until,
        .timeout_ns = qp->attr.timeout ? req_timeout_ns(qp) : 0,
        .probes = r->probes,
        .retransmitting = r->next_psn != r->sent_psn,
        .failure = qp->failure,
        .counters = qp->counters,
    };
}

enum qp_state qp_state(const struct qp *qp)
{
    return (enum qp_state)qp->attr.state;
}
