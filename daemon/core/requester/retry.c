// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/retry.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/requester/congestion.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/window.h"

#define PROBE_RTTS 4u
#define PROBE_UNKNOWN_NS 1000000u /* before a round trip was measured */
#define PROBE_MAX_NS 1000000000ull

static bool outstanding(const struct requester *r)
{
    return r->una_psn != r->sent_psn;
}

/* A requester may wait up to four times as long as the attribute says (IBA 9.7.6.1.3). Where many processes share few
 * processors, its peer needs that time. Probes find losses much earlier. */
uint64_t req_timeout_ns(const struct qp *qp)
{
    const struct engine_config *c = &qp->e->cfg;
    uint64_t t = 4096ull << qp->attr.timeout;
    uint64_t stretched = 4 * t < c->crowd_timeout_ns ? 4 * t : c->crowd_timeout_ns;

    t = stretched > t ? stretched : t;
    return t < c->min_timeout_ns ? c->min_timeout_ns : t;
}

static uint64_t probe_ns(const struct qp *qp)
{
    const struct requester *r = &qp->req;
    uint64_t base = r->srtt ? PROBE_RTTS * r->srtt : PROBE_UNKNOWN_NS;
    if (base < qp->e->cfg.probe_min_ns)
        base = qp->e->cfg.probe_min_ns;
    uint64_t t = base << (r->probes < 16 ? r->probes : 16);
    return t < PROBE_MAX_NS ? t : PROBE_MAX_NS;
}

uint64_t req_deadline(const struct qp *qp)
{
    const struct requester *r = &qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return NEVER;
    if (r->rnr_until)
        return r->rnr_until;
    if (!outstanding(r))
        return NEVER;
    uint64_t d = r->last_tx + probe_ns(qp);
    if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) < d)
        d = r->progress_at + req_timeout_ns(qp);
    return d;
}

static void timed_out(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    if (r->retries_left == 0) {
        COUNT(qp, retry_exceeded_err);
        req_fail(qp, WC_RETRY_EXC_ERR, 0);
        return;
    }
    r->retries_left--;
    report_timeout(qp);
    r->progress_at = r->last_tx = now;
    req_loss(qp, RETRANS_TIMEOUT, r->una_psn, now);
}

/* The first probe sends the newest packet again. If no answer comes, or if a retransmission got stuck, the next probe
 * sends everything from the oldest unacknowledged packet on. */
static void probe(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    if (r->probes < UINT8_MAX)
        r->probes++;
    r->last_tx = now;
    if (r->next_psn == r->sent_psn && r->probes % 2)
        r->probe_due = true;
    else
        req_loss(qp, RETRANS_PROBE, r->una_psn, now);
    qp_schedule(qp);
}

void req_expire(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return;
    if (r->rnr_until) {
        if (r->rnr_until > now)
            return;
        r->rnr_until = 0;
        r->progress_at = r->last_tx = now;
        qp_schedule(qp);
        return;
    }
    if (!outstanding(r))
        return;
    if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) <= now)
        timed_out(qp, now);
    else if (r->last_tx + probe_ns(qp) <= now)
        probe(qp, now);
}

void req_rewind(struct qp *qp, uint32_t psn)
{
    struct requester *r = &qp->req;
    uint64_t inflight = 0;
    uint32_t at = r->una_psn;
    r->cur = r->una;
    while (r->cur != r->unsent) {
        const struct send_wqe *w = req_wqe(r, r->cur);
        if (wqe_is_local(w) && w->local_error)
            break;
        uint32_t from = wqe_offset(w, at);
        uint32_t upto = wqe_offset(w, psn);
        if (upto < w->npkts) {
            inflight += req_cost(qp, w, from, upto);
            break;
        }
        inflight += req_cost(qp, w, from, w->npkts);
        at = psn_add(w->first_psn, w->npkts);
        r->cur++;
    }
    r->next_psn = psn;
    qp_release(qp, r->inflight - min64(inflight, r->inflight));
    while (r->rd_count && psn_diff(r->rd[(r->rd_head + r->rd_count - 1) % ENGINE_MAX_RD_ATOMIC].end, psn) > 0)
        r->rd_count--;
    rtt_cancel(r);
    r->probe_due = false;
    qp_schedule(qp);
}

void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now)
{
    struct requester *r = &qp->req;
    if (cause != RETRANS_RNR)
        cwnd_loss(r, &qp->e->cfg);
    r->cause = (uint8_t)cause;
    r->rewound_at = now;
    r->rewind_psn = psn;
    req_rewind(qp, psn);
}

/* Duplicates of a NAK, and responses that were under way behind a lost one, report the same loss again. A report that
 * comes within `echo` after the retransmission began can't be about the retransmission. If the same packet is lost once
 * more, the timeout is not restarted: a path may never let the packet pass, perhaps because it is too long. Then the QP
 * must run out of retries, although NAKs keep coming. */
static void lost(struct qp *qp, uint64_t echo, uint64_t now)
{
    struct requester *r = &qp->req;
    bool again = r->rewound_at && r->una_psn == r->rewind_psn;
    if (again && (r->next_psn == r->una_psn || now - r->rewound_at < echo))
        return;
    if (!again)
        r->progress_at = now;
    req_loss(qp, RETRANS_FAST, r->una_psn, now);
}

/* The next NAK of the responder can follow after a round trip. */
void req_lost_by_nak(struct qp *qp, uint64_t now)
{
    lost(qp, qp->req.rtt_min ? qp->req.rtt_min / 2 : 20000, now);
}

/* The responses after the missing one are still coming in. */
void req_lost_response(struct qp *qp, uint64_t now)
{
    lost(qp, qp->req.srtt ? 2 * qp->req.srtt : 50000, now);
}
