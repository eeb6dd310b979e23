// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/selective.h"

#include "daemon/core/base/min.h"
#include "daemon/core/requester/rtt.h"
#include "daemon/core/requester/window.h"
#include "daemon/core/selective/scoreboard.h"
#include "wire/pumice/sack.h"

/* --- reports ---------------------------------------------------------------------------------- */

/* The packet whose round trip is measured asks for an answer. Behind a gap this is a SACK. The response to a READ has to
 * wait until the gap is filled, so it measures nothing. */
static void take_sample(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    struct send_place at = {.index = r->una};
    if (r->rtt_start == 0 || psn_diff(r->rtt_psn, r->board.range[0].start) < 0)
        return;
    if (!send_place_seek(r, &at, r->rtt_psn) || wqe_is_answered(req_wqe(r, at.index))) {
        rtt_cancel(r);
    } else if (scoreboard_has(&r->board, r->rtt_psn)) {
        rtt_end(qp, now);
    }
}

void selective_report(struct qp *qp, const struct sack *s, uint64_t now)
{
    struct requester *r = qp->req;
    struct scoreboard *b = &r->board;
    struct congestion *c = &qp->peer->congestion;
    uint64_t arrived = b->arrived, inflight = qp->peer->inflight;
    bool lost = scoreboard_update(qp, s);
    qp->peer->reports = true;
    take_sample(qp, now);
    if (b->arrived > arrived)
        congestion_progress(c, &qp->e->cfg, peer_window_capacity(qp->peer), b->arrived - arrived, inflight,
                            req_packet_cost(qp), now);
    if (lost) {
        congestion_confirm(c);
        congestion_loss(c, &qp->e->cfg, peer_window_capacity(qp->peer), inflight, req_packet_cost(qp), now);
    }
    if (b->due) {
        r->cause = RETRANS_SELECTIVE;
        r->timer_at = now;
    }
    qp_schedule(qp);
}

/* --- sending missing packets again ------------------------------------------------------------ */

/* The PSNs that one transmission from `next` on covers: the rest of a request and of the range, or a READ request with
 * all its responses. */
static uint32_t run_length(const struct send_wqe *w, const struct missing_range *m, uint32_t *off)
{
    uint32_t left = (uint32_t)psn_diff(m->end, m->next);
    if (!wqe_is_read(w))
        return min32(w->npkts - *off, left);
    if (*off >= w->chunk_base) /* a READ request is sent again as a whole */
        *off -= (*off - w->chunk_base) % w->chunk;
    return req_chunk_left(w, *off);
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
    uint32_t off = wqe_offset(w, m->next), n = run_length(w, m, &off);
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
    n = req_window_allows_again(qp, w, off, n, s->now);
    *result = TX_DONE; /* something will make the QP ready again */
    if (n == 0)
        return false;
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
    r->timer_at = s->now;
    return true;
}

bool selective_send(struct burst *s, enum tx_result *result)
{
    struct requester *r = s->qp->req;
    struct scoreboard *b = &r->board;
    struct send_place at = {.index = r->una};
    if (r->rnr_until || r->fail_status || req_is_flushing(r))
        return true;
    r->cause = RETRANS_SELECTIVE;
    for (uint32_t i = 0; i < b->count; i++) {
        struct missing_range *m = &b->range[i];
        if (psn_diff(r->una_psn, m->next) > 0)
            m->next = r->una_psn;
        while (m->due && psn_diff(m->end, m->next) > 0)
            if (!send_range(s, &at, m, result))
                return false;
        if (!m->due)
            continue;
        m->due = false; /* nothing of it counts as lost any more */
        m->repeated = true;
        m->mark = r->sent_psn;
        m->order = b->order;
        b->order += (uint32_t)psn_diff(m->end, m->start);
        m->next = m->start;
    }
    b->due = false;
    return true;
}
