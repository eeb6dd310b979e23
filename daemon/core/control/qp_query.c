// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/qp_query.h"

#include "daemon/core/base/min.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/credits.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/window.h"

void qp_query(const struct qp *qp, struct qp_attr *attr)
{
    *attr = qp->attr;
    if (!qp->awake)
        return;
    if (qp->attr.state >= QPS_RTR)
        attr->rq_psn = qp->resp->epsn;
    if (qp->attr.state >= QPS_RTS)
        attr->sq_psn = qp->req->sent_psn;
    attr->sq_draining = qp->attr.state == QPS_SQD && !req_is_drained(qp->req);
}

uint32_t qp_first_psn(const struct qp *qp, bool received)
{
    return received ? qp->attr.rq_psn : qp->attr.sq_psn;
}

/* The first request that is not sent as a whole, or NULL. A requester that has gone back has sent all requests that have
 * PSNs. */
static const struct send_wqe *next_new(const struct requester *r)
{
    uint32_t i = r->next_psn == r->sent_psn ? r->cur : r->unsent;
    return i != r->sq.tail ? req_wqe(r, i) : NULL;
}

/* Number of READs and atomics that are sent and not answered. A requester that has gone back has returned their
 * credits, but it sends them again before anything else. */
static uint32_t reads_unanswered(const struct qp *qp)
{
    const struct requester *r = qp->req;
    uint32_t n = 0;
    for (uint32_t i = r->una; r->next_psn != r->sent_psn && i != r->unsent; i++)
        n += wqe_is_answered(req_wqe(r, i)) && !wqe_is_local(req_wqe(r, i));
    n = min32(n, qp->attr.max_rd_atomic);
    return n > r->rd_count ? n : r->rd_count;
}

/* next: the first request that is not sent as a whole. */
static bool waits_for_credit(const struct qp *qp, const struct send_wqe *next)
{
    const struct requester *r = qp->req;
    bool begun = r->next_psn == r->sent_psn && r->unsent != r->cur && req_has_begun(r, next);
    return qp->attr.state == QPS_RTS && r->credits.state != CREDITS_UNLIMITED && wqe_takes_recv(next) && !begun &&
           !r->credits.may_ask &&
           (r->credits.state == CREDITS_UNKNOWN ? r->credits.begun != r->credits.done
                                                : req_credits_left(&r->credits) == 0);
}

/* A QP without traffic: its memory for traffic is not looked at, so that it takes no page. */
static void info_of_idle(const struct qp *qp, struct qp_info *info)
{
    const struct qp_attr *a = &qp->attr;
    bool sends = a->state == QPS_RTS, counts = qp->e->cfg.e2e_credits && qp->type == QPT_RC;
    *info = (struct qp_info){
        .qpn = qp->qpn,
        .dest_qpn = a->dest_qpn,
        .type = qp->type,
        .state = a->state,
        .una_psn = sends ? a->sq_psn : 0,
        .next_psn = sends ? a->sq_psn : 0,
        .max_psn = sends ? a->sq_psn : 0,
        .epsn = a->state >= QPS_RTR ? a->rq_psn : 0,
        .retries_left = sends ? a->retry_cnt : 0,
        .rnr_retries_left = sends ? a->rnr_retry : 0,
        .deadline = NEVER,
        .srtt_ns = qp->peer ? qp->peer->congestion.srtt : 0,
        .window_bytes = qp->peer ? qp->peer->congestion.cwnd : 0,
        .credit_state = sends && counts ? CREDITS_UNKNOWN : CREDITS_UNLIMITED,
        .windowless = !qp_is_reliable(qp),
        .timeout_ns = a->timeout ? req_timeout_ns(qp) : 0,
        .probe_ns = qp_is_reliable(qp) && qp->peer ? req_probe_ns(qp) : 0,
    };
}

void qp_info(const struct qp *qp, struct qp_info *info)
{
    if (!qp->awake) {
        info_of_idle(qp, info);
        return;
    }
    const struct requester *r = qp->req;
    const struct send_wqe *next = next_new(r);
    uint32_t reads = reads_unanswered(qp);
    *info = (struct qp_info){
        .qpn = qp->qpn,
        .dest_qpn = qp->attr.dest_qpn,
        .type = qp->type,
        .state = qp->attr.state,
        .sq_posted = queue_used(&r->sq),
        .rq_posted = queue_used(&qp->resp->rq),
        .una_psn = r->una_psn,
        .next_psn = r->next_psn,
        .max_psn = r->sent_psn,
        .epsn = qp->resp->epsn,
        .msn = qp->resp->msn,
        .retries_left = r->retries_left,
        .rnr_retries_left = r->rnr_left,
        .reads_outstanding = reads,
        .deadline = req_deadline(qp),
        .srtt_ns = qp->peer ? qp->peer->congestion.srtt : 0,
        .window_bytes = qp->peer ? qp->peer->congestion.cwnd : 0,
        .inflight_bytes = r->inflight,
        .rate = qp->dcqcn->rate,
        .waiting_rate = qp->dcqcn->waiting,
        .waiting_rnr = r->rnr_until != 0,
        .waiting_srqn =
            r->rnr_until && qp->type == QPT_XRC_SEND && r->una != r->sq.tail ? req_wqe(r, r->una)->wr.srqn : 0,
        .credit_state = r->credits.state,
        .credits = req_credits_left(&r->credits),
        .waiting_credit = next && waits_for_credit(qp, next),
        .credit_until = r->credits.wait_until,
        .waiting_fence =
            next && ((next->wr.flags & SEND_FENCE && reads) || (next->wr.opcode == WR_LOCAL_INV && r->una != r->cur)),
        .waiting_reads = next && wqe_is_answered(next) && reads >= qp->attr.max_rd_atomic,
        .waiting_window = req_window_full(qp),
        .waiting_peer = sched_is_waiting(&qp->sched),
        .waiting_drain = qp->attr.state == QPS_SQD && !req_is_drained(qp->req),
        .windowless = !qp_is_reliable(qp),
        .progress_at = r->una_psn != r->sent_psn ? r->progress_at : 0,
        .rnr_until = r->rnr_until,
        .timeout_ns = qp->attr.timeout ? req_timeout_ns(qp) : 0,
        .probes = r->probes,
        .backoff = r->backoff,
        .probe_ns = qp_is_reliable(qp) && qp->peer ? req_probe_ns(qp) : 0,
        .probing = req_is_unanswered(r) && r->next_psn != r->sent_psn,
        .retransmitting = r->next_psn != r->sent_psn,
        .failure = *qp->failure,
        .counters = *qp->counters,
    };
}

enum qp_state qp_state(const struct qp *qp)
{
    return (enum qp_state)qp->attr.state;
}
