// SPDX-License-Identifier: BSD-2-Clause
/* The requester's receiving half: ACKs, NAKs and responses, what they acknowledge, and retirement of requests in
 * order. */
#include <string.h>

#include "daemon/core/engine_priv.h"

/* Bytes. A lost packet costs go-back-N a window of packets that are sent twice; a window below what the path holds
 * costs as much. This keeps 70 % of 4 GB/s at a round trip of 30 us when one packet in a hundred is lost (sim
 * --goodput), and is two messages of 64 KiB. */
#define CWND_MIN 147456u
#define CWND_GROWTH 2u /* packets that the window grows by per round trip */

static void bad_response(struct qp *qp, const struct pkt *p)
{
    COUNT(qp, rx_bad_response);
    report_drop_qp(qp, DROP_RESPONSE, p);
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- what is acknowledged --------------------------------------------------------------------------------------------------- */

/* After una_psn moved: everything that hangs on it. released: cost of what is no longer in flight. */
static void progressed(struct qp *qp, uint64_t released, uint64_t now)
{
    struct requester *r = &qp->req;
    if (psn_diff(r->next_psn, r->una_psn) <= 0) { /* an answer to an earlier transmission overtook the retransmission */
        r->next_psn = r->una_psn;
        r->cur = r->una;
        released = r->inflight;
    }
    peer_window_release(qp, released);
    while (r->rd_count && psn_diff(r->una_psn, r->rd[r->rd_head].end) >= 0) {
        r->rd_head = (r->rd_head + 1) % ENGINE_MAX_RD_ATOMIC;
        r->rd_count--;
    }
    if (r->rtt_start && psn_diff(r->una_psn, r->rtt_psn) > 0) {
        uint64_t sample = now - r->rtt_start;
        r->srtt = r->srtt ? (7 * r->srtt + sample) / 8 : sample;
        if (r->rtt_min == 0 || sample < r->rtt_min)
            r->rtt_min = sample;
        r->rtt_start = 0;
    }
    if (psn_diff(r->una_psn, r->recover_psn) > 0)
        r->recover_psn = r->una_psn;
    r->cwnd = min64(r->cwnd + released * CWND_GROWTH * qp->mtu / r->cwnd, qp->e->cfg.peer_window_bytes);
    r->retries_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
    r->probes = 0;
    r->probe_due = false;
    r->progress_at = now;
    engine_ready(qp);
}

/* Cost of packets [from, to) of a request, as far as they are in flight. */
static uint64_t released_cost(const struct qp *qp, const struct send_wqe *w, uint32_t from, uint32_t to)
{
    int32_t flown = psn_diff(qp->req.next_psn, psn_add(w->first_psn, from));
    if (flown <= 0)
        return 0;
    return req_cost(qp, w, from, (uint32_t)flown < to - from ? from + (uint32_t)flown : to);
}

void req_pass_local(struct qp *qp)
{
    struct requester *r = &qp->req;
    while (r->una != r->unsent && req_wqe(qp, r->una)->npkts == 0 && !req_wqe(qp, r->una)->local_error)
        r->una++;
}

/* All PSNs before `to` arrived; moves una there, but not over READs, atomics and the like, which only their response
 * completes. */
static void advance(struct qp *qp, uint32_t to, uint64_t now)
{
    struct requester *r = &qp->req;
    uint32_t before = r->una_psn;
    uint64_t released = 0;
    while (psn_diff(to, r->una_psn) > 0 && r->una != r->unsent) {
        const struct send_wqe *w = req_wqe(qp, r->una);
        if (req_is_answered(w))
            break;
        uint32_t from = req_offset(w, r->una_psn);
        uint32_t upto = req_offset(w, to);
        if (upto > w->npkts)
            upto = w->npkts;
        released += released_cost(qp, w, from, upto);
        r->una_psn = psn_add(w->first_psn, upto);
        if (upto == w->npkts)
            r->una++;
    }
    if (r->una_psn == before)
        return;
    req_pass_local(qp);
    progressed(qp, released, now);
}

/* --- loss ------------------------------------------------------------------------------------------------------------------- */

void req_rewind(struct qp *qp, uint32_t psn)
{
    struct requester *r = &qp->req;
    uint64_t inflight = 0;
    uint32_t at = r->una_psn;
    r->cur = r->una;
    while (r->cur != r->unsent) {
        const struct send_wqe *w = req_wqe(qp, r->cur);
        if (req_is_local(w) && w->local_error)
            break;
        uint32_t from = req_offset(w, at);
        uint32_t upto = req_offset(w, psn);
        if (upto < w->npkts) {
            inflight += req_cost(qp, w, from, upto);
            break;
        }
        inflight += req_cost(qp, w, from, w->npkts);
        at = psn_add(w->first_psn, w->npkts);
        r->cur++;
    }
    r->next_psn = psn;
    peer_window_release(qp, r->inflight - min64(inflight, r->inflight));
    while (r->rd_count && psn_diff(r->rd[(r->rd_head + r->rd_count - 1) % ENGINE_MAX_RD_ATOMIC].end, psn) > 0)
        r->rd_count--;
    r->rtt_start = 0;
    r->probe_due = false;
    engine_ready(qp);
}

void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now)
{
    struct requester *r = &qp->req;
    if (cause != RETRANS_RNR && psn_diff(r->una_psn, r->recover_psn) >= 0) {
        /* Once per window: the same burst of losses is not counted twice. */
        uint64_t floor = min64(CWND_MIN, qp->e->cfg.peer_window_bytes / 2);
        r->cwnd = r->cwnd / 2 < floor ? floor : r->cwnd / 2;
        r->recover_psn = r->sent_psn;
    }
    r->cause = (uint8_t)cause;
    r->rewound_at = now;
    r->rewind_psn = psn;
    req_rewind(qp, psn);
}

/* Duplicates of a NAK, and responses that were under way behind a lost one, tell the same loss again: what comes
 * within `echo` after the retransmission began can't be about the retransmission. If the same packet is lost once
 * more, the timeout goes on: on a path that never lets it pass, because it is too long, say, the QP must run out of
 * retries although there are always NAKs. */
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

/* A responder's NAK: it takes a round trip until the next one can follow. */
static void lost_by_nak(struct qp *qp, uint64_t now)
{
    lost(qp, qp->req.rtt_min ? qp->req.rtt_min / 2 : 20000, now);
}

/* A missing response: those behind it are still coming in. */
static void lost_response(struct qp *qp, uint64_t now)
{
    lost(qp, qp->req.srtt ? 2 * qp->req.srtt : 50000, now);
}

/* --- errors ----------------------------------------------------------------------------------------------------------------- */

void req_fail(struct qp *qp, uint8_t status, uint8_t cause)
{
    static const uint8_t cause_of[] = {
        [WC_LOC_LEN_ERR] = ERROR_LOCAL,       [WC_LOC_QP_OP_ERR] = ERROR_LOCAL,
        [WC_LOC_PROT_ERR] = ERROR_LOCAL,      [WC_MW_BIND_ERR] = ERROR_LOCAL,
        [WC_BAD_RESP_ERR] = ERROR_RESPONSE,   [WC_REM_INV_REQ_ERR] = ERROR_PEER_NAK,
        [WC_REM_ACCESS_ERR] = ERROR_PEER_NAK, [WC_REM_OP_ERR] = ERROR_PEER_NAK,
        [WC_RETRY_EXC_ERR] = ERROR_RETRY,     [WC_RNR_RETRY_EXC_ERR] = ERROR_RNR_RETRY,
    };
    enum error_cause why = status < sizeof(cause_of) ? (enum error_cause)cause_of[status] : ERROR_PROGRAM;
    report_error(qp, why == ERROR_PROGRAM ? ERROR_LOCAL : why, status, why == ERROR_PEER_NAK ? cause : 0);
    qp->req.fail_status = status;
    qp->req.fail_cause = cause;
    if (qp_is_reliable(qp))
        qp_fail(qp);
    else
        qp_fail_sends(qp);
}

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
        lost_by_nak(qp, now);
        return;
    }
    uint8_t code = (uint8_t)(p->aeth.syndrome - NAK_PSN_SEQUENCE);
    if (code >= sizeof(status_of)) {
        bad_response(qp, p);
        return;
    }
    COUNT(qp, naks_rcvd);
    /* The responder is in its error state: nothing before can still be answered. So the oldest request that is not
     * known to be done is the one that fails, even if it is a READ before the refused one, whose response was lost. */
    req_fail(qp, status_of[code], p->aeth.syndrome);
}

static void rnr_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = &qp->req;
    advance(qp, p->psn, now);
    COUNT(qp, rcvd_rnr_err);
    report_nak_rcvd(qp, p);
    if (r->una_psn != p->psn) { /* a response before it was lost */
        lost_response(qp, now);
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

static void ack_received(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = &qp->req;
    switch (p->aeth.syndrome & AETH_KIND_MASK) {
    case AETH_ACK: {
        COUNT(qp, acks_rcvd);
        advance(qp, psn_add(p->psn, 1), now);
        /* An ACK beyond a READ or atomic without its response: the response was lost (9.7.5.1.3). */
        if (psn_diff(p->psn, r->una_psn) >= 0 && r->una != r->unsent)
            lost_response(qp, now);
        break;
    }
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

/* --- responses with data ---------------------------------------------------------------------------------------------------- */

/* Puts bytes into the request's own buffers. */
static bool place(struct qp *qp, const struct send_wqe *w, uint32_t off, const uint8_t *data, uint32_t len)
{
    struct sge_iter to;
    sge_iter_sgl(&to, &qp->e->keys, w->pd, w->u.sge, off, len, ACCESS_LOCAL_WRITE);
    return sge_iter_write(&to, qp->e, qp->qpn, data, len) == COPIED;
}

/* Steps over one response packet of request una. */
static void answered(struct qp *qp, const struct send_wqe *w, uint32_t off, uint64_t now)
{
    struct requester *r = &qp->req;
    uint64_t released = released_cost(qp, w, off, off + 1);
    r->una_psn = psn_add(r->una_psn, 1);
    if (off + 1 == w->npkts)
        r->una++;
    req_pass_local(qp);
    progressed(qp, released, now);
}

static void response_received(struct qp *qp, const struct pkt *p, bool atomic, uint64_t now)
{
    struct requester *r = &qp->req;
    advance(qp, p->psn, now);
    if (r->una_psn != p->psn) { /* an earlier response is missing */
        lost_response(qp, now);
        return;
    }
    const struct send_wqe *w = r->una != r->unsent ? req_wqe(qp, r->una) : NULL;
    if (!w || !req_is_answered(w) || atomic != req_is_atomic(w)) {
        bad_response(qp, p);
        return;
    }
    uint32_t off = req_offset(w, p->psn);
    bool placed = true;
    if (atomic) {
        /* In host byte order it does not stand in the packet, and the write may be deferred to the end of the batch:
         * there are no more answers than credits until then. */
        uint64_t *kept = &r->atomic_result[r->atomic_count++ % ENGINE_MAX_RD_ATOMIC];
        *kept = p->atomic_orig;
        placed = place(qp, w, 0, (const uint8_t *)kept, sizeof(*kept));
    } else {
        /* ATOMIC WRITE and FLUSH are answered by a READ response without data (A19). */
        uint32_t length = req_is_read(w) ? w->length : 0, start = off * qp->mtu;
        uint32_t expected = length - start < qp->mtu ? length - start : qp->mtu;
        if (p->payload_len != expected) {
            bad_response(qp, p);
            req_fail(qp, WC_BAD_RESP_ERR, 0);
            return;
        }
        placed = expected == 0 || place(qp, w, start, p->payload, expected);
        COUNT_N(qp, rcvd_bytes, expected);
    }
    if (!placed) {
        COUNT(qp, local_errors);
        req_fail(qp, WC_LOC_PROT_ERR, 0);
        return;
    }
    answered(qp, w, off, now);
}

void req_rx(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct requester *r = &qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD) {
        bad_response(qp, p);
        return;
    }
    if (psn_diff(p->psn, r->una_psn) < 0) {
        COUNT(qp, old_acks);
        return;
    }
    if (psn_diff(p->psn, r->sent_psn) >= 0) {
        bad_response(qp, p);
        return;
    }
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    if (operation == OP_ACK)
        ack_received(qp, p, now);
    else
        response_received(qp, p, operation == OP_ATOMIC_ACK, now);
}

/* --- retirement ------------------------------------------------------------------------------------------------------------- */

static uint8_t wc_opcode_of(const struct send_wqe *w)
{
    static const uint8_t map[] = {
        [WR_RDMA_WRITE] = WC_RDMA_WRITE,
        [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
        [WR_SEND] = WC_SEND,
        [WR_SEND_WITH_IMM] = WC_SEND,
        [WR_RDMA_READ] = WC_RDMA_READ,
        [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
        [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
        [WR_LOCAL_INV] = WC_LOCAL_INV,
        [WR_BIND_MW] = WC_BIND_MW,
        [WR_SEND_WITH_INV] = WC_SEND,
        [WR_FLUSH] = WC_FLUSH,
        [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
    };
    return map[w->wr.opcode];
}

static void complete(struct qp *qp, const struct send_wqe *w, uint8_t status, uint8_t cause, uint64_t now)
{
    struct completion *c = completion_add(qp, false, status, now);
    c->wr_id = w->wr.wr_id;
    c->slot = w->wr.slot;
    c->opcode = wc_opcode_of(w);
    c->vendor_err = cause;
    if (status == WC_SUCCESS && (req_is_read(w) || req_is_atomic(w)))
        c->byte_len = w->length;
}

static void count_done(struct qp *qp, const struct send_wqe *w)
{
    switch (wc_opcode_of(w)) {
    case WC_SEND:
        COUNT(qp, sends);
        break;
    case WC_RDMA_WRITE:
        COUNT(qp, writes);
        break;
    case WC_RDMA_READ:
        COUNT(qp, reads);
        break;
    case WC_FLUSH:
        COUNT(qp, flushes);
        break;
    case WC_ATOMIC_WRITE:
        COUNT(qp, atomic_writes);
        break;
    case WC_BIND_MW:
        COUNT(qp, mw_binds);
        break;
    case WC_LOCAL_INV:
        COUNT(qp, mw_invalidates);
        break;
    default:
        COUNT(qp, atomics);
        break;
    }
}

bool req_is_drained(const struct qp *qp)
{
    const struct requester *r = &qp->req;
    return r->sq.head == r->una && (r->una == r->unsent || !req_has_begun(qp, req_wqe(qp, r->una)));
}

void req_drained(struct qp *qp)
{
    if (qp->attr.state != QPS_SQD || qp->sq_drained_reported || !req_is_drained(qp))
        return;
    qp->sq_drained_reported = true;
    if (qp->attr.sqd_async_notify)
        event_add(qp, EVENT_SQ_DRAINED);
}

bool req_retire(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    while (r->sq.head != r->una) {
        const struct send_wqe *w = req_wqe(qp, r->sq.head);
        if (w->own) {
            if (!rndv_retire(qp, w, now))
                return true;
        } else if (w->wr.flags & SEND_SIGNALED) {
            if (completion_room(qp->e) == 0)
                return true;
            complete(qp, w, WC_SUCCESS, 0, now);
        }
        count_done(qp, w);
        r->sq.head++;
    }
    /* A request that failed locally does so when its turn comes: all before it is done, and nothing of it is under
     * way. */
    if (r->una != r->unsent && r->una == r->cur && r->una_psn == r->next_psn && !req_flushing(qp)) {
        const struct send_wqe *w = req_wqe(qp, r->una);
        if (w->local_error) {
            COUNT(qp, local_errors);
            req_fail(qp, w->local_error, w->local_cause);
        }
    }
    req_drained(qp);
    return false;
}

bool req_flush(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    while (req_flushing(qp)) {
        if (completion_room(qp->e) == 0)
            return true;
        uint8_t status = r->fail_status ? r->fail_status : WC_WR_FLUSH_ERR;
        if (req_wqe(qp, r->sq.head)->own)
            rndv_flush_request(qp, req_wqe(qp, r->sq.head), status, now);
        else
            complete(qp, req_wqe(qp, r->sq.head), status, r->fail_cause, now);
        r->fail_status = r->fail_cause = 0;
        r->una = r->cur = r->unsent = ++r->sq.head;
    }
    r->unsent_psn = r->next_psn; /* what was flushed takes no PSNs: in SQE they are still needed */
    if (r->sq.head != r->sq.tail)
        engine_ready(qp); /* posted after SQE was left */
    return false;
}
