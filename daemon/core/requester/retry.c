// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/retry.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/requester/credits.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/rtt.h"
#include "daemon/core/requester/selective.h"
#include "daemon/core/requester/window.h"
#include "daemon/core/selective/held_responses.h"
#include "daemon/core/selective/scoreboard.h"

#define PROBE_UNKNOWN_NS 1000000u /* before a round trip was measured */
#define PROBE_MAX_NS 1000000000ull /* the wait does not double beyond this */
#define BACKOFF_MOST 16u
/* While no round trip is known, the probes of all QPs double the wait of each one, up to so often. */
#define UNKNOWN_DOUBLED_MOST 2u
#define PROBES_ALONE 3u /* a QP with so many probes without an answer is alone: the path carries packets of others */

static bool outstanding(const struct requester *r)
{
    return r->una_psn != r->sent_psn;
}

/* A requester may wait up to four times as long as the attribute says (IBA 9.7.6.1.3). Where many processes share few
 * processors, its peer needs that time. Probes find losses much earlier. On a path where an answer takes longer than
 * the attribute says, the path decides: otherwise the QP would fail although its peer answers. */
uint64_t req_timeout_ns(const struct qp *qp)
{
    const struct engine_config *c = &qp->e->cfg;
    uint64_t t = 4096ull << qp->attr.timeout;
    uint64_t stretched = 4 * t < c->crowd_timeout_ns ? 4 * t : c->crowd_timeout_ns;

    t = stretched > t ? stretched : t;
    t = t < c->min_timeout_ns ? c->min_timeout_ns : t;
    uint64_t answer = qp->peer ? congestion_rto(&qp->peer->congestion) : 0;
    return t < answer ? answer : t;
}

uint64_t req_probe_ns(const struct qp *qp)
{
    uint64_t answer = congestion_rto(&qp->peer->congestion), base = answer ? answer : PROBE_UNKNOWN_NS;
    if (base < qp->e->cfg.probe_min_ns)
        base = qp->e->cfg.probe_min_ns;
    uint64_t most = base < PROBE_MAX_NS ? PROBE_MAX_NS : base;
    uint32_t doubled = qp->awake ? qp->req->backoff : 0, all = qp->peer->congestion.backoff;
    if (answer == 0 && all > doubled)
        doubled = min32(all, doubled + UNKNOWN_DOUBLED_MOST);
    return min64(base << doubled, most);
}

/* Is something of the QP in flight that can be answered? Not if it has gone back and waits for its turn. */
static bool in_flight(const struct requester *r)
{
    return outstanding(r) && r->next_psn != r->una_psn;
}

/* Nothing is in flight. Had the QP's timeout passed when the QP went back? */
static bool was_due(const struct qp *qp)
{
    const struct requester *r = qp->req;
    return outstanding(r) && qp->attr.timeout && r->progress_at + req_timeout_ns(qp) <= r->rewound_at;
}

uint64_t req_deadline(const struct qp *qp)
{
    const struct requester *r = qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return NEVER;
    if (r->rnr_until)
        return r->rnr_until;
    if (!in_flight(r))
        return was_due(qp) ? r->rewound_at : r->credits.wait_until ? r->credits.wait_until : NEVER;
    uint64_t d = r->timer_at + req_probe_ns(qp);
    if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) < d)
        d = r->progress_at + req_timeout_ns(qp);
    if (r->board.wake_at && r->board.wake_at < d)
        d = r->board.wake_at;
    return d;
}

/* Is nothing acknowledged for so long that it can't be the delay of a host? */
static bool path_is_silent(const struct qp *qp, uint64_t now)
{
    const struct congestion *c = &qp->peer->congestion;
    return c->progress_at <= qp->req->timer_at && now - c->progress_at >= qp->e->cfg.path_silence_ns;
}

/* No answer came since timer_at: packets were lost, and perhaps the path is dead or blocked. It is neither if it has
 * carried packets of other QPs since then. Then it is the peer's QP that does not answer, unless it soon does. */
static void suspect_path(const struct qp *qp, uint64_t now)
{
    const struct requester *r = qp->req;
    struct peer_window *p = qp->peer;
    congestion_suspect(&p->congestion);
    if (path_is_silent(qp, now))
        congestion_timeout(&p->congestion, &qp->e->cfg, peer_window_capacity(p), req_packet_cost(qp), now);
    else if (r->probes < PROBES_ALONE)
        congestion_loss(&p->congestion, &qp->e->cfg, peer_window_capacity(p), p->inflight, req_packet_cost(qp), now);
}

/* A probe or a timeout is due. */
static void fired(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    struct congestion *c = &qp->peer->congestion;
    if (c->srtt == 0 && c->backoff < BACKOFF_MOST)
        c->backoff++;
    if (r->probes < UINT8_MAX)
        r->probes++;
    if (r->backoff < BACKOFF_MOST)
        r->backoff++;
    r->timer_at = r->fired_at = now;
}

/* No answer came in time. The newest packet is sent again, or the QP goes back. */
static void repeat(struct qp *qp, enum retrans_cause cause, bool newest, uint64_t now)
{
    struct requester *r = qp->req;
    newest = newest && r->next_psn == r->sent_psn;
    if (!newest)
        suspect_path(qp, now);
    fired(qp, now);
    r->probe_due = newest;
    if (!newest)
        req_loss(qp, cause, r->una_psn, now);
    qp_schedule(qp);
}

/* Does the path still carry packets that other QPs sent before those that this QP has had in flight since then? */
static bool path_is_behind(const struct congestion *c, uint64_t since)
{
    return c->progress_at > since && c->acked_sent_at <= since;
}

static void timed_out(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    const struct congestion *c = &qp->peer->congestion;
    if (path_is_behind(c, r->progress_at)) {
        r->progress_at = now;
        return;
    }
    if (r->retries_left == 0) {
        COUNT(qp, retry_exceeded_err);
        req_fail(qp, WC_RETRY_EXC_ERR, 0);
        return;
    }
    r->retries_left--;
    report_timeout(qp);
    repeat(qp, RETRANS_TIMEOUT, false, now);
    r->progress_at = now;
}

/* The first probe sends the newest packet again. If no answer comes, or if a retransmission got stuck, the next probe
 * goes back to the oldest unacknowledged packet. It sends one packet, and the others after its ACK. */
static void probe(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    if (path_is_behind(&qp->peer->congestion, r->timer_at))
        r->timer_at = now;
    else
        repeat(qp, RETRANS_PROBE, r->probes % 2 == 0, now);
}

void req_expire(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return;
    if (r->rnr_until) {
        if (r->rnr_until > now)
            return;
        r->rnr_until = 0;
        r->progress_at = r->timer_at = r->rewound_at = now;
        qp_schedule(qp);
        return;
    }
    if (!in_flight(r)) {
        if (was_due(qp))
            timed_out(qp, now);
        else if (r->credits.wait_until && r->credits.wait_until <= now)
            req_credit_ask(qp);
        return;
    }
    if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) <= now)
        timed_out(qp, now);
    else if (r->board.wake_at && r->board.wake_at <= now)
        selective_expire(qp, now);
    else if (r->timer_at + req_probe_ns(qp) <= now)
        probe(qp, now);
}

void req_rewind(struct qp *qp, uint32_t psn)
{
    struct requester *r = qp->req;
    uint64_t inflight = 0;
    uint32_t at = r->una_psn;
    scoreboard_forget(qp);
    held_rewind(r, psn);
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
    r->probe_due = false;
    qp_schedule(qp);
}

/* Takes the credit for a READ request or an atomic again. */
static void take_credit(struct requester *r, uint32_t first, uint32_t end)
{
    r->rd[(r->rd_head + r->rd_count++) % ENGINE_MAX_RD_ATOMIC] = (struct rd_credit){.first = first, .end = end};
}

void req_skip(struct qp *qp, uint32_t psn)
{
    struct requester *r = qp->req;
    uint64_t cost = 0;
    while (psn_diff(psn, r->next_psn) > 0 && r->next_psn != r->sent_psn) {
        const struct send_wqe *w = req_wqe(r, r->cur);
        if (w->local_error)
            break;
        if (wqe_is_local(w)) {
            r->cur++;
            continue;
        }
        uint32_t from = wqe_offset(w, r->next_psn), end = wqe_offset(w, psn);
        uint32_t upto = wqe_is_read(w) ? from + req_chunk_left(w, from) : min32(w->npkts, end);
        upto = min32(upto, wqe_offset(w, r->sent_psn));
        if (wqe_is_answered(w))
            take_credit(r, r->next_psn, psn_add(w->first_psn, upto));
        cost += req_cost(qp, w, from, upto);
        r->next_psn = psn_add(w->first_psn, upto);
        r->cur += upto == w->npkts;
    }
    qp_charge(qp, cost);
}

void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now)
{
    struct requester *r = qp->req;
    struct peer_window *p = qp->peer;
    if (cause == RETRANS_FAST) {
        congestion_confirm(&p->congestion);
        congestion_loss(&p->congestion, &qp->e->cfg, peer_window_capacity(p), p->inflight, req_packet_cost(qp), now);
    }
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
    struct requester *r = qp->req;
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
    uint64_t rtt = qp->peer->congestion.rtt_min;
    lost(qp, rtt ? rtt / 2 : 20000, now);
}

/* The responses after the missing one are still coming in. */
void req_lost_response(struct qp *qp, uint64_t now)
{
    uint64_t rtt = qp->peer->congestion.srtt;
    lost(qp, rtt ? 2 * rtt : 50000, now);
}
