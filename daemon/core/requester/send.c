// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/send.h"

#include "daemon/core/base/min.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/burst.h"
#include "daemon/core/requester/credits.h"
#include "daemon/core/requester/local_ops.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/window.h"
#include "daemon/core/selective/held_responses.h"
#include "daemon/core/selective/scoreboard.h"

/* --- choose: which request is next ------------------------------------------------------------ */

/* May any request of the queue be sent from now? */
static bool may_begin(const struct qp *qp)
{
    const struct requester *r = qp->req;
    return r->cur != r->sq.tail && !r->rnr_until && !r->fail_status && !req_is_flushing(r);
}

/* In SQD, requests that have not begun stay where they are. */
static bool is_suspended(const struct qp *qp, const struct send_wqe *w)
{
    return qp->attr.state == QPS_SQD && (qp->req->cur == qp->req->unsent || !req_has_begun(qp->req, w));
}

enum send_verdict {
    SEND_NOW,
    SEND_LATER, /* something will make the QP ready again */
    SEND_NO_CREDIT, /* the peer has no receive request for it */
    SEND_REFUSED, /* the QP may not send such requests: WC_LOC_QP_OP_ERR */
};

/* May packets of the request at cur, which has its PSNs, be sent now? */
static enum send_verdict may_send(const struct qp *qp, const struct send_wqe *w)
{
    const struct requester *r = qp->req;
    if (w->local_error)
        return SEND_LATER;
    if (r->next_psn == w->first_psn && w->wr.flags & SEND_FENCE && r->rd_count)
        return SEND_LATER;
    if (!wqe_is_answered(w))
        return req_has_credit(qp, w) ? SEND_NOW : SEND_NO_CREDIT;
    if (qp->attr.max_rd_atomic == 0)
        return SEND_REFUSED;
    return r->rd_count < qp->attr.max_rd_atomic ? SEND_NOW : SEND_LATER;
}

/* --- execute: local operations, places in the PSNs -------------------------------------------- */

/* Gives the request at cur, which is the first one without PSNs, its place. */
static void assign_psns(struct qp *qp, struct send_wqe *w)
{
    struct requester *r = qp->req;
    w->first_psn = r->unsent_psn;
    w->npkts = psn_count(w->length, qp->mtu);
    w->chunk = wqe_is_read(w) ? req_read_chunk(qp, w) : 0;
    w->chunk_base = 0;
    if (wqe_is_atomic(w) || qp->type == QPT_UD)
        w->npkts = 1;
    r->unsent_psn = psn_add(r->unsent_psn, w->npkts);
    r->unsent++;
}

/* Steps over the local operation at cur. Carries it out first, if that was not done before. False: the operation has to
 * wait, or failed. */
static bool step_over_local(struct qp *qp, struct send_wqe *w)
{
    struct requester *r = qp->req;
    if (r->cur == r->unsent)
        return req_may_run_local(qp, w) && req_run_local(qp, w);
    if (w->local_error)
        return false;
    r->cur++; /* the operation was carried out before the QP went back */
    return true;
}

/* Goes on to the next request with packets, over local operations, and gives it its place in the PSNs. NULL: there is
 * none, or it has to wait. */
static struct send_wqe *advance(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    while (may_begin(qp)) {
        struct send_wqe *w = req_wqe(r, r->cur);
        if (is_suspended(qp, w))
            return NULL;
        if (wqe_is_local(w)) {
            if (!step_over_local(qp, w))
                return NULL;
            continue;
        }
        if (r->cur == r->unsent)
            assign_psns(qp, w);
        enum send_verdict v = may_send(qp, w);
        if (v == SEND_REFUSED)
            w->local_error = WC_LOC_QP_OP_ERR;
        if (v == SEND_NO_CREDIT)
            req_credit_wait(qp, req_probe_ns(qp), now);
        return v == SEND_NOW ? w : NULL;
    }
    return NULL;
}

/* --- plan: how much of it --------------------------------------------------------------------- */

enum limit_verdict {
    LIMIT_OK,
    LIMIT_BATCH, /* the batch is full */
    LIMIT_RATE, /* DCQCN lets nothing leave now */
    LIMIT_WINDOW, /* the windows are full */
};

/* How many packets of the request at cur, from packet off on, may be planned in one run. */
static enum limit_verdict limit_run(const struct burst *s, struct send_wqe *w, uint32_t off, uint32_t *n)
{
    struct qp *qp = s->qp;
    if (wqe_is_read(w) && !req_choose_chunk(qp, w, off))
        return LIMIT_WINDOW;
    uint32_t want = burst_room(s, w, off);
    if (want == 0)
        return LIMIT_BATCH;
    uint32_t rate = dcqcn_allows(qp->dcqcn, &qp->e->cfg, s->now);
    if (rate == 0)
        return LIMIT_RATE;
    want = min32(want, rate > qp->mtu ? rate / qp->mtu : 1);
    if (wqe_is_read(w))
        want = req_chunk_left(w, off);
    *n = req_window_allows(qp, w, off, want, s->now);
    return *n ? LIMIT_OK : LIMIT_WINDOW;
}

/* --- commit: the planned packets are under way ------------------------------------------------ */

static void charge(const struct burst *s, const struct send_wqe *w, uint64_t cost)
{
    struct qp *qp = s->qp;
    if (qp_is_reliable(qp)) {
        if (qp->peer->inflight == 0)
            qp->peer->congestion.passed_at = s->now;
        congestion_sent(&qp->peer->congestion, &qp->e->cfg, cost, s->now);
        qp_charge(qp, cost);
    } else {
        datagram_flow_charge(&qp->e->flows, req_find_peer(qp, w), qp->type == QPT_UD ? &w->wr.ud.av : &qp->attr.av,
                             cost, s->now);
    }
}

/* n PSNs of the request at cur, from packet off on, were planned. */
static void commit_run(const struct burst *s, const struct send_wqe *w, uint32_t off, uint32_t n)
{
    struct requester *r = s->qp->req;
    if (r->una_psn == r->next_psn)
        retry_begins(r, s->now);
    if (off == 0 && r->next_psn == r->sent_psn)
        req_credit_used(s->qp, w);
    if (wqe_is_answered(w)) {
        struct rd_credit *credit = &r->rd[(r->rd_head + r->rd_count++) % ENGINE_MAX_RD_ATOMIC];
        credit->first = psn_add(w->first_psn, off);
        credit->end = psn_add(w->first_psn, off + n);
    }
    uint64_t cost = req_cost(s->qp, w, off, off + n);
    charge(s, w, cost);
    dcqcn_sent(s->qp->dcqcn, wqe_has_payload(w) ? cost : PACKET_OVERHEAD, s->now);
    r->next_psn = psn_add(r->next_psn, n);
    if (psn_diff(r->next_psn, r->sent_psn) > 0)
        r->sent_psn = r->next_psn;
    if (off + n == w->npkts)
        r->cur++;
    COUNT_MAX(s->qp, max_sent_window, (uint32_t)psn_diff(r->next_psn, r->una_psn));
}

/* The packets of an unreliable QP are never acknowledged: they are done when they are handed out. */
static void done_when_sent(struct requester *r)
{
    r->una = r->cur;
    r->una_psn = r->next_psn;
}

/* --- the tail probe --------------------------------------------------------------------------- */

/* Chooses the packets of the probe: the newest packet once more, which makes the responder acknowledge all that it has
 * received. For a READ, the missing part of its last chunk. False: nothing is outstanding, or a retransmission is under
 * way. */
static bool choose_probe(const struct requester *r, uint32_t *index, uint32_t *off, uint32_t *n)
{
    if (r->next_psn != r->sent_psn || r->una_psn == r->sent_psn)
        return false;
    uint32_t i = r->cur;
    if (i == r->unsent || req_wqe(r, i)->first_psn == r->next_psn) {
        do /* some request before it has PSNs, since some are unacknowledged */
            i--;
        while (req_wqe(r, i)->npkts == 0);
    }
    const struct send_wqe *w = req_wqe(r, i);
    *index = i;
    *off = wqe_offset(w, r->next_psn) - 1;
    *n = 1;
    if (!wqe_is_read(w))
        return true;
    if (r->rd_count == 0)
        return false;
    const struct rd_credit *c = &r->rd[(r->rd_head + r->rd_count - 1) % ENGINE_MAX_RD_ATOMIC];
    uint32_t end = *off + 1;
    *off = wqe_offset(w, psn_diff(c->first, r->una_psn) > 0 ? c->first : r->una_psn);
    *n = end - *off;
    return true;
}

/* Plans the probe that is due. PLAN_FULL: the probe stays due. */
static enum plan_verdict plan_probe(struct burst *s)
{
    struct requester *r = s->qp->req;
    uint32_t index, off, n;
    r->probe_due = false;
    if (!choose_probe(r, &index, &off, &n))
        return PLAN_OK;
    r->cause = RETRANS_PROBE;
    r->asked = 0; /* what comes twice from now on may have come because of the probe */
    enum plan_verdict v = burst_plan(s, index, off, &n);
    if (v == PLAN_FAILED)
        req_wqe(r, index)->local_error = WC_LOC_PROT_ERR;
    r->probe_due = v == PLAN_FULL;
    return v;
}

/* --- sending missing packets again ------------------------------------------------------------ */

/* The PSNs that one transmission from `next` on covers: the rest of a request and of the range, a READ request with all its
 * responses, or one for the missing responses. */
static uint32_t run_length(const struct send_wqe *w, const struct missing_range *m, bool responses, uint32_t *off)
{
    uint32_t left = (uint32_t)psn_diff(m->end, m->next);
    if (!wqe_is_read(w))
        return min32(w->npkts - *off, left);
    if (responses)
        return min32(req_chunk_left(w, *off), left);
    if (*off >= w->chunk_base) /* a READ request is sent again as a whole */
        *off -= (*off - w->chunk_base) % w->chunk;
    return req_chunk_left(w, *off);
}

/* Is nothing sent again yet of the range, and is it the first one of the missing responses, or of the missing requests? */
static bool is_oldest(const struct requester *r, const struct missing_range *m)
{
    const struct scoreboard *b = &r->board;
    bool first = m == b->range || missing_kind_of(b, m) != missing_kind_of(b, m - 1);
    return first && (m->next == m->start || m->next == r->una_psn);
}

/* Sends packets of the range again, as many as one run holds. False: the turn is over, with this result. */
static bool send_range(struct burst *s, struct send_place *at, struct missing_range *m, enum tx_result *result)
{
    struct qp *qp = s->qp;
    struct requester *r = qp->req;
    if (!send_place_seek(r, at, m->next) || req_wqe(r, at->index)->local_error) {
        scoreboard_sent(qp, m, m->end); /* nothing of it can be sent */
        return true;
    }
    struct send_wqe *w = req_wqe(r, at->index);
    bool responses = missing_kind_of(&r->board, m) == MISSING_RESPONSES;
    uint32_t off = wqe_offset(w, m->next), n = run_length(w, m, responses, &off);
    *result = TX_MORE;
    if (burst_is_spent(s) || s->resends == 0)
        return false;
    uint32_t room = burst_room(s, w, off), rate = dcqcn_allows(qp->dcqcn, &qp->e->cfg, s->now);
    if (room == 0 || rate == 0) {
        *result = room == 0 ? TX_FULL : TX_DONE;
        return false;
    }
    if (!wqe_is_read(w))
        n = min32(min32(n, room), min32(s->resends, rate > qp->mtu ? rate / qp->mtu : 1));
    uint32_t allowed = req_window_allows_again(qp, w, off, n, s->now);
    *result = TX_DONE; /* something will make the QP ready again */
    /* A READ that is missing leaves in any case (as in RFC 6675, 5): the responses behind it fill the windows, and come after
     * it. */
    if (allowed == 0 && !(wqe_is_read(w) && is_oldest(r, m)))
        return false;
    n = allowed ? allowed : n;
    r->cause = responses ? RETRANS_RESPONSES : RETRANS_SELECTIVE;
    enum plan_verdict v = burst_plan(s, at->index, off, &n);
    if (v != PLAN_OK) {
        if (v == PLAN_FAILED)
            w->local_error = WC_LOC_PROT_ERR;
        *result = v == PLAN_FULL ? TX_FULL : TX_DONE;
        return false;
    }
    uint64_t cost = req_cost(qp, w, off, off + n);
    s->resends -= min32(s->resends, wqe_is_read(w) ? 1 : n);
    congestion_sent(&qp->peer->congestion, &qp->e->cfg, cost, s->now);
    dcqcn_sent(qp->dcqcn, wqe_has_payload(w) ? cost : PACKET_OVERHEAD, s->now);
    scoreboard_sent(qp, m, psn_add(w->first_psn, off + n));
    if (responses)
        held_asked(r, n);
    r->timer_at = s->now;
    return true;
}

/* Plans the missing packets that are due. False: the turn is over, with this result. */
static bool selective_send(struct burst *s, enum tx_result *result)
{
    struct requester *r = s->qp->req;
    struct scoreboard *b = &r->board;
    struct send_place at = {.index = r->una};
    if (r->rnr_until || r->fail_status || req_is_flushing(r))
        return true;
    for (uint32_t i = 0; i < b->count; i++) {
        struct missing_range *m = &b->range[i];
        if (psn_diff(r->una_psn, m->next) > 0)
            m->next = r->una_psn;
        while (m->due && psn_diff(m->end, m->next) > 0)
            if (!send_range(s, &at, m, result))
                return false;
        if (!m->due)
            continue;
        m->due = m->suspected = false; /* nothing of it counts as lost any more */
        m->repeated = true;
        m->mark = r->sent_psn;
        m->order = b->order;
        b->order += (uint32_t)psn_diff(m->end, m->start);
        m->next = m->start;
    }
    b->due = false;
    return true;
}

/* --- a turn ----------------------------------------------------------------------------------- */

/* The peer's window stops the QP. A QP that just used the window queues behind the QPs that are still waiting: its next
 * turn, after theirs, only puts it into the queue. */
static enum tx_result stop_at_window(const struct burst *s)
{
    if (s->runs == 0 || !sched_is_waiting(&s->qp->sched))
        return TX_DONE;
    sched_stop_waiting(&s->qp->sched);
    return TX_MORE;
}

/* Plans and commits the next run of request w, which is at cur. False: the turn is over, with this result. */
static bool send_run(struct burst *s, struct send_wqe *w, enum tx_result *result)
{
    struct requester *r = s->qp->req;
    uint32_t off = wqe_offset(w, r->next_psn), n;
    bool again = r->next_psn != r->sent_psn;
    if (burst_is_spent(s) || (again && s->resends == 0)) {
        *result = TX_MORE;
        return false;
    }
    enum limit_verdict limit = limit_run(s, w, off, &n);
    if (limit != LIMIT_OK) {
        *result = limit == LIMIT_BATCH ? TX_FULL : limit == LIMIT_WINDOW ? stop_at_window(s) : TX_DONE;
        return false;
    }
    if (again && !wqe_is_read(w))
        n = min32(n, s->resends);
    enum plan_verdict plan = burst_plan(s, r->cur, off, &n);
    if (plan == PLAN_OK) {
        if (again)
            s->resends -= min32(s->resends, wqe_is_read(w) ? 1 : n);
        commit_run(s, w, off, n);
        return true;
    }
    if (plan == PLAN_FAILED)
        w->local_error = WC_LOC_PROT_ERR;
    *result = plan == PLAN_FULL ? TX_FULL : TX_DONE;
    return false;
}

enum tx_result req_tx(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    struct requester *r = qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return TX_DONE;
    struct burst s;
    burst_init(&s, qp, b, sched_turn_bytes(&qp->sched, qp->e->cfg.burst_bytes, resp_has_work(qp->resp)), now);
    if (r->probe_due && plan_probe(&s) == PLAN_FULL)
        return TX_FULL;
    enum tx_result result = TX_DONE;
    struct send_wqe *w;
    if (!r->board.due || selective_send(&s, &result))
        while ((w = advance(qp, now)) != NULL && send_run(&s, w, &result))
            ;
    burst_gather(&s);
    if (!qp_is_reliable(qp))
        done_when_sent(r);
    return result;
}
