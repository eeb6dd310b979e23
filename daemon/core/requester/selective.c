// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/selective.h"

#include "daemon/core/base/min.h"
#include "daemon/core/requester/rtt.h"
#include "daemon/core/requester/window.h"
#include "daemon/core/selective/scoreboard.h"
#include "wire/pumice/sack.h"

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

/* Responses or ACKs behind a missing response have come. Is the packet whose round trip is measured a request without a response
 * before them? Then it has arrived. */
static void take_sample_before(struct qp *qp, uint32_t psn, uint64_t now)
{
    const struct requester *r = qp->req;
    struct send_place at = {.index = r->una};
    if (r->rtt_start && psn_diff(psn, r->rtt_psn) > 0 && psn_diff(r->rtt_psn, r->una_psn) >= 0 &&
        send_place_seek(r, &at, r->rtt_psn) && !wqe_is_answered(req_wqe(r, at.index)))
        rtt_end(qp, now);
}

/* If packets came twice, the sender has sent them again although the first ones were only late. Packets that a probe or
 * going back has sent again do not show that. */
static void count_unneeded(struct qp *qp, const struct sack *s, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    int32_t twice = (int32_t)(s->twice - b->twice);
    if (twice <= 0)
        return;
    uint32_t other = min32((uint32_t)twice, b->repeated), unneeded = min32((uint32_t)twice - other, b->resent);
    b->twice = s->twice;
    b->repeated -= other;
    b->resent -= unneeded;
    if (b->repeated && psn_diff(qp->req->una_psn, b->repeated_end) >= 0)
        b->repeated = 0;
    if (unneeded == 0)
        return;
    COUNT_N(qp, selective_unneeded, unneeded);
    congestion_unneeded(&qp->peer->congestion, unneeded, b->lost == 0, now);
    reordering_unneeded(&qp->peer->reordering, qp->peer->congestion.srtt, now);
}

/* Packets were lost while so many bytes were in flight. */
static void count_lost(struct qp *qp, uint64_t inflight, uint64_t now)
{
    struct congestion *c = &qp->peer->congestion;
    congestion_suspect_late(c, now);
    congestion_loss(c, &qp->e->cfg, peer_window_capacity(qp->peer), inflight, req_packet_cost(qp), now);
    reordering_loss(&qp->peer->reordering);
}

static void send_again(struct qp *qp, uint64_t now)
{
    qp->req->cause = RETRANS_SELECTIVE;
    qp->req->timer_at = now;
}

static void take_list(struct qp *qp, const struct sack *s, enum missing_kind kind, uint64_t now)
{
    struct requester *r = qp->req;
    struct scoreboard *b = &r->board;
    uint64_t arrived = b->arrived, inflight = qp->peer->inflight;
    bool lost = scoreboard_update(qp, s, kind, now);
    qp->peer->reports = true;
    if (kind == MISSING_RESPONSES)
        take_sample_before(qp, s->newest, now);
    else
        take_sample(qp, now);
    uint64_t news = b->arrived > arrived ? b->arrived - arrived : 0;
    if (kind == MISSING_RESPONSES) { /* those that were known before the QP went back are no progress */
        news = min64(news, r->held_cost);
        r->held_cost = 0;
    }
    if (news)
        congestion_progress(&qp->peer->congestion, &qp->e->cfg, peer_window_capacity(qp->peer), news, inflight,
                            req_packet_cost(qp), now);
    if (lost)
        count_lost(qp, inflight, now);
    if (b->due)
        send_again(qp, now);
    qp_schedule(qp);
}

void selective_report(struct qp *qp, const struct sack *s, uint64_t now)
{
    count_unneeded(qp, s, now);
    take_list(qp, s, MISSING_REQUESTS, now);
}

void selective_responses(struct qp *qp, const struct sack *s, uint64_t now)
{
    take_list(qp, s, MISSING_RESPONSES, now);
}

void selective_expire(struct qp *qp, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    uint64_t inflight = qp->peer->inflight;
    scoreboard_ripen(qp, now);
    if (!b->due)
        return;
    count_lost(qp, inflight, now);
    send_again(qp, now);
    qp_schedule(qp);
}
