// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/burst.h"

#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/rtt.h"
#include "daemon/core/requester/window.h"

/* One packet in so many asks for an ACK, while the window is not at its largest. With a window of fewer than
 * ACK_EVERY_WINDOW packets, each packet asks. */
#define ACK_EVERY 4u
#define ACK_EVERY_WINDOW 16u

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

/* --- one packet ------------------------------------------------------------------------------- */

static uint8_t operation_of(const struct send_wqe *w, uint32_t off)
{
    const uint8_t *ops = operations[w->wr.opcode];
    if (w->npkts == 1 || wqe_is_read(w))
        return ops[3];
    if (off == 0)
        return ops[0];
    return off + 1 == w->npkts ? ops[2] : ops[1];
}

#define QKEY_OWN 0x80000000u /* in a request: the QP's own Q_Key is to be sent instead (IBA 10.2.5) */

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

/* May the response of a READ or atomic be written to the request's memory? This is checked before anything is sent: an
 * atomic must not be carried out if its result is lost. */
static bool can_store(const struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t n)
{
    struct sge_iter s;
    uint32_t start = off * qp->mtu;
    uint32_t len = wqe_is_read(w) || wqe_is_atomic(w) ? min32(n * qp->mtu, w->length - start) : 0;
    sge_iter_sgl(&s, &qp->e->keys, w->pd, w->u.sge, start, len, ACCESS_LOCAL_WRITE);
    return sge_iter_allowed(&s);
}

/* A packet that is sent again without a SACK may come twice. Then this does not show that packets are late. */
static void count_repeated(struct requester *r)
{
    if (r->cause == RETRANS_SELECTIVE)
        return;
    r->board.repeated++;
    r->board.repeated_end = r->sent_psn;
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
        t->av = &w->wr.ud.av; /* valid until the request's slot in the queue is used again */
    if (w->wr.opcode == WR_ATOMIC_WRITE)
        memcpy(payload, &w->wr.compare_add, len);
    else if (len && w->wr.flags & SEND_INLINE)
        memcpy(payload, w->u.data + start, len);
    else if (len)
        s->buf[s->bufs++] = (struct buf){.p = payload, .len = len};
    s->budget -= min32(len, s->budget);
    if (psn_diff(p.psn, s->sent0) < 0) {
        t->retransmit = true;
        count_repeated(qp->req);
        rtt_packets_repeated(qp->req, p.psn, read_pkts ? read_pkts : 1);
        switch (qp->req->cause) {
        case RETRANS_FAST:
            COUNT(qp, fast_retrans);
            break;
        case RETRANS_RESPONSES:
            COUNT(qp, fast_retrans);
            COUNT(qp, selective_retrans);
            congestion_resent(&qp->peer->congestion, read_pkts ? read_pkts : 1);
            break;
        case RETRANS_SELECTIVE:
            COUNT(qp, fast_retrans);
            COUNT(qp, selective_retrans);
            qp->req->board.resent++;
            congestion_resent(&qp->peer->congestion, 1);
            break;
        case RETRANS_PROBE:
            COUNT(qp, probe_retrans);
            break;
        case RETRANS_TIMEOUT:
            COUNT(qp, timeout_retrans);
            break;
        default:
            COUNT(qp, rnr_retrans);
            break;
        }
    }
    if (p.ackreq && (!t->retransmit || (rtt_may_time_again(qp->req) && !wqe_is_answered(w))))
        rtt_packet_planned(qp->req, p.psn, s->now);
    return t;
}

/* Plans `want` packets from packet off on as one run within the device. Only its last packet asks for an ACK. Returns how many
 * found room. */
static uint32_t plan_whole(struct burst *s, const struct send_wqe *w, uint32_t off, uint32_t want)
{
    struct qp *qp = s->qp;
    uint32_t start = off * qp->mtu;
    struct pkt_run r;
    r.n = want;
    r.mtu = qp->mtu;
    r.payload_len = min32(want * qp->mtu, w->length - start);
    r.middle = (uint8_t)(qp->service | operations[w->wr.opcode][1]);
    r.last.opcode = (uint8_t)(qp->service | operation_of(w, off + want - 1));
    fill_headers(qp, w, off, 0, &r.first);
    uint8_t *payload;
    struct pkt_run *run = qp_append_run(qp, s->b, &r, &payload);
    if (!run)
        return 0;
    fill_headers(qp, w, off + run->n - 1, 0, &run->last);
    run->last.ackreq = qp_is_reliable(qp);
    s->buf[s->bufs++] = (struct buf){.p = payload, .len = run->payload_len};
    s->budget -= min32(run->payload_len, s->budget);
    if (run->last.ackreq)
        rtt_packet_planned(qp->req, run->last.psn, s->now);
    return run->n;
}

/* --- one run ---------------------------------------------------------------------------------- */

/* The last packet of a run asks for an ACK. While the window is not at its largest, some packets before it ask, too.
 * Then one lost ACK or last packet does not stop the sender, and the window moves smoothly. */
static bool asks_midway(const struct qp *qp, uint32_t pkt)
{
    if (!qp_is_reliable(qp) || congestion_is_free(&qp->peer->congestion, &qp->e->cfg))
        return false;
    return pkt % ACK_EVERY == ACK_EVERY - 1 || qp->peer->congestion.cwnd < ACK_EVERY_WINDOW * req_packet_cost(qp);
}

/* Finds the memory of bytes [start, start + len) of a request, which are the payload of a run. Up to ENGINE_MAX_SGE
 * segments are gathered later, together with those of other runs. A run with more segments, which is rare, is gathered
 * here. False: some memory is not allowed, or no longer exists. */
static bool plan_gather(struct burst *s, struct run *run, const struct send_wqe *w, uint32_t start, uint32_t len)
{
    struct qp *qp = s->qp;
    struct sge_iter from;
    sge_iter_sgl(&from, &qp->e->keys, w->pd, w->u.sge, start, len, 0);
    int segments = sge_iter_segments(&from, &s->segment[s->segments], ENGINE_MAX_SGE);
    if (segments < 0)
        return false;
    if (sge_iter_done(&from)) {
        run->segments = (unsigned)segments;
        s->segments += run->segments;
        return true;
    }
    sge_iter_sgl(&from, &qp->e->keys, w->pd, w->u.sge, start, len, 0);
    enum copied result = sge_iter_read(&from, &qp->e->mem, &s->buf[run->buf0], s->bufs - run->buf0);
    if (result == COPY_FAILED || result == COPIED_ZEROS) /* zeros must not arrive as if they were the user's data */
        COUNT(qp, mem_faults);
    s->bufs = run->buf0;
    return result == COPIED;
}

/* Reads the eight bytes of an ATOMIC WRITE, if they come from memory and not with the request. False: they can't be
 * read. */
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
    if (result == COPY_FAILED || result == COPIED_ZEROS) /* zeros must not arrive as if they were the user's data */
        COUNT(qp, mem_faults);
    return result == COPIED;
}

/* Asks for an ACK of the newest packet, although it was not planned as the last packet of its run. */
static void ask_late(struct burst *s)
{
    const struct tx_pkt *t = &s->b->pkt[s->b->n - 1];
    if (t->plain)
        t->plain->ackreq = true;
    else
        pkt_ask_ack(s->b->buf + t->off);
    if (psn_diff(t->psn, s->sent0) >= 0)
        rtt_packet_planned(s->qp->req, t->psn, s->now);
}

/* Is the packet sent for the first time, to a QP of this device that takes it as part of a run? */
static bool may_hand_over(const struct burst *s, const struct send_wqe *w, uint32_t off)
{
    return qp_hands_over(s->qp, s->b) && s->b->runs < TX_BATCH_RUNS && !(w->wr.flags & SEND_INLINE) &&
           psn_diff(psn_add(w->first_psn, off), s->sent0) >= 0;
}

/* How many packets after `done` of `want` planned ones there are up to the next one that asks for an ACK, or to the last. */
static uint32_t up_to_ack(const struct qp *qp, uint32_t done, uint32_t want)
{
    uint32_t n = 1;
    while (done + n < want && !asks_midway(qp, done + n - 1))
        n++;
    return n;
}

/* Plans packets of a request with payload from packet off on. Returns how many of the `want` packets found room. */
static uint32_t plan_packets(struct burst *s, const struct send_wqe *w, uint32_t off, uint32_t want)
{
    struct qp *qp = s->qp;
    uint32_t done = 0, n, got;
    bool whole = false; /* the newest packets are a run, whose last one asks already */
    do {
        n = may_hand_over(s, w, off + done) ? up_to_ack(qp, done, want) : 1;
        bool asks = done + n == want || asks_midway(qp, done + n - 1);
        got = n > 1 ? plan_whole(s, w, off + done, n) : plan_packet(s, w, off + done, 0, asks) != NULL;
        whole = got ? n > 1 : whole;
        done += got;
    } while (got == n && done < want);
    if (done && done < want && !whole && qp_is_reliable(qp)) /* the batch has no room for more */
        ask_late(s);
    return done;
}

enum plan_verdict burst_plan(struct burst *s, uint32_t index, uint32_t off, uint32_t *n)
{
    struct qp *qp = s->qp;
    struct send_wqe *w = req_wqe(qp->req, index);
    struct run *run = &s->run[s->runs];
    *run = (struct run){.index = index,
                        .psn = psn_add(w->first_psn, off),
                        .pkt0 = s->b->n,
                        .used0 = s->b->used,
                        .segment0 = s->segments,
                        .buf0 = s->bufs};
    uint32_t want = *n, done = 0;
    if (wqe_is_answered(w)) {
        if (!can_store(qp, w, off, want) || !fetch_word(qp, w))
            return PLAN_FAILED;
        if (!plan_packet(s, w, off, want, true))
            return PLAN_FULL;
    } else {
        done = plan_packets(s, w, off, want);
        if (done == 0)
            return PLAN_FULL;
        uint32_t start = off * qp->mtu;
        uint32_t len = min32(done * qp->mtu, w->length - start);
        if (len && !(w->wr.flags & SEND_INLINE) && !plan_gather(s, run, w, start, len)) {
            tx_take_back(s->b, run->pkt0, run->used0);
            s->bufs = run->buf0;
            rtt_cancel(qp->req);
            return PLAN_FAILED;
        }
        *n = done;
    }
    run->bufs = s->bufs - run->buf0;
    s->runs++;
    return PLAN_OK;
}

void burst_gather(struct burst *s)
{
    const struct mem_access *mem = &s->qp->e->mem;
    if (s->segments == 0 || mem->ops->read(mem->ctx, s->segment, s->segments, s->buf, s->bufs) == 0)
        return;
    COUNT(s->qp, mem_faults);
    for (unsigned i = 0; i < s->runs; i++) {
        struct run *run = &s->run[i];
        if (run->segments == 0 ||
            mem->ops->read(mem->ctx, &s->segment[run->segment0], run->segments, &s->buf[run->buf0], run->bufs) == 0)
            continue;
        struct requester *r = s->qp->req;
        req_wqe(s->qp->req, run->index)->local_error = WC_LOC_PROT_ERR;
        tx_take_back(s->b, run->pkt0, run->used0);
        if (psn_diff(run->psn, r->next_psn) < 0)
            req_rewind(s->qp, run->psn);
        r->sent_psn = psn_diff(run->psn, s->sent0) > 0 ? run->psn : s->sent0;
        return;
    }
}

/* --- start and room --------------------------------------------------------------------------- */

void burst_init(struct burst *s, struct qp *qp, struct tx_batch *b, uint32_t budget, uint64_t now)
{
    /* Field by field: an initializer would clear the arrays. */
    s->qp = qp;
    s->b = b;
    s->now = now;
    s->budget = budget;
    s->resends = budget == UINT32_MAX || qp->e->cfg.max_resends == 0 ? UINT32_MAX : qp->e->cfg.max_resends;
    s->sent0 = qp->req->sent_psn;
    s->runs = s->segments = s->bufs = 0;
}

bool burst_is_spent(const struct burst *s)
{
    return s->budget == 0 || s->runs == BURST_RUNS || s->segments + ENGINE_MAX_SGE > BURST_SEGMENTS;
}

uint32_t burst_room(const struct burst *s, const struct send_wqe *w, uint32_t off)
{
    uint32_t left = w->length - min32(off * s->qp->mtu, w->length);
    uint32_t payload = min32(s->qp->mtu, left);
    uint32_t n = min32(w->npkts - off, TX_BATCH_PKTS - s->b->n);
    n = min32(n, (uint32_t)((s->b->cap - s->b->used) / (payload + PKT_HEADERS_MAX + 3 + ICRC_LEN)));
    uint32_t turns = payload ? s->budget / payload : n;
    return min32(n, turns ? turns : 1);
}
