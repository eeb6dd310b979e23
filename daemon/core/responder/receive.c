// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/receive.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/qp/time_wait.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/responder/execute.h"
#include "daemon/core/responder/read_first.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/srq.h"
#include "daemon/core/selective/held_requests.h"
#include "wire/syndrome.h"

/* The consequences of a verdict (IBA 9.7.4.1.6, table 58; class B to F errors). */
/* clang-format off */
static const struct consequence {
    uint8_t syndrome; /* 0: nothing is sent */
    uint8_t recv_status; /* enum wc_status of the receive request in use; 0: it is flushed like all others */
    uint8_t event; /* asynchronous event, if no completion reports the error; 0: none */
} consequences[] = {
    [V_OK]         = {0,                    0,                0},
    [V_DROP]       = {0,                    0,                0},
    [V_RNR]        = {AETH_RNR,             0,                0},
    [V_INVALID]    = {NAK_INVALID_REQUEST,  0,                EVENT_QP_REQ_ERR},
    [V_ACCESS]     = {NAK_REMOTE_ACCESS,    0,                EVENT_QP_ACCESS_ERR},
    [V_OPERATION]  = {NAK_REMOTE_OPERATION, 0,                EVENT_QP_FATAL},
    [V_LENGTH]     = {NAK_INVALID_REQUEST,  WC_LOC_LEN_ERR,   0},
    [V_PROTECTION] = {NAK_REMOTE_OPERATION, WC_LOC_PROT_ERR,  0},
};
/* clang-format on */

/* --- plausible PSNs ---------------------------------------------------------------------------- */

/* A third party can forge the peer's address, but has to guess the PSN. A wrong guess ahead of the expected PSN would
 * look like a gap: the NAK makes the peer send its whole window again. So only a PSN that the peer's window can hold
 * counts as a gap or as a duplicate.
 *
 * The peer may be another stack, whose window the responder does not know. This one is far above those in use. rxe has
 * at most 128 packets unacknowledged, Pumice 4096 by default. A NIC needs its bandwidth times the round trip: 65536
 * packets of 4096 bytes at 400 Gb/s are a round trip of 5 ms, and 65536 packets of 256 bytes at 25 Gb/s are the same.
 * 1 of 256 random guesses still counts as a gap. If a peer has an even larger window, nothing breaks: it repeats
 * after its timeout what it would have repeated after a NAK. */
#define PSN_WINDOW 65536u

/* A READ uses one PSN for each packet of its response (IBA 9.7.5.1.1), however long that is. A lost READ leaves a gap
 * of so many PSNs, and a repeated one starts as far back. The window grows with the READs that the peer really makes. */
static uint32_t psn_window(const struct qp *qp)
{
    uint32_t own = qp->e->cfg.window_pkts > PSN_WINDOW ? qp->e->cfg.window_pkts : PSN_WINDOW;
    uint64_t all = own + (uint64_t)qp->resp->longest_read * qp->attr.max_dest_rd_atomic;
    return all < PSN_MASK / 2 ? (uint32_t)all : PSN_MASK / 2;
}

static bool is_plausible(const struct qp *qp, int32_t ahead)
{
    uint32_t distance = (uint32_t)(ahead < 0 ? -ahead : ahead);
    return distance <= PSN_WINDOW || distance <= psn_window(qp);
}

/* --- duplicates ------------------------------------------------------------------------------- */

/* A repeated READ may ask for a later part of the first one (IBA 9.7.5.1.7). A requester that keeps the responses behind a
 * missing one asks only for the missing ones. */
static void repeat_read(struct qp *qp, const struct pkt *p)
{
    struct resource *res = resp_find_resource(qp, p->psn, OP_READ_REQUEST);
    if (!res)
        return; /* too old */
    uint32_t off = (uint32_t)psn_diff(p->psn, res->first_psn);
    uint32_t npkts = psn_count(p->reth.length, qp->mtu);
    uint64_t start = (uint64_t)off * qp->mtu;
    if (p->reth.rkey != res->rkey || p->reth.va != res->va + start || p->reth.length > res->length - start ||
        npkts > res->npkts - off)
        return; /* the packet does not repeat the first request */
    resp_answer_again(qp, res, off, off + npkts);
}

static void duplicate(struct qp *qp, const struct pkt *p)
{
    COUNT(qp, duplicate_request);
    qp->resp->twice++;
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    if (operation == OP_READ_REQUEST) {
        repeat_read(qp, p);
    } else if (resp_is_answered(operation)) {
        struct resource *res = resp_find_resource(qp, p->psn, operation);
        if (res)
            resp_answer_later(qp, res, 0, 1, true);
    } else if (psn_diff(p->psn, qp->resp->plain_psn) <= 0) { /* else a READ or atomic has this PSN */
        qp->resp->ack_pending = true;
    }
}

/* --- consequences ----------------------------------------------------------------------------- */

/* A packet beyond the expected one: packets were lost. The responder sends one NAK per gap (IBA 9.7.5.2.8). It sends
 * another one only when the NAK was lost, too: that is, when the sender has gone back (it repeats its last packet or an
 * earlier one) and the expected packet still does not come. */
static void out_of_sequence(struct qp *qp, const struct pkt *p)
{
    struct responder *r = qp->resp;
    COUNT(qp, out_of_seq_request);
    COUNT_MAX(qp, max_rcvd_window, (uint32_t)psn_diff(p->psn, r->epsn));
    bool went_back = psn_diff(p->psn, r->nak_last) <= 0;
    r->nak_last = p->psn;
    if (r->nak_sent && (r->nak_quiet || !went_back))
        return;
    r->nak_sent = true;
    r->nak_quiet = false;
    r->nak = NAK_PSN_SEQUENCE;
    r->nak_psn = r->epsn;
    report_nak_sent(qp, NAK_PSN_SEQUENCE, r->epsn, p);
    COUNT(qp, send_seq_err);
}

static void refuse(struct qp *qp, const struct pkt *p, enum rx_verdict v, uint64_t now)
{
    struct responder *r = qp->resp;
    const struct consequence *c = &consequences[v];
    if (v == V_RNR) {
        r->nak = AETH_RNR | qp->attr.min_rnr_timer;
        r->nak_psn = p->psn;
        r->nak_sent = true;
        r->nak_quiet = true; /* the following packets are dropped without a NAK of their own */
        report_nak_sent(qp, r->nak, p->psn, p);
        COUNT(qp, send_rnr_err);
        return;
    }
    if (c->recv_status)
        report_error(qp, ERROR_RECV, c->recv_status, c->syndrome);
    if (c->recv_status && !tm_fail_message(qp, c->recv_status, now))
        resp_complete(qp, c->recv_status, now);
    else if (!c->recv_status && c->event)
        event_add(qp, c->event);
    if (r->message != OP_IS_SEND)
        srq_put_back(qp); /* no data of the message is in it */
    qp_fail_with_nak(qp, c->syndrome, p->psn, p);
}

void resp_established(struct qp *qp)
{
    if (qp->attr.state != QPS_RTR || qp->resp->comm_est)
        return;
    qp->resp->comm_est = true;
    event_add(qp, EVENT_COMM_EST);
}

/* The responder has carried out a packet. opcode, psn, bytes of payload, ackreq: the packet's. */
static void accepted(struct qp *qp, uint8_t opcode, uint32_t psn, uint32_t bytes, bool ackreq, uint64_t now)
{
    struct responder *r = qp->resp;
    uint16_t props = op_table[opcode].properties;
    resp_credits_arrived(r);
    r->epsn = psn_add(r->epsn, 1);
    r->nak_sent = r->stalled = false;
    if (r->nak && (r->nak == NAK_PSN_SEQUENCE || (r->nak & AETH_KIND_MASK) == AETH_RNR))
        r->nak = 0; /* the packet that it asks for has come */
    if (props & (OP_IS_LAST | OP_IS_ONLY))
        r->msn = psn_add(r->msn, 1);
    COUNT_N(qp, rcvd_bytes, bytes);
    if (!resp_is_answered(opcode & OP_OPERATION_MASK)) {
        r->plain_psn = psn;
        r->plain_msn = r->msn;
        r->ack_of_receive |= (props & OP_NEEDS_RECV) && (props & (OP_IS_LAST | OP_IS_ONLY));
        if (ackreq) {
            if (r->ack_pending)
                COUNT(qp, ack_coalesced);
            r->ack_pending = true;
        } else if (!r->ack_pending && r->ack_deadline == 0 && qp->e->cfg.ack_delay_ns) {
            r->ack_deadline = now + qp->e->cfg.ack_delay_ns;
        }
    }
    resp_established(qp);
}

/* The expected packet. */
static void in_sequence(struct qp *qp, const struct pkt *p, uint64_t now)
{
    enum rx_verdict v = read_first(qp, p) ? resp_execute(qp, p, now) : V_DROP;
    if (v == V_OK) {
        accepted(qp, p->opcode, p->psn, p->payload_len, p->ackreq, now);
    } else if (v == V_DROP) {
        /* Send no NAK here or for the following packets: the sender would retransmit in a loop while there is no room. */
        qp->resp->nak_sent = qp->resp->nak_quiet = true;
    } else {
        refuse(qp, p, v, now);
    }
}

/* The expected packet has come. Takes in those that were held behind it. One that can't be carried out now is dropped, and
 * the sender comes back to it. */
static void take_held(struct qp *qp, uint64_t now)
{
    struct responder *r = qp->resp;
    while (r->held.count) {
        const struct pkt *p = &reorder_first(&r->held)->p;
        int32_t ahead = psn_diff(p->psn, r->epsn);
        if (ahead > 0)
            return;
        reorder_drop_first(&qp->e->reorder, &r->held);
        if (ahead == 0)
            in_sequence(qp, p, now);
    }
}

/* The expected packet, while others are held behind it. The peer hears of it at once, as with TCP (RFC 5681, section 4.2): its
 * window is full of packets that came long ago. A READ or an atomic is answered anyway. If all of the first gap is filled and
 * others remain, the peer hears of these, too: a packet that was sent again before may be lost again. */
static void fill_gap(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct responder *r = qp->resp;
    uint32_t plain = r->plain_psn, count = r->held.count;
    in_sequence(qp, p, now);
    take_held(qp, now);
    if (qp->attr.state == QPS_ERR || r->nak)
        return;
    r->ack_pending |= r->plain_psn != plain;
    r->sack_pending |= r->held.count && r->held.count < count && !r->nak_sent;
}

void resp_rx(struct qp *qp, const struct pkt *p, uint64_t now)
{
    int32_t ahead = psn_diff(p->psn, qp->resp->epsn);
    if (__builtin_expect(!is_plausible(qp, ahead), 0)) {
        COUNT(qp, rx_bad_psn);
        report_drop_qp(qp, DROP_PSN, p);
    } else if (ahead > 0) {
        if (!resp_hold(qp, p, now))
            out_of_sequence(qp, p);
    } else if (ahead < 0) {
        duplicate(qp, p);
    } else if (__builtin_expect(qp->resp->held.count, 0)) {
        fill_gap(qp, p, now);
    } else {
        in_sequence(qp, p, now);
    }
    resp_ack_is_due(qp->resp, now);
    if (resp_has_work(qp->resp))
        qp_schedule(qp);
}

bool resp_rx_run(struct qp *qp, const struct pkt_run *r, uint64_t now)
{
    if (r->first.psn != qp->resp->epsn || qp->resp->held.count || !read_first(qp, &r->first) ||
        !resp_execute_run(qp, r, now))
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        accepted(qp, pkt_run_opcode(r, i), psn_add(r->first.psn, i), pkt_run_payload_len(r, i),
                 i + 1 == r->n && r->last.ackreq, now);
    resp_ack_is_due(qp->resp, now);
    if (resp_has_work(qp->resp))
        qp_schedule(qp);
    return true;
}

bool resp_received(const struct qp *qp, struct time_wait *e)
{
    const struct responder *r = qp->resp;
    bool failed = qp->attr.state == QPS_ERR && !r->closed;
    if (!qp_is_reliable(qp) || qp->type == QPT_XRC_SEND || qp->attr.state < QPS_RTR || failed)
        return false;
    *e = (struct time_wait){
        .qpn = qp->qpn,
        .dest_qpn = qp->attr.dest_qpn,
        .ack_psn = r->plain_psn,
        .ack_msn = r->plain_msn,
        .av = qp->attr.av,
        .service = qp->service,
        /* An ACK that was due is sent, unless it would overtake responses that will never be sent. */
        .ack_pending = (r->ack_pending || r->ack_deadline) && !r->nak && !r->res_pending,
    };
    return true;
}

bool resp_rx_closed(struct qp *qp, const struct pkt *p, const struct rx_meta *meta)
{
    struct responder *r = qp->resp;
    struct time_wait received;
    if (!resp_received(qp, &received) || !time_wait_covers(&received, p, meta))
        return false;
    r->ack_pending = true;
    qp_schedule(qp);
    return true;
}
