// SPDX-License-Identifier: BSD-2-Clause
/* The responder: requests are checked in the order of IBA 9.7.4 and carried out at once. A check answers with a
 * verdict, and one table says what follows from each. */
#include <string.h>

#include "daemon/core/engine_priv.h"
#include "daemon/core/responder/xrc.h"

/* What a verdict leads to (9.7.4.1.6, table 58; class B to F errors). */
/* clang-format off */
static const struct consequence {
    uint8_t syndrome; /* 0: nothing is sent */
    uint8_t recv_status; /* enum wc_status of the receive request in use; 0: it is flushed like all others */
    uint8_t event; /* asynchronous event if no completion tells it; 0: none */
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

void resp_init(struct qp *qp)
{
    struct responder *r = &qp->resp;
    r->epsn = r->acked_psn = qp->attr.rq_psn;
    r->msn = 0;
    r->message = 0;
    r->nak_sent = r->nak_quiet = r->ack_pending = r->comm_est = false;
    r->nak = 0;
    r->received = r->remaining = 0;
    r->tm_rx = (struct tm_rx){0};
    r->ack_deadline = 0;
    if (r->res_tail)
        memset(r->res, 0, ENGINE_MAX_RD_ATOMIC * sizeof(r->res[0]));
    r->res_tail = r->res_pending = r->res_again = 0;
}

/* --- receive requests ------------------------------------------------------------------------------------------------------- */

struct recv_wqe *resp_recv(struct qp *qp)
{
    struct queue *rq = &qp->resp.rq;
    if (queue_used(rq) == 0) {
        struct srq *srq = srq_find(qp->e, qp->resp.srqn);
        if (srq)
            srq_take(srq, qp);
        else if (qp->e->ops->refill && qp_has_rq(qp))
            qp->e->ops->refill(qp->e->ops_ctx, qp->owner);
    }
    return queue_used(rq) ? queue_at(rq, rq->head) : NULL;
}

/* Whose keys a receive request may name: its poster's, who is the SRQ's owner (10.2.9.2). */
static uint32_t recv_pd(const struct qp *qp)
{
    const struct srq *srq = srq_find(qp->e, qp->resp.srqn);
    return srq ? srq->pd : qp->pd;
}

void resp_recv_iter(const struct qp *qp, struct sge_iter *s, const struct recv_wqe *w, uint32_t off, uint32_t len)
{
    sge_iter_sgl(s, &qp->e->keys, recv_pd(qp), w->sge, off, len, ACCESS_LOCAL_WRITE);
}

struct completion *resp_complete(struct qp *qp, uint8_t status, uint64_t now)
{
    struct queue *rq = &qp->resp.rq;
    const struct recv_wqe *w = queue_at(rq, rq->head++);
    struct completion *c = completion_add(qp, true, status, now);
    c->wr_id = w->wr.wr_id;
    c->slot = w->wr.slot;
    c->opcode = WC_RECV;
    srq_completed(qp, c);
    return c;
}

bool resp_flush(struct qp *qp, uint64_t now)
{
    /* Of an SRQ, only what was taken: the rest serves other QPs. */
    while (qp_has_rq(qp) ? resp_recv(qp) != NULL : queue_used(&qp->resp.rq) > 0) {
        if (completion_room(qp->e) == 0)
            return true;
        resp_complete(qp, WC_WR_FLUSH_ERR, now);
    }
    if (qp->srqn && !qp->last_wqe_reported) {
        if (!event_room(qp->e))
            return true;
        qp->last_wqe_reported = true;
        event_add(qp, EVENT_QP_LAST_WQE_REACHED); /* 11.6.3: now it can be destroyed, and no request is lost */
    }
    return false;
}

bool resp_recv_fault(struct qp *qp, uint64_t now)
{
    if (qp->resp.message != OP_IS_SEND || completion_room(qp->e) == 0)
        return false;
    if (!tm_fail_message(qp, WC_LOC_PROT_ERR, now))
        resp_complete(qp, WC_LOC_PROT_ERR, now);
    return true;
}

uint32_t resp_capacity(const struct recv_wqe *w)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < w->wr.num_sge; i++)
        total += w->sge[i].length;
    return total > ENGINE_MAX_MSG ? ENGINE_MAX_MSG : (uint32_t)total;
}

/* --- checks ----------------------------------------------------------------------------------------------------------------- */

#define OP_HAS_KIND (OP_IS_SEND | OP_IS_WRITE | OP_IS_READ | OP_IS_ATOMIC) /* what is else is of resp_memext.c */

/* Does the packet continue what came before it? (9.7.4.1.2) */
static enum rx_verdict check_sequence(const struct qp *qp, uint16_t props)
{
    uint16_t kind = props & (OP_IS_SEND | OP_IS_WRITE);
    bool begins = !(props & (OP_IS_MIDDLE | OP_IS_LAST));
    if (begins)
        return qp->resp.message ? V_INVALID : V_OK;
    return qp->resp.message == kind ? V_OK : V_INVALID;
}

/* Did the QP's owner allow such requests at all? (9.7.4.1.4) */
static enum rx_verdict check_granted(const struct qp *qp, const struct pkt *p)
{
    uint16_t props = op_table[p->opcode].properties;
    uint32_t need = 0;
    if (!(props & OP_HAS_KIND))
        return memext_granted(qp, p);
    if (props & OP_IS_WRITE)
        need = ACCESS_REMOTE_WRITE;
    else if (props & OP_IS_READ)
        need = ACCESS_REMOTE_READ;
    else if (props & OP_IS_ATOMIC)
        need = ACCESS_REMOTE_ATOMIC;
    return (qp->attr.access & need) == need ? V_OK : V_INVALID;
}

/* More outstanding than the peer was told it may have (9.7.4.1.4): at 0 that is every one. Repeated answers don't
 * count, since the first one may have arrived. */
static enum rx_verdict check_outstanding(const struct qp *qp, const struct pkt *p)
{
    uint32_t outstanding = qp->resp.res_pending - qp->resp.res_again;
    bool one_more = resp_is_answered(p->opcode & OP_OPERATION_MASK);
    return one_more && outstanding >= qp->attr.max_dest_rd_atomic ? V_INVALID : V_OK;
}

/* 9.7.4.1.5 */
static enum rx_verdict check_length(const struct qp *qp, const struct pkt *p, uint8_t payload)
{
    switch (payload) {
    case OP_PAYLOAD_FULL:
        return p->payload_len == qp->mtu ? V_OK : V_INVALID;
    case OP_PAYLOAD_LAST:
        return p->payload_len >= 1 && p->payload_len <= qp->mtu ? V_OK : V_INVALID;
    case OP_PAYLOAD_ONLY:
        return p->payload_len <= qp->mtu ? V_OK : V_INVALID;
    default:
        return V_OK; /* fixed lengths were checked by the decoder */
    }
}

/* Messages that end with a completion need a receive request: a SEND from its first packet on, a WRITE with
 * immediate data at its last. */
static enum rx_verdict check_recv(struct qp *qp, const struct pkt *p)
{
    if (!(op_table[p->opcode].properties & OP_NEEDS_RECV))
        return V_OK;
    if (completion_room(qp->e) == 0)
        return V_DROP;
    if (resp_recv(qp))
        return V_OK;
    const struct srq *srq = srq_find(qp->e, qp->resp.srqn);
    return srq && srq->failed ? V_OPERATION : V_RNR;
}

void resp_remote_iter(const struct qp *qp, struct sge_iter *s, uint32_t pd, uint32_t key, uint64_t addr, uint32_t len,
                      uint32_t access)
{
    sge_iter_remote(s, &qp->e->keys, pd, qp->type == QPT_XRC_RECV ? 0 : qp->qpn, key, addr, len, access);
}

/* --- execution -------------------------------------------------------------------------------------------------------------- */

static void deliver(struct qp *qp, const struct pkt *p, uint8_t opcode, const uint8_t *inline_data, uint64_t now)
{
    struct completion *c = resp_complete(qp, WC_SUCCESS, now);
    c->opcode = opcode;
    c->byte_len = qp->resp.received;
    c->solicited = p->solicited;
    uint16_t headers = op_table[p->opcode].headers;
    if (headers & OP_HAS_IMMDT) {
        c->flags |= WC_WITH_IMM;
        memcpy(c->imm, p->imm, sizeof(c->imm));
    }
    if (headers & OP_HAS_IETH) {
        c->flags |= WC_WITH_INV;
        c->inv_rkey = p->inv_rkey;
        COUNT(qp, mw_invalidates);
    }
    if (inline_data) {
        c->inline_len = (uint8_t)p->payload_len;
        memcpy(c->data, inline_data, p->payload_len);
    }
    if (qp->tm)
        tm_delivered(qp, c, now);
    COUNT(qp, recvs);
}

enum rx_verdict resp_send(struct qp *qp, const struct pkt *p, uint64_t now)
{
    uint16_t props = op_table[p->opcode].properties;
    struct responder *r = &qp->resp;
    const struct recv_wqe *w = resp_recv(qp);
    if (!w)
        return V_OPERATION; /* can't be: check_recv saw it, and it stays until the message ends */
    if (props & (OP_IS_FIRST | OP_IS_ONLY)) {
        r->received = 0;
        r->remaining = resp_capacity(w);
    }
    if (p->payload_len > r->remaining)
        return V_LENGTH;
    struct mkey *window = NULL; /* to be invalidated (9.4.1.1.3) */
    if (op_table[p->opcode].headers & OP_HAS_IETH && !(window = mw_find_bound(qp, p->inv_rkey)))
        return V_ACCESS;
    const uint8_t *inline_data = NULL;
    if (p->payload_len) {
        struct sge_iter to;
        resp_recv_iter(qp, &to, w, r->received, p->payload_len);
        if (props & OP_IS_ONLY && p->payload_len <= COMPLETION_INLINE && sge_iter_plain(&to))
            inline_data = p->payload;
        else if (sge_iter_write(&to, qp->e, qp->qpn, p->payload, p->payload_len) != COPIED)
            return V_PROTECTION;
    }
    r->received += p->payload_len;
    r->remaining -= p->payload_len;
    r->message = OP_IS_SEND;
    if (props & (OP_IS_LAST | OP_IS_ONLY)) {
        r->message = 0;
        if (window)
            mw_unbind(qp->e, window);
        deliver(qp, p, WC_RECV, inline_data, now);
    }
    return V_OK;
}

/* Does the payload fit what the RETH announced? */
static enum rx_verdict check_write_length(const struct qp *qp, const struct pkt *p, uint16_t props)
{
    if (props & (OP_IS_LAST | OP_IS_ONLY))
        return p->payload_len == qp->resp.remaining ? V_OK : V_INVALID;
    return p->payload_len < qp->resp.remaining ? V_OK : V_INVALID;
}

static enum rx_verdict do_write(struct qp *qp, const struct pkt *p, uint16_t props, uint64_t now)
{
    struct responder *r = &qp->resp;
    struct sge_iter to;
    if (props & (OP_IS_FIRST | OP_IS_ONLY)) {
        r->va = p->reth.va;
        r->rkey = p->reth.rkey;
        r->remaining = p->reth.length;
        r->received = 0;
        if (r->remaining > ENGINE_MAX_MSG)
            return V_INVALID;
        resp_remote_iter(qp, &to, r->pd, r->rkey, r->va, r->remaining, ACCESS_REMOTE_WRITE);
        if (!sge_iter_allowed(&to))
            return V_ACCESS;
    }
    enum rx_verdict v = check_write_length(qp, p, props);
    if (v != V_OK)
        return v;
    if (p->payload_len) {
        resp_remote_iter(qp, &to, r->pd, r->rkey, r->va, p->payload_len, ACCESS_REMOTE_WRITE);
        enum copied result = sge_iter_write(&to, qp->e, qp->qpn, p->payload, p->payload_len);
        if (result != COPIED) /* refused: deregistered or invalidated since the first packet */
            return result == COPY_REFUSED ? V_ACCESS : V_OPERATION;
    }
    r->va += p->payload_len;
    r->remaining -= p->payload_len;
    r->received += p->payload_len;
    r->message = OP_IS_WRITE;
    if (props & (OP_IS_LAST | OP_IS_ONLY)) {
        r->message = 0;
        if (props & OP_NEEDS_RECV)
            deliver(qp, p, WC_RECV_RDMA_WITH_IMM, NULL, now);
    }
    return V_OK;
}

struct resource *resp_new_resource(struct qp *qp)
{
    struct responder *r = &qp->resp;
    struct resource *res = &r->res[r->res_tail % ENGINE_MAX_RD_ATOMIC];
    if (res->pending)
        return NULL;
    r->res_tail++;
    return res;
}

void resp_answer_later(struct qp *qp, struct resource *res, uint32_t start, uint32_t end, bool again)
{
    if (!res->pending) {
        res->pending = true;
        res->again = again;
        qp->resp.res_pending++;
        qp->resp.res_again += again;
    }
    res->start_pkt = res->next_pkt = start;
    res->end_pkt = end;
}

static enum rx_verdict do_read(struct qp *qp, const struct pkt *p)
{
    struct responder *r = &qp->resp;
    struct sge_iter from;
    if (p->reth.length > ENGINE_MAX_MSG)
        return V_INVALID;
    resp_remote_iter(qp, &from, r->pd, p->reth.rkey, p->reth.va, p->reth.length, ACCESS_REMOTE_READ);
    if (!sge_iter_allowed(&from))
        return V_ACCESS;
    struct resource *res = resp_new_resource(qp);
    if (!res)
        return V_DROP;
    *res = (struct resource){.operation = OP_READ_REQUEST,
                             .first_psn = r->epsn,
                             .npkts = psn_count(p->reth.length, qp->mtu),
                             .va = p->reth.va,
                             .rkey = p->reth.rkey,
                             .pd = r->pd,
                             .length = p->reth.length,
                             .msn = psn_add(r->msn, 1)};
    resp_answer_later(qp, res, 0, res->npkts, false);
    r->epsn = psn_add(r->epsn, res->npkts - 1); /* the caller counts one */
    return V_OK;
}

static enum rx_verdict do_atomic(struct qp *qp, const struct pkt *p)
{
    struct responder *r = &qp->resp;
    struct sge_iter where;
    struct mem_segment piece[2];
    resp_remote_iter(qp, &where, r->pd, p->atomic.rkey, p->atomic.va, 8, ACCESS_REMOTE_ATOMIC);
    if (sge_iter_segments(&where, piece, 2) != 1) /* not allowed, or not in one piece */
        return V_ACCESS;
    if ((where.layout ? piece[0].va : p->atomic.va | piece[0].va) & 7)
        return V_INVALID;
    struct resource *res = resp_new_resource(qp);
    if (!res)
        return V_DROP;
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    bool cas = operation == OP_CMP_SWAP;
    *res = (struct resource){.operation = operation, .first_psn = r->epsn, .npkts = 1, .msn = psn_add(r->msn, 1)};
    if (qp->e->ops->atomic(qp->e->ops_ctx, piece, cas ? MEM_CMP_SWAP : MEM_FETCH_ADD,
                           cas ? p->atomic.compare : p->atomic.swap_add, p->atomic.swap_add, &res->atomic_orig))
        return V_OPERATION;
    resp_answer_later(qp, res, 0, 1, false);
    return V_OK;
}

enum rx_verdict resp_execute(struct qp *qp, const struct pkt *p, uint64_t now)
{
    const struct op_info *op = &op_table[p->opcode];
    uint16_t props = op->properties;
    enum rx_verdict v;
    if ((v = check_sequence(qp, props)) != V_OK || (v = check_granted(qp, p)) != V_OK ||
        (v = check_outstanding(qp, p)) != V_OK || (v = check_length(qp, p, op->payload)) != V_OK)
        return v;
    if (qp->type == QPT_XRC_RECV && (v = xrc_check(qp, p)) != V_OK)
        return v;
    if (props & OP_IS_SEND && qp->tm)
        return tm_receive(qp, p, now);
    if ((v = check_recv(qp, p)) != V_OK)
        return v;
    if (!(props & OP_HAS_KIND))
        return memext_execute(qp, p);
    if (props & OP_IS_SEND)
        return resp_send(qp, p, now);
    if (props & OP_IS_WRITE)
        return do_write(qp, p, props, now);
    return props & OP_IS_READ ? do_read(qp, p) : do_atomic(qp, p);
}

/* --- duplicates ------------------------------------------------------------------------------------------------------------- */

/* The resource whose responses hold psn. The newest first: others may be from the PSNs' last time round. */
static struct resource *find_resource(struct qp *qp, uint32_t psn, uint8_t operation)
{
    for (uint32_t i = 0; i < ENGINE_MAX_RD_ATOMIC; i++) {
        struct resource *res = &qp->resp.res[(qp->resp.res_tail - 1 - i) % ENGINE_MAX_RD_ATOMIC];
        int32_t off = psn_diff(psn, res->first_psn);
        if (res->npkts && res->operation == operation && off >= 0 && (uint32_t)off < res->npkts)
            return res;
    }
    return NULL;
}

/* A repeated READ may ask for a later part of the first one (9.7.5.1.7). */
static void repeat_read(struct qp *qp, const struct pkt *p)
{
    struct resource *res = find_resource(qp, p->psn, OP_READ_REQUEST);
    if (!res)
        return; /* too old */
    uint32_t off = (uint32_t)psn_diff(p->psn, res->first_psn);
    uint32_t npkts = psn_count(p->reth.length, qp->mtu);
    uint64_t start = (uint64_t)off * qp->mtu;
    if (p->reth.rkey != res->rkey || p->reth.va != res->va + start || p->reth.length > res->length - start ||
        npkts > res->npkts - off)
        return; /* not what was asked before */
    if (res->pending && res->next_pkt <= off && off + npkts <= res->end_pkt)
        return; /* on its way anyway */
    resp_answer_later(qp, res, off, off + npkts, true);
}

static void duplicate(struct qp *qp, const struct pkt *p)
{
    COUNT(qp, duplicate_request);
    uint8_t operation = p->opcode & OP_OPERATION_MASK;
    if (operation == OP_READ_REQUEST) {
        repeat_read(qp, p);
    } else if (resp_is_answered(operation)) {
        struct resource *res = find_resource(qp, p->psn, operation);
        if (res)
            resp_answer_later(qp, res, 0, 1, true);
    } else {
        qp->resp.ack_pending = true;
    }
}

/* --- what follows ----------------------------------------------------------------------------------------------------------- */

void resp_fatal(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p)
{
    COUNT(qp, naks_sent);
    qp->resp.nak = syndrome;
    qp->resp.nak_psn = psn;
    report_nak_sent(qp, syndrome, psn, p);
    report_error(qp, ERROR_REFUSED, 0, syndrome);
    qp_fail(qp);
}

/* A packet beyond the expected one: something was lost. One NAK per gap (9.7.5.2.8); another one only when the
 * sender has gone back, that is, when it sends its last packet or one before it again, and the expected one is still
 * not there: the NAK was lost, too. */
static void out_of_sequence(struct qp *qp, const struct pkt *p)
{
    struct responder *r = &qp->resp;
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
    struct responder *r = &qp->resp;
    const struct consequence *c = &consequences[v];
    if (v == V_RNR) {
        r->nak = AETH_RNR | qp->attr.min_rnr_timer;
        r->nak_psn = p->psn;
        r->nak_sent = true;
        r->nak_quiet = true; /* packets behind it are dropped without a NAK of their own */
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
        srq_put_back(qp); /* nothing of the message has gone into it */
    resp_fatal(qp, c->syndrome, p->psn, p);
}

void resp_established(struct qp *qp)
{
    if (qp->attr.state != QPS_RTR || qp->resp.comm_est)
        return;
    qp->resp.comm_est = true;
    event_add(qp, EVENT_COMM_EST);
}

static void accepted(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct responder *r = &qp->resp;
    uint16_t props = op_table[p->opcode].properties;
    r->epsn = psn_add(r->epsn, 1);
    r->nak_sent = false;
    if (r->nak && (r->nak == NAK_PSN_SEQUENCE || (r->nak & AETH_KIND_MASK) == AETH_RNR))
        r->nak = 0; /* what it asks for has come */
    if (props & (OP_IS_LAST | OP_IS_ONLY))
        r->msn = psn_add(r->msn, 1);
    COUNT_N(qp, rcvd_bytes, p->payload_len);
    if (!resp_is_answered(p->opcode & OP_OPERATION_MASK)) {
        if (p->ackreq) {
            if (r->ack_pending)
                COUNT(qp, ack_coalesced);
            r->ack_pending = true;
        } else if (!r->ack_pending && r->ack_deadline == 0 && qp->e->cfg.ack_delay_ns) {
            r->ack_deadline = now + qp->e->cfg.ack_delay_ns;
        }
    }
    resp_established(qp);
}

void resp_rx(struct qp *qp, const struct pkt *p, uint64_t now)
{
    int32_t ahead = psn_diff(p->psn, qp->resp.epsn);
    if (ahead > 0) {
        out_of_sequence(qp, p);
    } else if (ahead < 0) {
        duplicate(qp, p);
    } else {
        enum rx_verdict v = resp_execute(qp, p, now);
        if (v == V_OK) {
            accepted(qp, p, now);
        } else if (v == V_DROP) {
            /* Nor are those behind it asked for: they would come back at once, again and again, until there is room. */
            qp->resp.nak_sent = qp->resp.nak_quiet = true;
        } else {
            refuse(qp, p, v, now);
        }
    }
    if (resp_has_work(qp))
        engine_ready(qp);
}
