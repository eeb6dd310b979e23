// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/send.h"

#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/congestion.h"
#include "daemon/core/requester/local_ops.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/window.h"

#define BURST_PIECES 256u
#define BURST_RUNS TX_BATCH_PKTS
#define ACK_EVERY 4u /* packets, while packets are being lost */

struct run { /* consecutive packets of one request */
    uint32_t index; /* of the request */
    uint32_t psn; /* of its first packet */
    uint32_t pkt0; /* batch state before it */
    size_t used0;
    unsigned piece0, pieces;
    unsigned buf0, bufs;
};
struct burst {
    struct qp *qp;
    struct tx_batch *b;
    uint64_t now;
    uint32_t budget; /* payload bytes left in this turn */
    uint32_t sent0; /* sent_psn at the start */
    unsigned runs, pieces, bufs;
    struct mem_segment piece[BURST_PIECES];
    struct buf buf[TX_BATCH_PKTS];
    struct run run[BURST_RUNS];
};

/* Opcodes of FIRST, MIDDLE, LAST and ONLY packets, by enum send_op; READ and atomics are single packets. */
/* clang-format off */
static const uint8_t operations[][4] = {
    [WR_RDMA_WRITE]          = {OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST,     OP_WRITE_ONLY},
    [WR_RDMA_WRITE_WITH_IMM] = {OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST_IMM, OP_WRITE_ONLY_IMM},
    [WR_SEND]                = {OP_SEND_FIRST,  OP_SEND_MIDDLE,  OP_SEND_LAST,      OP_SEND_ONLY},
    [WR_SEND_WITH_IMM]       = {OP_SEND_FIRST,  OP_SEND_MIDDLE,  OP_SEND_LAST_IMM,  OP_SEND_ONLY_IMM},
    [WR_RDMA_READ]           = {0,              0,               0,                 OP_READ_REQUEST},
    [WR_ATOMIC_CMP_AND_SWP]  = {0,              0,               0,                 OP_CMP_SWAP},
    [WR_ATOMIC_FETCH_AND_ADD]= {0,              0,               0,                 OP_FETCH_ADD},
    [WR_SEND_WITH_INV]       = {OP_SEND_FIRST,  OP_SEND_MIDDLE,  OP_SEND_LAST_INV,  OP_SEND_ONLY_INV},
    [WR_FLUSH]               = {0,              0,               0,                 OP_FLUSH},
    [WR_ATOMIC_WRITE]        = {0,              0,               0,                 OP_ATOMIC_WRITE},
};
/* clang-format on */

/* --- one packet ------------------------------------------------------------------------------------------------------------ */

static uint8_t operation_of(const struct send_wqe *w, uint32_t off)
{
    const uint8_t *ops = operations[w->wr.opcode];
    if (w->npkts == 1 || wqe_is_read(w))
        return ops[3];
    if (off == 0)
        return ops[0];
    return off + 1 == w->npkts ? ops[2] : ops[1];
}

#define QKEY_OWN 0x80000000u /* in a request: the QP's own Q_Key is to be sent instead (10.2.5) */

/* Headers of packet off of a request; read_pkts: how many response packets a READ request asks for. */
static void fill_headers(const struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t read_pkts, struct pkt *p)
{
    uint8_t operation = operation_of(w, off);
    bool last = off + 1 == w->npkts && !wqe_is_read(w);
    p->opcode = (uint8_t)(qp->service | operation);
    p->tver = 0;
    p->migreq = true;
    p->fecn = p->becn = false;
    p->pkey = PKEY_DEFAULT;
    p->dest_qpn = qp->attr.dest_qpn;
    p->psn = psn_add(w->first_psn, off);
    p->solicited = last && w->wr.flags & SEND_SOLICITED && op_table[p->opcode].properties & OP_NEEDS_RECV;
    p->ackreq = last && qp_is_reliable(qp);
    if (qp->type == QPT_UD) {
        p->dest_qpn = w->wr.ud.qpn;
        p->deth.qkey = w->wr.ud.qkey & QKEY_OWN ? qp->attr.qkey : w->wr.ud.qkey;
        p->deth.src_qpn = qp->qpn;
    }

    uint16_t headers = op_table[p->opcode].headers;
    if (headers & OP_HAS_XRCETH)
        p->srqn = w->wr.srqn;
    if (headers & OP_HAS_RETH) {
        uint64_t start = (uint64_t)off * qp->mtu;
        uint64_t want = wqe_is_read(w) ? (uint64_t)read_pkts * qp->mtu : w->length;
        p->reth.va = w->wr.remote_addr + start;
        p->reth.rkey = w->wr.rkey;
        p->reth.length = (uint32_t)(want > w->length - start ? w->length - start : want);
    }
    if (headers & OP_HAS_FETH) {
        p->reth.length = w->wr.flush.length;
        p->feth.placement = w->wr.flush.placement;
        p->feth.selectivity = w->wr.flush.selectivity;
    }
    if (headers & OP_HAS_ATOMICETH) {
        bool cas = w->wr.opcode == WR_ATOMIC_CMP_AND_SWP;
        p->atomic.va = w->wr.remote_addr;
        p->atomic.rkey = w->wr.rkey;
        p->atomic.swap_add = cas ? w->wr.swap : w->wr.compare_add;
        p->atomic.compare = cas ? w->wr.compare_add : 0;
    }
    if (headers & OP_HAS_IMMDT)
        memcpy(p->imm, w->wr.imm, sizeof(p->imm));
    if (headers & OP_HAS_IETH)
        p->inv_rkey = w->wr.inv_rkey;
}

/* Can what a READ or atomic brings be put where it belongs? Asked before anything is sent: an atomic must not be
 * carried out whose result is lost. */
static bool has_place(const struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t n)
{
    struct sge_iter s;
    uint32_t start = off * qp->mtu;
    uint32_t len = wqe_is_read(w) || wqe_is_atomic(w) ? min32(n * qp->mtu, w->length - start) : 0;
    sge_iter_sgl(&s, &qp->e->keys, w->pd, w->u.sge, start, len, ACCESS_LOCAL_WRITE);
    return sge_iter_allowed(&s);
}

static struct tx_pkt *plan_packet(struct burst *s, const struct send_wqe *w, uint32_t off, uint32_t read_pkts,
                                  bool ask_ack)
{
    struct qp *qp = s->qp;
    uint32_t start = off * qp->mtu;
    uint32_t len = wqe_has_payload(w) ? min32(qp->mtu, w->length - start) : 0;
    struct pkt p;
    fill_headers(qp, w, off, read_pkts, &p);
    p.pad = (uint8_t)pkt_pad(len);
    p.ackreq |= ask_ack && qp_is_reliable(qp);
    uint8_t *payload;
    struct tx_pkt *t = qp_append(qp, s->b, &p, len, &payload);
    if (!t)
        return NULL;
    t->wr_id = w->wr.wr_id;
    t->has_wr = true;
    if (qp->type == QPT_UD)
        t->av = &w->wr.ud.av; /* stays until the request's place in the queue is used again */
    if (w->wr.opcode == WR_ATOMIC_WRITE)
        memcpy(payload, &w->wr.compare_add, len);
    else if (len && w->wr.flags & SEND_INLINE)
        memcpy(payload, w->u.data + start, len);
    else if (len)
        s->buf[s->bufs++] = (struct buf){.p = payload, .len = len};
    s->budget -= min32(len, s->budget);
    if (psn_diff(p.psn, s->sent0) < 0) {
        t->retransmit = true;
        switch (qp->req.cause) {
        case RETRANS_FAST:
            COUNT(qp, fast_retrans);
            break;
        case RETRANS_PROBE:
            COUNT(qp, probe_retrans);
            break;
        case RETRANS_TIMEOUT:
            COUNT(qp, timeout_retrans);
            break;
        default:
            break;
        }
    } else if (p.ackreq) {
        rtt_packet_planned(&qp->req, p.psn, s->now);
    }
    return t;
}

/* --- one run --------------------------------------------------------------------------------------------------------------- */

/* A run's last packet asks for an ACK. If the window is small, because packets are being lost, some before it do,
 * too: then one lost ACK or last packet does not stop the sender, and the window moves smoothly. */
static bool asks_midway(const struct qp *qp, uint32_t pkt)
{
    return !cwnd_is_full_size(&qp->req, &qp->e->cfg) && pkt % ACK_EVERY == ACK_EVERY - 1;
}

/* Finds out where bytes [start, start + len) of a request are, which are the payload of a run. If they are few pieces, as they
 * almost always are, they will be gathered together with those of other runs; else this run is gathered here. False: some of
 * it is not allowed, or gone. */
static bool plan_gather(struct burst *s, struct run *run, const struct send_wqe *w, uint32_t start, uint32_t len)
{
    struct qp *qp = s->qp;
    struct sge_iter from;
    sge_iter_sgl(&from, &qp->e->keys, w->pd, w->u.sge, start, len, 0);
    int pieces = sge_iter_segments(&from, &s->piece[s->pieces], ENGINE_MAX_SGE);
    if (pieces < 0)
        return false;
    if (sge_iter_done(&from)) {
        run->pieces = (unsigned)pieces;
        s->pieces += run->pieces;
        return true;
    }
    sge_iter_sgl(&from, &qp->e->keys, w->pd, w->u.sge, start, len, 0);
    enum copied result = sge_iter_read(&from, &qp->e->mem, &s->buf[run->buf0], s->bufs - run->buf0);
    if (result == COPY_FAILED)
        COUNT(qp, mem_faults);
    s->bufs = run->buf0;
    return result == COPIED;
}

/* The eight bytes of an ATOMIC WRITE that come from memory, not with the request. False: they can't be had. */
static bool fetch_word(struct qp *qp, struct send_wqe *w)
{
    if (w->wr.opcode != WR_ATOMIC_WRITE || w->wr.num_sge == 0)
        return true;
    struct sge_iter from;
    struct buf to = {.p = (uint8_t *)&w->wr.compare_add, .len = sizeof(w->wr.compare_add)};
    sge_iter_sgl(&from, &qp->e->keys, w->pd, w->u.sge, 0, w->length, 0);
    if (!sge_iter_allowed(&from))
        return false;
    enum copied result = sge_iter_read(&from, &qp->e->mem, &to, 1);
    if (result == COPY_FAILED)
        COUNT(qp, mem_faults);
    return result == COPIED;
}

/* Asks for an ACK of the newest packet, which was not meant to be the last one. */
static void ask_late(struct burst *s)
{
    const struct tx_pkt *t = &s->b->pkt[s->b->n - 1];
    pkt_ask_ack(s->b->buf + t->off);
    if (psn_diff(t->psn, s->sent0) >= 0)
        rtt_packet_planned(&s->qp->req, t->psn, s->now);
}

/* Plans packets [off, off + n) of a request (for a READ: the one request for them). Returns how many PSNs were
 * planned; 0: the batch has no room, or the request failed a local check, see local_error. */
static uint32_t plan_run(struct burst *s, uint32_t index, uint32_t off, uint32_t n)
{
    struct qp *qp = s->qp;
    struct send_wqe *w = req_wqe(&qp->req, index);
    struct run *run = &s->run[s->runs];
    *run = (struct run){.index = index,
                        .psn = psn_add(w->first_psn, off),
                        .pkt0 = s->b->n,
                        .used0 = s->b->used,
                        .piece0 = s->pieces,
                        .buf0 = s->bufs};
    uint32_t done = 0;
    if (wqe_is_answered(w)) {
        if (!has_place(qp, w, off, n) || !fetch_word(qp, w)) {
            w->local_error = WC_LOC_PROT_ERR;
            return 0;
        }
        done = plan_packet(s, w, off, n, true) ? n : 0;
    } else {
        while (done < n && plan_packet(s, w, off + done, 0, done + 1 == n || asks_midway(qp, done)))
            done++;
        if (done && done < n && qp_is_reliable(qp)) /* the batch has no room for more */
            ask_late(s);
        uint32_t start = off * qp->mtu;
        uint32_t len = done ? min32(done * qp->mtu, w->length - start) : 0;
        if (len && !(w->wr.flags & SEND_INLINE) && !plan_gather(s, run, w, start, len)) {
            tx_take_back(s->b, run->pkt0, run->used0);
            s->bufs = run->buf0;
            w->local_error = WC_LOC_PROT_ERR;
            rtt_cancel(&qp->req);
            return 0;
        }
    }
    run->bufs = s->bufs - run->buf0;
    if (done)
        s->runs++;
    return done;
}

/* Gathers the payload of all runs. If some memory can't be read, the first request that it belongs to fails, and its
 * packets and those after it are taken back. */
static void gather(struct burst *s)
{
    struct engine *e = s->qp->e;
    if (s->pieces == 0 || e->mem.ops->read(e->mem.ctx, s->piece, s->pieces, s->buf, s->bufs) == 0)
        return;
    COUNT(s->qp, mem_faults);
    for (unsigned i = 0; i < s->runs; i++) {
        struct run *run = &s->run[i];
        if (run->pieces == 0 ||
            e->mem.ops->read(e->mem.ctx, &s->piece[run->piece0], run->pieces, &s->buf[run->buf0], run->bufs) == 0)
            continue;
        struct requester *r = &s->qp->req;
        req_wqe(&s->qp->req, run->index)->local_error = WC_LOC_PROT_ERR;
        tx_take_back(s->b, run->pkt0, run->used0);
        if (psn_diff(run->psn, r->next_psn) < 0)
            req_rewind(s->qp, run->psn);
        r->sent_psn = psn_diff(run->psn, s->sent0) > 0 ? run->psn : s->sent0;
        return;
    }
}

/* --- what comes next ------------------------------------------------------------------------------------------------------- */

/* Gives the next request its PSNs. */
static void number_request(struct qp *qp, struct send_wqe *w)
{
    struct requester *r = &qp->req;
    w->first_psn = r->unsent_psn;
    w->npkts = psn_count(w->length, qp->mtu);
    w->chunk = wqe_is_read(w) ? req_read_chunk(qp) : 0;
    if (wqe_is_atomic(w) || qp->type == QPT_UD)
        w->npkts = 1;
    r->unsent_psn = psn_add(r->unsent_psn, w->npkts);
    r->unsent++;
}

/* Whether the request at cur, which has its PSNs, can go on now; if not, something will make the QP ready again. */
static bool may_go_on(const struct qp *qp, struct send_wqe *w)
{
    const struct requester *r = &qp->req;
    if (w->local_error)
        return false;
    if (r->next_psn == w->first_psn && w->wr.flags & SEND_FENCE && r->rd_count)
        return false;
    if (!wqe_is_answered(w))
        return true;
    if (qp->attr.max_rd_atomic == 0)
        w->local_error = WC_LOC_QP_OP_ERR;
    return r->rd_count < qp->attr.max_rd_atomic;
}

/* The request to be sent from, NULL if none is or it has to wait. Local operations before it are carried out. */
static struct send_wqe *next_request(struct qp *qp)
{
    struct requester *r = &qp->req;
    while (r->cur != r->sq.tail && !r->rnr_until && !r->fail_status && !req_is_flushing(&qp->req)) {
        struct send_wqe *w = req_wqe(r, r->cur);
        bool unsent = r->cur == r->unsent;
        if (qp->attr.state == QPS_SQD && (unsent || !req_has_begun(&qp->req, w)))
            return NULL;
        if (!wqe_is_local(w)) {
            if (unsent)
                number_request(qp, w);
            return may_go_on(qp, w) ? w : NULL;
        }
        if (!unsent && !w->local_error)
            r->cur++; /* it was carried out before the QP went back */
        else if (!unsent || !req_run_local(qp, w))
            return NULL;
    }
    return NULL;
}

static void charge(struct burst *s, const struct send_wqe *w, uint64_t cost)
{
    struct qp *qp = s->qp;
    if (qp_is_reliable(qp))
        qp_charge(qp, cost);
    else
        datagram_flow_charge(&qp->e->flows, req_peer(qp, w), qp->type == QPT_UD ? &w->wr.ud.av : &qp->attr.av, cost,
                             s->now);
}

/* Books what was planned: n PSNs of the request at cur. */
static void sent(struct burst *s, struct send_wqe *w, uint32_t off, uint32_t n)
{
    struct requester *r = &s->qp->req;
    if (r->una_psn == r->next_psn && r->una_psn == r->sent_psn)
        r->progress_at = s->now;
    if (wqe_is_answered(w)) {
        struct rd_credit *credit = &r->rd[(r->rd_head + r->rd_count++) % ENGINE_MAX_RD_ATOMIC];
        credit->first = psn_add(w->first_psn, off);
        credit->end = psn_add(w->first_psn, off + n);
    }
    uint64_t cost = req_cost(s->qp, w, off, off + n);
    charge(s, w, cost);
    dcqcn_sent(&s->qp->dcqcn, wqe_has_payload(w) ? cost : PACKET_OVERHEAD, s->now);
    r->next_psn = psn_add(r->next_psn, n);
    if (psn_diff(r->next_psn, r->sent_psn) > 0)
        r->sent_psn = r->next_psn;
    if (off + n == w->npkts)
        r->cur++;
    r->last_tx = s->now;
    COUNT_MAX(s->qp, max_sent_window, (uint32_t)psn_diff(r->next_psn, r->una_psn));
}

/* Nobody acknowledges what an unreliable QP has sent: it is done once it has been handed out. */
static void done_when_sent(struct qp *qp)
{
    struct requester *r = &qp->req;
    r->una = r->cur;
    r->una_psn = r->next_psn;
}

/* How many packets of this kind fit into what is left of turn and batch. */
static uint32_t fits(const struct burst *s, const struct send_wqe *w, uint32_t off)
{
    uint32_t left = w->length - min32(off * s->qp->mtu, w->length);
    uint32_t payload = min32(s->qp->mtu, left);
    uint32_t n = min32(w->npkts - off, TX_BATCH_PKTS - s->b->n);
    n = min32(n, (uint32_t)((s->b->cap - s->b->used) / (payload + PKT_HEADERS_MAX + 3 + ICRC_LEN)));
    uint32_t turns = payload ? s->budget / payload : n;
    return min32(n, turns ? turns : 1);
}

/* The tail probe: the newest packet once more, which makes the responder say where it stands. False: the batch has no
 * room for it, so it stays due. */
static bool plan_probe(struct burst *s)
{
    struct requester *r = &s->qp->req;
    r->probe_due = false;
    if (r->next_psn != r->sent_psn || r->una_psn == r->sent_psn)
        return true;
    uint32_t index = r->cur;
    if (index == r->unsent || req_wqe(&s->qp->req, index)->first_psn == r->next_psn) {
        do /* some request in front of it has PSNs, since some are unacknowledged */
            index--;
        while (req_wqe(&s->qp->req, index)->npkts == 0);
    }
    struct send_wqe *w = req_wqe(&s->qp->req, index);
    uint32_t off = wqe_offset(w, r->next_psn) - 1, n = 1;
    if (wqe_is_read(w)) { /* ask again for what is missing of its last chunk */
        uint32_t end = off + 1;
        const struct rd_credit *c = &r->rd[(r->rd_head + r->rd_count - 1) % ENGINE_MAX_RD_ATOMIC];
        if (r->rd_count == 0)
            return true;
        uint32_t from = psn_diff(c->first, r->una_psn) > 0 ? c->first : r->una_psn;
        off = wqe_offset(w, from);
        n = end - off;
    }
    r->cause = RETRANS_PROBE;
    r->probe_due = plan_run(s, index, off, n) == 0 && !w->local_error;
    return !r->probe_due;
}

/* Who has just had a part of the peer's window waits for the next behind those who have not had theirs: its next turn, after
 * theirs, comes to nothing but that. */
static enum tx_result stops_at_window(const struct burst *s)
{
    if (s->runs == 0 || !sched_is_waiting(&s->qp->sched))
        return TX_DONE;
    sched_stop_waiting(&s->qp->sched);
    return TX_MORE;
}

enum tx_result req_tx(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    struct requester *r = &qp->req;
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return TX_DONE;
    struct burst s;
    s.qp = qp;
    s.b = b;
    s.now = now;
    s.budget = engine_turn_bytes(qp->e, resp_has_work(&qp->resp));
    s.sent0 = r->sent_psn;
    s.runs = s.pieces = s.bufs = 0;

    enum tx_result result = TX_DONE;
    if (r->probe_due && !plan_probe(&s))
        return TX_FULL;
    struct send_wqe *w;
    while ((w = next_request(qp)) != NULL) {
        if (s.budget == 0 || s.runs == BURST_RUNS || s.pieces + ENGINE_MAX_SGE > BURST_PIECES) {
            result = TX_MORE;
            break;
        }
        uint32_t off = wqe_offset(w, r->next_psn);
        uint32_t want = fits(&s, w, off);
        if (want == 0) {
            result = TX_FULL;
            break;
        }
        uint32_t rate = dcqcn_allows(&qp->dcqcn, &qp->e->cfg, now);
        if (rate == 0)
            break;
        want = min32(want, rate > qp->mtu ? rate / qp->mtu : 1);
        if (wqe_is_read(w))
            want = req_chunk_left(w, off);
        uint32_t n = req_window_allows(qp, w, off, want);
        if (n == 0) {
            result = stops_at_window(&s);
            break;
        }
        n = plan_run(&s, r->cur, off, n);
        if (n == 0) {
            result = w->local_error ? TX_DONE : TX_FULL;
            break;
        }
        sent(&s, w, off, n);
    }
    gather(&s);
    if (!qp_is_reliable(qp))
        done_when_sent(qp);
    return result;
}
