// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/reply.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/responder/read_first.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/selective/held_requests.h"
#include "wire/syndrome.h"

static void start_packet(const struct qp *qp, struct pkt *p, uint8_t operation, uint8_t credits, uint32_t psn,
                         uint32_t msn)
{
    p->opcode = (uint8_t)(qp->service | operation);
    p->pad = 0;
    p->tver = 0;
    p->migreq = true;
    p->fecn = p->becn = p->solicited = p->ackreq = false;
    p->pkey = PKEY_DEFAULT;
    p->dest_qpn = qp->attr.dest_qpn;
    p->psn = psn;
    p->aeth.syndrome = AETH_ACK | credits;
    p->aeth.msn = msn;
}

/* The packet that was just planned acknowledges everything before psn. */
static void acknowledged(struct qp *qp, uint32_t psn)
{
    if (psn_diff(psn, qp->resp->acked_psn) > 0)
        qp->resp->acked_psn = psn;
}

/* The last packet of a response was planned. It acknowledges all packets before the request, too. */
static void answered(struct qp *qp, struct resource *res)
{
    struct responder *r = qp->resp;
    acknowledged(qp, psn_add(res->first_psn, res->end_pkt));
    if (psn_diff(r->plain_psn, res->first_psn) < 0) {
        if (r->ack_pending)
            COUNT(qp, ack_coalesced);
        r->ack_pending = r->ack_of_receive = false;
        r->ack_deadline = r->ack_due = 0;
    }
    if (res->operation == OP_READ_REQUEST && res->end_pkt == res->npkts && !res->counted) {
        res->counted = true;
        qp_count_op(qp, CNTR_REMOTE_READ, true, res->length);
    }
    resp_round_done(qp, res);
}

static uint8_t read_operation(const struct resource *res, uint32_t pkt)
{
    if (res->end_pkt - res->start_pkt == 1)
        return OP_READ_RESP_ONLY;
    if (pkt == res->start_pkt)
        return OP_READ_RESP_FIRST;
    return pkt + 1 == res->end_pkt ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE;
}

/* Bytes of payload in response packet pkt of a READ. */
static uint32_t response_len(const struct qp *qp, const struct resource *res, uint32_t pkt)
{
    uint64_t left = res->length - (uint64_t)pkt * qp->mtu;
    return left < qp->mtu ? (uint32_t)left : qp->mtu;
}

static void start_response(const struct qp *qp, const struct resource *res, uint32_t pkt, uint8_t credits,
                           struct pkt *p)
{
    start_packet(qp, p, read_operation(res, pkt), credits, psn_add(res->first_psn, pkt), res->msn);
    p->pad = (uint8_t)pkt_pad(response_len(qp, res, pkt));
}

/* Plans up to n response packets of a READ as one run within the device. Returns how many found room. */
static uint32_t plan_whole(struct qp *qp, struct tx_batch *b, const struct resource *res, uint32_t n, uint8_t credits,
                           struct buf *buf)
{
    uint32_t end = res->next_pkt + n - 1;
    struct pkt_run r;
    r.n = n;
    r.mtu = qp->mtu;
    r.payload_len = (n - 1) * qp->mtu + response_len(qp, res, end);
    r.middle = (uint8_t)(qp->service | OP_READ_RESP_MIDDLE);
    r.last.opcode = (uint8_t)(qp->service | read_operation(res, end));
    start_response(qp, res, res->next_pkt, credits, &r.first);
    uint8_t *payload;
    struct pkt_run *run = qp_append_run(qp, b, &r, &payload);
    if (!run)
        return 0;
    start_response(qp, res, res->next_pkt + run->n - 1, credits, &run->last);
    *buf = (struct buf){.p = payload, .len = run->payload_len};
    return run->n;
}

/* Plans up to n response packets of a READ. buf receives the places of their payloads, and *bufs their number. */
static uint32_t plan_responses(struct qp *qp, struct tx_batch *b, const struct resource *res, uint32_t n,
                               struct buf *buf, uint32_t *bufs)
{
    uint8_t credits = resp_give_credits(qp);
    uint32_t done = 0;
    *bufs = 0;
    if (n > 1 && !res->again && b->runs < TX_BATCH_RUNS && qp_hands_over(qp, b)) {
        done = plan_whole(qp, b, res, n, credits, buf);
        *bufs = done > 0;
        n = done; /* no room for more */
    }
    while (done < n) {
        uint32_t pkt = res->next_pkt + done, len = response_len(qp, res, pkt);
        struct pkt p;
        start_response(qp, res, pkt, credits, &p);
        uint8_t *payload;
        if (!qp_append(qp, b, &p, len, &payload))
            break;
        buf[(*bufs)++] = (struct buf){.p = payload, .len = len};
        done++;
    }
    COUNT_N(qp, sent_responses, done);
    return done;
}

static uint32_t total(const struct buf *buf, uint32_t n)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += (uint32_t)buf[i].len;
    return bytes;
}

static enum tx_result send_read_response(struct qp *qp, struct tx_batch *b, struct resource *res, uint64_t now)
{
    uint32_t pkt0 = b->n;
    size_t used0 = b->used;
    struct buf buf[TX_BATCH_PKTS];
    uint32_t want = res->end_pkt - res->next_pkt;
    uint32_t rate = dcqcn_allows(qp->dcqcn, &qp->e->cfg, now);
    if (rate == 0)
        return TX_DONE;
    uint32_t burst =
        sched_turn_bytes(&qp->sched, qp->e->cfg.burst_bytes, qp->req->cur != qp->req->sq.tail || qp->req->probe_due);
    uint32_t most = (rate < burst ? rate : burst) / qp->mtu;
    if (want > most)
        want = most ? most : 1;
    uint32_t bufs, n = plan_responses(qp, b, res, want, buf, &bufs);
    if (n == 0)
        return TX_FULL;

    uint32_t bytes = total(buf, bufs);
    if (read_first_data(qp, res, buf, bufs, bytes) != COPIED) {
        /* The memory was deregistered, invalidated, or unmapped by its owner since the request was accepted. */
        tx_take_back(b, pkt0, used0);
        if (res->again) { /* the first answer was in time, and the network may have repeated the request */
            resp_response_done(qp, res);
            return TX_MORE;
        }
        uint32_t psn = psn_add(res->first_psn, res->next_pkt);
        qp_count_op(qp, CNTR_REMOTE_READ, false, 0);
        resp_drop_responses(qp);
        if (qp->attr.state == QPS_ERR) { /* a later request was refused before: its NAK names this one instead */
            qp->resp->nak = NAK_REMOTE_ACCESS;
            qp->resp->nak_psn = psn;
            return TX_MORE;
        }
        event_add(qp, EVENT_QP_ACCESS_ERR);
        qp_fail_with_nak(qp, NAK_REMOTE_ACCESS, psn, NULL);
        return TX_MORE;
    }
    dcqcn_sent(qp->dcqcn, bytes + (uint64_t)n * PACKET_OVERHEAD, now);
    qp->resp->data_at = now;
    res->next_pkt += n;
    if (res->next_pkt == res->end_pkt)
        answered(qp, res);
    return TX_MORE;
}

static enum tx_result send_atomic_response(struct qp *qp, struct tx_batch *b, struct resource *res)
{
    struct pkt p;
    uint8_t *payload;
    start_packet(qp, &p, OP_ATOMIC_ACK, resp_give_credits(qp), res->first_psn, res->msn);
    p.atomic_orig = res->atomic_orig;
    if (!qp_append(qp, b, &p, 0, &payload))
        return TX_FULL;
    COUNT(qp, sent_responses);
    answered(qp, res);
    return TX_MORE;
}

static bool send_ack(struct qp *qp, struct tx_batch *b, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct pkt p;
    uint8_t *payload;
    start_packet(qp, &p, OP_ACK, 0, psn, msn);
    p.aeth.syndrome = syndrome;
    if (!qp_append(qp, b, &p, 0, &payload))
        return false;
    acknowledged(qp, (syndrome & AETH_KIND_MASK) == AETH_ACK ? psn_add(psn, 1) : psn);
    if (qp->resp->ack_due && b->acks < TX_BATCH_PKTS)
        b->ack_due[b->acks++] = qp->resp->ack_due;
    qp->resp->ack_due = 0;
    return true;
}

static enum tx_result send_acknowledgement(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    struct responder *r = qp->resp;
    if (r->nak) {
        if (!send_ack(qp, b, r->nak, r->nak_psn, r->msn))
            return TX_FULL;
        COUNT(qp, sent_naks);
        r->nak = 0;
        r->ack_pending = r->ack_of_receive = false; /* a NAK acknowledges all before it */
        r->ack_deadline = 0;
    } else if (r->ack_pending) {
        bool told_none = r->told_none;
        uint8_t credits = resp_give_credits(qp);
        if (!send_ack(qp, b, AETH_ACK | credits, r->plain_psn, r->plain_msn)) {
            r->told_none = told_none;
            return TX_FULL;
        }
        COUNT(qp, acks_sent);
        r->ack_pending = r->ack_of_receive = false;
        r->ack_deadline = 0;
        resp_credit_ack_sent(qp, told_none && !r->told_none, now);
    }
    return TX_DONE;
}

/* The request that had to wait for READs may come again. */
static void ask_again(struct qp *qp)
{
    struct responder *r = qp->resp;
    r->stalled = false;
    if (r->nak || qp->attr.state == QPS_ERR)
        return;
    r->nak = NAK_PSN_SEQUENCE;
    r->nak_psn = r->epsn;
    r->nak_sent = true;
    r->nak_quiet = false;
    report_nak_sent(qp, NAK_PSN_SEQUENCE, r->epsn, NULL);
    COUNT(qp, send_seq_err);
}

enum tx_result resp_tx(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    struct responder *r = qp->resp;
    if (qp->attr.state < QPS_RTR)
        return TX_DONE;
    if (r->sack_pending && !resp_send_sack(qp, b))
        return TX_FULL;
    if (r->res_pending) {
        struct resource *res = resp_resource(r, r->res_first); /* in the order of PSNs */
        bool atomic = res->operation == OP_CMP_SWAP || res->operation == OP_FETCH_ADD;
        enum tx_result result = atomic ? send_atomic_response(qp, b, res) : send_read_response(qp, b, res, now);
        if (r->stalled && r->res_unread == 0)
            ask_again(qp);
        if (result == TX_FULL || r->res_pending)
            return result;
    }
    return send_acknowledgement(qp, b, now);
}
