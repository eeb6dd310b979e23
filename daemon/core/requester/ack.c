// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/ack.h"

#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/base/rx_meta.h"
#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/credits.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/local_ops.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/rtt.h"
#include "daemon/core/requester/selective.h"
#include "daemon/core/requester/window.h"
#include "daemon/core/selective/held_responses.h"
#include "daemon/core/selective/scoreboard.h"
#include "wire/pumice/sack.h"
#include "wire/syndrome.h"

static void bad_response(struct qp *qp, const struct pkt *p)
{
    COUNT(qp, rx_bad_response);
    report_drop_qp(qp, DROP_RESPONSE, p);
}

/* Does the QP take in responses? It may have failed because of the packet before. */
static bool is_receiving(const struct qp *qp)
{
    return qp->attr.state == QPS_RTS || qp->attr.state == QPS_SQD;
}

/* --- acknowledged packets --------------------------------------------------------------------- */

/* To be called after una_psn has moved. released: cost of the packets that are no longer in flight. */
static void progressed(struct qp *qp, uint64_t released, uint64_t now)
{
    struct requester *r = qp->req;
    bool beyond = psn_diff(r->una_psn, r->next_psn) > 0;
    if (psn_diff(r->next_psn, r->una_psn) <= 0) { /* an answer to an earlier transmission overtook the retransmission */
        r->next_psn = r->una_psn;
        r->cur = r->una;
        released = r->inflight;
        scoreboard_clear(&r->board);
    } else if (__builtin_expect(r->board.count, 0)) {
        released = scoreboard_progress(qp, released, now);
    }
    uint64_t inflight = qp->peer->inflight;
    qp_release(qp, released);
    while (r->rd_count && psn_diff(r->una_psn, r->rd[r->rd_head].end) >= 0) {
        r->rd_head = (r->rd_head + 1) % ENGINE_MAX_RD_ATOMIC;
        r->rd_count--;
    }
    rtt_progress(qp, now);
    congestion_progress(&qp->peer->congestion, &qp->e->cfg, peer_window_capacity(qp->peer), released, inflight,
                        req_packet_cost(qp), now);
    if (retry_progress(qp, beyond, now))
        req_skip(qp, r->sent_psn);
    qp_schedule(qp);
}

/* Cost of the packets in flight among the packets [from, to) of a request. */
static uint64_t released_cost(const struct qp *qp, const struct send_wqe *w, uint32_t from, uint32_t to)
{
    int32_t flown = psn_diff(qp->req->next_psn, psn_add(w->first_psn, from));
    if (flown <= 0)
        return 0;
    return req_cost(qp, w, from, (uint32_t)flown < to - from ? from + (uint32_t)flown : to);
}

/* All packets before PSN `to` have arrived. Moves una there, but not over READs, atomics and the like: only their own
 * response completes them. */
static void advance(struct qp *qp, uint32_t to, uint64_t now)
{
    struct requester *r = qp->req;
    uint32_t before = r->una_psn;
    uint64_t released = 0;
    while (psn_diff(to, r->una_psn) > 0 && r->una != r->unsent) {
        const struct send_wqe *w = req_wqe(r, r->una);
        if (wqe_is_answered(w))
            break;
        uint32_t from = wqe_offset(w, r->una_psn);
        uint32_t upto = wqe_offset(w, to);
        if (upto > w->npkts)
            upto = w->npkts;
        released += released_cost(qp, w, from, upto);
        r->una_psn = psn_add(w->first_psn, upto);
        if (upto == w->npkts) {
            req_credit_done(qp, w);
            r->una++;
        }
    }
    if (r->una_psn == before)
        return;
    r->credits.plain_psn = psn_add(r->una_psn, PSN_MASK);
    req_pass_local(r);
    progressed(qp, released, now);
}

/* --- ACKs and NAKs ---------------------------------------------------------------------------- */

static void nak_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    static const uint8_t status_of[] = {
        [NAK_INVALID_REQUEST - NAK_PSN_SEQUENCE] = WC_REM_INV_REQ_ERR,
        [NAK_REMOTE_ACCESS - NAK_PSN_SEQUENCE] = WC_REM_ACCESS_ERR,
        [NAK_REMOTE_OPERATION - NAK_PSN_SEQUENCE] = WC_REM_OP_ERR,
    };
    advance(qp, p->psn, now);
    report_nak_rcvd(qp, p);
    if (p->aeth.syndrome == NAK_PSN_SEQUENCE) {
        COUNT(qp, rcvd_seq_err);
        req_lost_by_nak(qp, now);
        return;
    }
    uint8_t code = (uint8_t)(p->aeth.syndrome - NAK_PSN_SEQUENCE);
    if (code >= sizeof(status_of)) {
        bad_response(qp, p);
        return;
    }
    COUNT(qp, naks_rcvd);
    /* The responder is in its error state and answers nothing more. So the oldest request that is not known to be done
     * fails. This may be a READ before the refused request, if its response was lost. */
    req_fail(qp, status_of[code], p->aeth.syndrome);
}

static void rnr_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    advance(qp, p->psn, now);
    COUNT(qp, rcvd_rnr_err);
    req_credit_refused(r);
    report_nak_rcvd(qp, p);
    if (r->una_psn != p->psn) { /* a response before this packet was lost */
        req_lost_response(qp, now);
        return;
    }
    if (r->rnr_until)
        return;
    if (qp->attr.rnr_retry != 7) {
        if (r->rnr_left == 0) {
            COUNT(qp, retry_rnr_exceeded_err);
            req_fail(qp, WC_RNR_RETRY_EXC_ERR, p->aeth.syndrome);
            return;
        }
        r->rnr_left--;
    }
    req_loss(qp, RETRANS_RNR, r->una_psn, now);
    r->rnr_until = now + rnr_timer_ns(p->aeth.syndrome & AETH_VALUE_MASK);
}

/* --- missing packets ---------------------------------------------------------------------------- */

/* Does the list describe what is in flight? If the QP has gone back and comes to what the list describes, it sends only the
 * gaps of it again. But not if the list may have been made before the packets came that were sent again: it is so old at
 * most. */
static bool is_current(struct qp *qp, const struct sack *s, uint64_t old, uint64_t now)
{
    struct requester *r = qp->req;
    if (r->rnr_until || r->una_psn == r->sent_psn || psn_diff(r->next_psn, s->expected) < 0)
        return false;
    bool went_back = r->next_psn != r->sent_psn;
    if (went_back && now - r->rewound_at < old)
        return false;
    if (went_back)
        req_skip(qp, s->end);
    return psn_diff(r->next_psn, s->end) >= 0;
}

/* Responses or ACKs have come before responses that are missing. */
static void judge_missing(struct qp *qp, uint64_t now)
{
    struct sack s;
    if (held_missing(qp->req, &s) && is_current(qp, &s, qp->peer->congestion.rtt_min, now))
        selective_responses(qp, &s, now);
}

/* An ACK beyond a READ or atomic without its response: the response was lost (IBA 9.7.5.1.3), or is late. An ACK never names a
 * READ or atomic itself (C9-105). */
static void ack_early(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    struct send_place at = {.index = r->una};
    bool plain = send_place_seek(r, &at, p->psn) && !wqe_is_answered(req_wqe(r, at.index));
    if (!plain || !held_allowed(qp, now)) {
        req_lost_response(qp, now);
        return;
    }
    held_ack(qp, p);
    judge_missing(qp, now);
}

/* Takes in an ACK that is no NAK: one that has just come, or one that was kept behind a missing response. */
static void take_ack(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    advance(qp, psn_add(p->psn, 1), now);
    if (r->una_psn == psn_add(p->psn, 1) && req_credits_received(qp, p))
        qp_schedule(qp);
    if (psn_diff(p->psn, r->una_psn) >= 0 && r->una != r->unsent)
        ack_early(qp, p, now);
}

static void ack_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    switch (p->aeth.syndrome & AETH_KIND_MASK) {
    case AETH_ACK:
        COUNT(qp, acks_rcvd);
        take_ack(qp, p, now);
        break;
    case AETH_RNR:
        rnr_received(qp, p, now);
        break;
    case AETH_NAK:
        nak_received(qp, p, now);
        break;
    default:
        bad_response(qp, p);
        break;
    }
}

/* --- responses with data ---------------------------------------------------------------------- */

/* Writes bytes to the request's own buffers. */
static bool store(struct qp *qp, const struct send_wqe *w, uint32_t off, const uint8_t *data, uint32_t len)
{
    struct sge_iter to;
    sge_iter_sgl(&to, &qp->e->keys, w->pd, w->u.sge, off, len, ACCESS_LOCAL_WRITE);
    return sge_iter_write(&to, &qp->e->mem, qp->qpn, data, len) == COPIED;
}

/* Steps over one response packet of request una. */
static void answered(struct qp *qp, const struct send_wqe *w, uint32_t off, uint64_t now)
{
    struct requester *r = qp->req;
    uint64_t released = released_cost(qp, w, off, off + 1);
    r->una_psn = psn_add(r->una_psn, 1);
    if (off + 1 == w->npkts)
        r->una++;
    req_pass_local(r);
    progressed(qp, released, now);
}

static bool is_atomic_ack(const struct pkt *p)
{
    return (p->opcode & OP_OPERATION_MASK) == OP_ATOMIC_ACK;
}

/* Bytes of the response packet with this index of a request. ATOMIC WRITE and FLUSH are answered by a READ response without
 * data (IBA A19). */
static uint32_t response_length(const struct qp *qp, const struct send_wqe *w, uint32_t off)
{
    uint32_t length = wqe_is_read(w) ? w->length : 0;
    return min32(length - off * qp->mtu, qp->mtu);
}

/* A response came before an earlier one. */
static void response_early(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    struct send_place at = {.index = r->una};
    const struct send_wqe *w = send_place_seek(r, &at, p->psn) ? req_wqe(r, at.index) : NULL;
    uint32_t off = w ? wqe_offset(w, p->psn) : 0;
    bool fits = w && wqe_is_answered(w) && is_atomic_ack(p) == wqe_is_atomic(w) &&
                p->payload_len == (is_atomic_ack(p) ? 0 : response_length(qp, w, off));
    if (!fits) {
        bad_response(qp, p);
        return;
    }
    enum hold_result held = held_response(qp, p, req_cost(qp, w, off, off + 1), now);
    if (held == HOLD_REFUSED) {
        req_lost_response(qp, now);
        return;
    }
    if (r->rtt_start && r->rtt_psn == p->psn)
        rtt_end(qp, now);
    if (held == HOLD_NEWS)
        judge_missing(qp, now);
}

/* The oldest response that is missing. */
static void take_response(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    bool atomic = is_atomic_ack(p);
    const struct send_wqe *w = r->una != r->unsent ? req_wqe(r, r->una) : NULL;
    if (!w || !wqe_is_answered(w) || atomic != wqe_is_atomic(w)) {
        bad_response(qp, p);
        return;
    }
    uint32_t off = wqe_offset(w, p->psn);
    bool stored = true;
    if (atomic) {
        /* The packet does not hold the result in host byte order, and the write may be deferred to the end of the
         * batch. So the result is kept until then: no more answers than credits can come in a batch. */
        uint64_t *kept = &r->atomic_result[r->atomic_count++ % ENGINE_MAX_RD_ATOMIC];
        *kept = p->atomic_orig;
        stored = store(qp, w, 0, (const uint8_t *)kept, sizeof(*kept));
    } else {
        uint32_t start = off * qp->mtu, expected = response_length(qp, w, off);
        if (p->payload_len != expected) {
            bad_response(qp, p);
            req_fail(qp, WC_BAD_RESP_ERR, 0);
            return;
        }
        stored = expected == 0 || store(qp, w, start, p->payload, expected);
        COUNT_N(qp, rcvd_bytes, expected);
    }
    if (!stored) {
        COUNT(qp, local_errors);
        req_fail(qp, WC_LOC_PROT_ERR, 0);
        return;
    }
    if (op_table[p->opcode].headers & OP_HAS_AETH && req_credits_received(qp, p))
        qp_schedule(qp);
    answered(qp, w, off, now);
}

static void response_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    advance(qp, p->psn, now);
    if (__builtin_expect(qp->req->una_psn != p->psn, 0))
        response_early(qp, p, now);
    else
        take_response(qp, p, now);
}

/* Missing responses may have come: takes in what was kept behind them. A packet that is kept acknowledges the requests before
 * it. */
static void take_held(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    const struct pkt *p;
    do {
        advance(qp, r->held.count ? reorder_first(&r->held)->p.psn : r->executed, now);
        p = held_next(qp);
        if (p && (p->opcode & OP_OPERATION_MASK) == OP_ACK)
            take_ack(qp, p, now);
        else if (p)
            take_response(qp, p, now);
    } while (p);
    r->behind = is_receiving(qp) && (r->held.count || psn_diff(r->executed, r->una_psn) > 0);
    if (!r->behind)
        r->held_cost = 0; /* what was kept counts as progress of the window now */
    if (r->behind && r->board.count == 0) /* there were more gaps than the scoreboard holds */
        judge_missing(qp, now);
}

/* Is the SACK from the QP that the requester is connected to? */
static bool is_from_peer(const struct qp *qp, const struct sack *s, const struct rx_meta *meta)
{
    return qp_is_reliable(qp) && qp->type != QPT_XRC_RECV && qp->attr.dest_qpn == s->responder &&
           memcmp(meta->src_gid, qp->attr.av.dgid, 16) == 0 &&
           memcmp(meta->dst_gid, qp->e->cfg.gids[qp->attr.av.sgid_index], 16) == 0;
}

/* Are all PSNs of the SACK among those that are not acknowledged yet? Distances are compared, because PSNs may be forged. */
static bool is_outstanding(const struct requester *r, const struct sack *s)
{
    uint32_t out = (r->sent_psn - r->una_psn) & PSN_MASK, expected = (s->expected - r->una_psn) & PSN_MASK;
    uint32_t end = (s->end - r->una_psn) & PSN_MASK, newest = (s->newest - r->una_psn) & PSN_MASK;
    return expected <= end && end <= newest && newest <= out;
}

bool req_rx_sack(struct qp *qp, const struct sack *s, const struct rx_meta *meta, uint64_t now)
{
    struct requester *r = qp->req;
    if (!is_from_peer(qp, s, meta) || !is_receiving(qp))
        return false;
    if (!is_outstanding(r, s)) {
        COUNT(qp, old_acks);
        return true;
    }
    COUNT(qp, sacks_rcvd);
    r->sacked = true;
    advance(qp, s->expected, now);
    if (r->behind)
        take_held(qp, now);
    bool old = r->board.count && psn_diff(s->expected, r->board.executed) < 0; /* responses have come since */
    if (!old && is_current(qp, s, qp->peer->congestion.srtt, now))
        selective_report(qp, s, now);
    return true;
}

void req_rx(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = qp->req;
    if (!is_receiving(qp)) {
        bad_response(qp, p);
        return;
    }
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    if (psn_diff(p->psn, r->una_psn) < 0) {
        if (operation == OP_ACK && req_credits_unasked(qp, p))
            COUNT(qp, credit_acks_rcvd);
        else
            COUNT(qp, old_acks);
        if (operation != OP_ACK)
            held_came_twice(qp, p->psn, now);
        return;
    }
    if (psn_diff(p->psn, r->sent_psn) >= 0) {
        bad_response(qp, p);
        return;
    }
    if (operation == OP_ACK)
        ack_received(qp, p, now);
    else
        response_received(qp, p, now);
    if (__builtin_expect(r->behind, 0))
        take_held(qp, now);
}

/* Are the packets the oldest missing responses of the oldest READ? */
static bool run_is_expected(const struct qp *qp, const struct send_wqe *w, const struct pkt_run *run)
{
    const struct requester *r = qp->req;
    if (r->una_psn != run->first.psn || r->una == r->unsent || !wqe_is_read(w) || run->mtu != qp->mtu)
        return false;
    uint32_t off = wqe_offset(w, run->first.psn);
    return run->n <= w->npkts - off && psn_diff(psn_add(run->first.psn, run->n), r->sent_psn) <= 0 &&
           pkt_run_payload_len(run, run->n - 1) == response_length(qp, w, off + run->n - 1);
}

bool req_rx_run(struct qp *qp, const struct pkt_run *run, uint64_t now)
{
    struct requester *r = qp->req;
    bool later = psn_diff(run->first.psn, r->una_psn) >= 0 && psn_diff(run->first.psn, r->sent_psn) < 0;
    if (!is_receiving(qp) || r->behind || !later)
        return false;
    advance(qp, run->first.psn, now);
    const struct send_wqe *w = req_wqe(r, r->una);
    if (!run_is_expected(qp, w, run))
        return false;
    uint32_t off = wqe_offset(w, run->first.psn);
    if (!store(qp, w, off * qp->mtu, run->payload, run->payload_len))
        return false;
    COUNT_N(qp, rcvd_bytes, run->payload_len);
    for (uint32_t i = 0; i < run->n; i++) {
        const struct pkt *p = i + 1 == run->n ? &run->last : &run->first;
        bool tells = op_table[pkt_run_opcode(run, i)].headers & OP_HAS_AETH;
        if (tells && req_credits_received(qp, p))
            qp_schedule(qp);
        answered(qp, w, off + i, now);
    }
    return true;
}
