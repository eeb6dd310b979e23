// SPDX-License-Identifier: BSD-2-Clause
/* The requester's timers, all derived from its state:
 *
 *   RNR wait   rnr_until                                the responder asked for it; nothing is sent before
 *   timeout    progress_at + 4.096 us * 2^timeout       nothing was heard for that long: one of retry_cnt retries
 *   tail probe last_tx + a few round trips, doubling    the last packets or their ACK may be lost; costs no retry
 *
 * The probe finds losses that no NAK reports long before the QP's timeout, which applications choose in the range of seconds. */
#include "daemon/core/engine_priv.h"

#define PROBE_RTTS 4u
#define PROBE_UNKNOWN_NS 1000000u /* before a round trip was measured */
#define PROBE_MAX_NS 1000000000ull

static bool outstanding(const struct requester *r)
{
    return r->una_psn != r->sent_psn;
}

/* A requester may take up to four times what the attribute says (9.7.6.1.3), and where processors are crowded its peer needs
 * that; what is lost is found by probes much earlier. */
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

/* First the newest packet again; if that brings nothing, or a retransmission got stuck half-way, all from the oldest
 * on. */
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
    engine_ready(qp);
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
        engine_ready(qp);
        return;
    }
    if (!outstanding(r))
        return;
    if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) <= now)
        timed_out(qp, now);
    else if (r->last_tx + probe_ns(qp) <= now)
        probe(qp, now);
}
