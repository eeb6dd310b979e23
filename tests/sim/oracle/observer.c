// SPDX-License-Identifier: BSD-2-Clause
/* Checks every packet that leaves an engine against the posted requests. The observer segments the requests
 * itself, from the message bytes that the oracle computed. So headers, lengths, PSNs and payload have exactly one
 * right form. */
#include "tests/sim/sim.h"

#include "wire/pumice/sack.h"
#include "wire/syndrome.h"

#include <string.h>

/* One packet under test. */
struct view {
    struct sim *s;
    struct end *e; /* sender */
    const struct tx_pkt *t;
    const struct pkt *p;
    const struct op_info *info;
};
#define require(v, cond, fmt, ...)                                                                                     \
    sim_require((v)->s, cond, "end %d sends %s, PSN %u: " fmt, (v)->e->index, (v)->info->name, (v)->p->psn,            \
                ##__VA_ARGS__)

static struct end *sender_of(struct host *h, uint32_t qpn)
{
    struct sim *s = h->sim;
    for (int i = 0; i < s->sc.nends; i++) {
        if (s->end[i].host == h->index && s->end[i].qpn == qpn) {
            return &s->end[i];
        }
    }
    sim_fail(s, "host %d: a packet from QP %u, which nobody has", h->index, qpn);
}

/* --- checks of every packet -------------------------------------------------------------------- */

static void check_form(const struct view *v, const uint8_t *bytes)
{
    const struct pkt *p = v->p;
    const struct end *e = v->e;
    uint32_t n = p->payload_len;
    require(v, p->tver == 0 && p->migreq && !p->fecn && p->pkey == PKEY_DEFAULT, "TVer, MigReq, FECN or P_Key");
    require(v, p->dest_qpn == e->peer->qpn, "to QP %u, not %u", p->dest_qpn, e->peer->qpn);
    require(v, p->psn == v->t->psn && v->t->src_qpn == e->qpn, "tx_pkt says PSN %u", v->t->psn);
    require(v, v->t->header_len == v->info->header_len, "header length %u, not %u", v->t->header_len,
            v->info->header_len);
    require(v, v->t->len == v->info->header_len + n + p->pad + ICRC_LEN, "length %u", v->t->len);
    require(v, p->pad == pkt_pad(n), "%u bytes of pad after %u", p->pad, n);
    for (unsigned i = 0; i < p->pad; i++) {
        require(v, bytes[v->info->header_len + n + i] == 0, "pad is not zero");
    }
    const struct av *av = v->t->av;
    require(v, av->sgid_index == (e->v6 ? 1 : 0) && av->hop_limit == 64, "address vector");
    switch (v->info->payload) {
    case OP_PAYLOAD_NONE:
        require(v, n == 0, "%u bytes of payload", n);
        break;
    case OP_PAYLOAD_FULL:
        require(v, n == e->mtu, "%u bytes of payload, not %u", n, e->mtu);
        break;
    case OP_PAYLOAD_LAST:
        require(v, n >= 1 && n <= e->mtu, "%u bytes of payload", n);
        break;
    default:
        require(v, n <= e->mtu, "%u bytes of payload", n);
        break;
    }
}

/* --- requests ---------------------------------------------------------------------------------- */

/* The request that PSN rel belongs to; -1: none. */
static int op_at(const struct end *requester, uint32_t rel)
{
    for (int i = 0; i < requester->posted; i++) {
        const struct op *o = &requester->op[i];
        if (rel >= o->rel && rel < o->rel + o->npsn) {
            return i;
        }
    }
    return -1;
}

/* Number of messages that are complete before PSN rel. A requester may divide a READ into several requests; each of
 * them counts. */
static uint32_t messages_before(const struct end *requester, uint32_t rel)
{
    uint32_t n = 0;
    for (int i = 0; i < requester->posted; i++) {
        const struct op *o = &requester->op[i];
        if (o->opcode != WR_RDMA_READ) {
            n += o->npsn > 0 && o->rel + o->npsn <= rel;
            continue;
        }
        for (uint32_t k = 0; k < o->npsn && o->rel + k < rel; k++) {
            n += o->ends[k] & ENDS_FIRST;
        }
    }
    return n;
}

/* The last packet of the READ request that covers packet k. */
static uint32_t read_end(const struct op *o, uint32_t k)
{
    while (k + 1 < o->npsn && !(o->ends[k] & ENDS_FIRST)) {
        k++;
    }
    return k;
}

static uint8_t expected_opcode(const struct op *o, uint32_t k)
{
    bool first = k == 0, last = k + 1 == o->npsn;
    static const uint8_t table[][4] = {
        /* middle, first, last, only */
        [WR_RDMA_WRITE] = {OP_WRITE_MIDDLE, OP_WRITE_FIRST, OP_WRITE_LAST, OP_WRITE_ONLY},
        [WR_RDMA_WRITE_WITH_IMM] = {OP_WRITE_MIDDLE, OP_WRITE_FIRST, OP_WRITE_LAST_IMM, OP_WRITE_ONLY_IMM},
        [WR_SEND] = {OP_SEND_MIDDLE, OP_SEND_FIRST, OP_SEND_LAST, OP_SEND_ONLY},
        [WR_SEND_WITH_IMM] = {OP_SEND_MIDDLE, OP_SEND_FIRST, OP_SEND_LAST_IMM, OP_SEND_ONLY_IMM},
        [WR_RDMA_READ] = {OP_READ_REQUEST, OP_READ_REQUEST, OP_READ_REQUEST, OP_READ_REQUEST},
        [WR_ATOMIC_CMP_AND_SWP] = {0, 0, 0, OP_CMP_SWAP},
        [WR_ATOMIC_FETCH_AND_ADD] = {0, 0, 0, OP_FETCH_ADD},
        [WR_SEND_WITH_INV] = {OP_SEND_MIDDLE, OP_SEND_FIRST, OP_SEND_LAST_INV, OP_SEND_ONLY_INV},
        [WR_FLUSH] = {0, 0, 0, OP_FLUSH},
        [WR_ATOMIC_WRITE] = {0, 0, 0, OP_ATOMIC_WRITE},
    };
    return table[o->opcode][first + 2 * last];
}

/* With end-to-end credits at both ends, at most one message begins for which the peer has no receive. */
static void check_credit(const struct view *v, int index)
{
    const struct end *e = v->e, *q = e->peer;
    bool both = v->s->host[e->host].cfg.e2e_credits && v->s->host[q->host].cfg.e2e_credits;
    int messages = 0;
    for (int i = 0; i <= index; i++) {
        messages += op_takes_recv(e->op[i].opcode);
    }
    require(v, !both || !has_rq(q) || q->closed || messages <= q->offered + 1,
            "message %d begins, and the peer has %d receives", messages, q->offered);
}

/* The addresses and keys of faulty requests are set by user.c. Only those of valid requests are compared here. */
static void check_request_headers(const struct view *v, const struct op *o, uint32_t k)
{
    const struct pkt *p = v->p;
    const struct end *peer = mem_end(v->e, o);
    const struct region *g = o->rregion == REG_CELLS ? &peer->cells : &peer->reg[o->rregion];
    if (v->info->headers & OP_HAS_XRCETH) {
        bool wrong = o->plant == PLANT_XRC_DOMAIN || o->plant == PLANT_XRC_NUMBER;
        require(v, o->pool && (p->srqn == o->pool->number) == !wrong, "XRCETH names SRQ %#x", p->srqn);
    }
    uint32_t off = o->opcode == WR_RDMA_READ ? k * v->e->mtu : 0;
    if ((v->info->headers & OP_HAS_RETH)) {
        uint32_t len = o->opcode == WR_FLUSH ? o->flen : o->len;
        require(v, o->opcode == WR_RDMA_READ || p->reth.length == len, "RETH length %u, not %u", p->reth.length, len);
        if (len > 0 && !o->plant && o->window >= 0) {
            struct send_wr wr = {.remote_addr = g->iova + o->roff};
            window_wr(v->e, o, &wr);
            require(v, p->reth.va == wr.remote_addr + off && p->reth.rkey == wr.rkey, "RETH of a window");
        } else if (len > 0 && !o->plant) {
            require(v, p->reth.va == g->iova + o->roff + off, "RETH address");
            require(v, p->reth.rkey == g->key || (peer->key_gone && p->reth.rkey == peer->key_fleeting), "RETH key");
        }
    }
    if (v->info->headers & OP_HAS_ATOMICETH) {
        uint64_t compare = o->opcode == WR_ATOMIC_CMP_AND_SWP ? o->compare_add : p->atomic.compare;
        uint64_t swap_add = o->opcode == WR_ATOMIC_CMP_AND_SWP ? o->swap : o->compare_add;
        require(v, p->atomic.swap_add == swap_add && p->atomic.compare == compare, "AtomicETH operands");
        require(v, o->plant || (p->atomic.va == g->iova + o->roff && p->atomic.rkey == g->key),
                "AtomicETH address or key");
    }
    if (v->info->headers & OP_HAS_FETH) {
        require(v, p->feth.placement == FLUSH_GLOBAL && p->feth.selectivity == (o->whole ? FLUSH_REGION : FLUSH_RANGE),
                "FETH");
    }
    if (v->info->headers & OP_HAS_IMMDT) {
        require(v, memcmp(p->imm, o->imm, 4) == 0, "immediate data");
    }
    if (v->info->headers & OP_HAS_IETH) {
        struct send_wr wr = {.inv_rkey = v->e->peer->reg[REG_TGT].key};
        if (o->window >= 0) {
            window_wr(v->e, o, &wr);
        }
        require(v, p->inv_rkey == wr.inv_rkey, "IETH key");
    }
}

/* A READ request covers packets k … of its READ: either a new part of it, or a part of an earlier request. Returns
 * the number of packets. */
static uint32_t check_read_request(const struct view *v, struct op *o, uint32_t k, bool unsent)
{
    uint32_t len = v->p->reth.length, left = o->len - k * v->e->mtu;
    uint32_t n = len ? (len + v->e->mtu - 1) / v->e->mtu : 1;
    require(v, len == left || (len < left && len > 0 && len % v->e->mtu == 0), "RETH length %u of %u", len, left);
    require(v, n <= v->s->host[v->e->host].cfg.window_pkts, "asks for %u packets, more than the window", n);
    if (unsent) {
        o->ends[k + n - 1] = ENDS_FIRST;
    } else {
        require(v, k + n - 1 <= read_end(o, k), "asks again for more than the request before it did");
        require(v, k + n - 1 == read_end(o, k) || v->s->host[v->e->host].cfg.selective,
                "asks again for less than the rest of the request before it");
        o->ends[k + n - 1] |= ENDS_AGAIN;
    }
    return n;
}

static bool is_here(struct end *e, const struct op *o)
{
    uint8_t *to = o->data;
    for (unsigned i = 0; i < o->nseg; i++) {
        if (memcmp(mem_at(e, &o->seg[i]), to, o->seg[i].len) != 0) {
            return false;
        }
        to += o->seg[i].len;
    }
    return true;
}

/* A fenced request must not start before all earlier READs and atomics are done. */
static void check_fence(const struct view *v, int index)
{
    struct end *e = v->e;
    for (int i = 0; i < index; i++) {
        const struct op *o = &e->op[i];
        if (o->opcode == WR_RDMA_READ) {
            require(v, is_here(e, o), "request %d is fenced, and READ %d has not brought its data", index, i);
        } else if (op_is_read_or_atomic(o->opcode)) {
            uint64_t got;
            memcpy(&got, mem_at(e, &o->seg[0]), 8);
            require(v, o->executed && got == o->old, "request %d is fenced, and atomic %d has no result", index, i);
        } else if (op_is_answered(o->opcode)) {
            require(v, o->answered > 0, "request %d is fenced, and %d has not been answered", index, i);
        }
    }
}

static void check_request(const struct view *v)
{
    struct end *e = v->e;
    const struct pkt *p = v->p;
    uint32_t rel = psn_rel(e, p->psn);
    int index = op_at(e, rel);
    require(v, index >= 0, "the PSN belongs to no request");
    struct op *o = &e->op[index];
    uint32_t k = rel - o->rel;
    bool last = k + 1 == o->npsn;
    bool read = o->opcode == WR_RDMA_READ;
    require(v, (p->opcode & OP_OPERATION_MASK) == expected_opcode(o, k),
            "request %d, packet %u of %u, is of another kind", index, k, o->npsn);
    require(v, !o->retired, "request %d is complete", index);
    require(v, !expectations[o->plant].local, "request %d has a local error and must not be sent", index);
    check_request_headers(v, o, k);
    if (e->rnr_waits) {
        struct qp_info i;
        qp_info(e->qp, &i);
        require(v, !i.waiting_rnr, "the receiver asked to wait");
        require(v, p->psn == i.una_psn, "after the wait PSN %u must come first", i.una_psn);
        e->rnr_waits = false;
    }
    if (!read && p->payload_len > 0) {
        require(v, memcmp(p->payload, o->data + k * e->mtu, p->payload_len) == 0, "request %d, packet %u: payload",
                index, k);
    }
    require(v,
            p->payload_len == (read || o->rregion == REG_CELLS ? 0
                               : last                          ? o->len - k * e->mtu
                                                               : e->mtu),
            "payload length");
    require(v, p->ackreq || !last, "no AckReq on a message's last packet");
    bool solicited = last && (o->flags & SEND_SOLICITED) && op_takes_recv(o->opcode);
    require(v, p->solicited == solicited, "solicited event bit");
    if (rel == e->rel_new) {
        require(v, !v->t->retransmit, "is new, and marked as sent again");
        if (k == 0 && op_takes_recv(o->opcode)) {
            check_credit(v, index);
        }
        require(v, !(k == 0 && (o->flags & SEND_FENCE)) || (check_fence(v, index), true), "fence");
        e->rel_new = rel + (read ? check_read_request(v, o, k, true) : 1);
        o->first_sent = k == 0 ? v->s->now : o->first_sent;
    } else {
        require(v, rel < e->rel_new, "PSNs %u … were left out", (e->sq_psn + e->rel_new) & PSN_MASK);
        require(v, v->t->retransmit, "was sent before, and is not marked so");
        require(v, !read || check_read_request(v, o, k, false) > 0, "READ");
    }
}

/* --- responses --------------------------------------------------------------------------------- */

static uint32_t epsn_rel(const struct end *responder)
{
    struct qp_info i;
    if (responder->left) {
        return responder->left_rel;
    }
    qp_info(responder->qp, &i);
    return psn_rel(responder->peer, i.epsn);
}

/* READs and atomics before rel must have been answered: responses keep the order of the requests. */
static void check_answered(const struct view *v, uint32_t rel)
{
    struct end *q = v->e->peer;
    for (int i = 0; i < q->posted; i++) {
        const struct op *o = &q->op[i];
        if (op_is_answered(o->opcode) && o->rel < rel) {
            uint32_t need = o->npsn < rel - o->rel ? o->npsn : rel - o->rel;
            require(v, o->answered >= need, "request %d is not answered yet (%u of %u)", i, o->answered, need);
        }
    }
}

/* An end with a receive queue gives credits for receives that it has. */
static void check_credits_given(const struct view *v)
{
    const struct end *e = v->e;
    uint8_t code = v->p->aeth.syndrome & AETH_VALUE_MASK;
    if ((v->p->aeth.syndrome & AETH_KIND_MASK) != AETH_ACK) {
        return;
    }
    if (!v->s->host[e->host].cfg.e2e_credits || !has_rq(e) || e->left) {
        require(v, code == AETH_NO_CREDITS, "gives credits (%u)", code);
        return;
    }
    require(v, code != AETH_NO_CREDITS && (int)aeth_credits(code) <= e->offered - e->rdone,
            "gives %u credits and has %d receives", aeth_credits(code), e->offered - e->rdone);
}

static void check_msn(const struct view *v, uint32_t want)
{
    require(v, v->p->aeth.msn == (want & PSN_MASK), "MSN %u, not %u", v->p->aeth.msn, want & PSN_MASK);
}

/* Checks that the receive was really missing when the responder refused the packet. */
static void check_rnr(const struct view *v, uint32_t rel)
{
    struct end *e = v->e;
    int index = op_at(e->peer, rel);
    require(v, index >= 0 && op_takes_recv(e->peer->op[index].opcode), "RNR NAK for what needs no receive");
    int needs = e->peer->op[index].recv;
    /* otherwise pool.c checks it */
    require(v, !has_rq(e) || e->refused, "RNR NAK, but no packet was refused");
    require(v, !has_rq(e) || needs >= e->refused - 1, "RNR NAK, but receive %d was posted", needs);
    e->refused = 0;
    require(v, (v->p->aeth.syndrome & AETH_VALUE_MASK) == e->attr.min_rnr_timer, "RNR timer code");
}

static void check_nak(const struct view *v, uint32_t rel)
{
    struct end *e = v->e;
    uint8_t syndrome = v->p->aeth.syndrome;
    if (syndrome == NAK_PSN_SEQUENCE) {
        require(v, rel == epsn_rel(e), "sequence NAK, but PSN %u is expected",
                (e->peer->sq_psn + epsn_rel(e)) & PSN_MASK);
        /* a request that must not overtake a READ is dropped if the READ can't be copied */
        bool dropped = e->peer->rel_new > rel && v->s->host[e->host].cfg.read_copy_bytes < READ_COPIES;
        require(v, e->peer->rel_new > rel + 1 || dropped, "sequence NAK, but nothing can have come out of order");
        return;
    }
    int index = op_at(e->peer, rel);
    require(v, index >= 0 && index == e->peer->plant && expectations[e->peer->op[index].plant].syndrome == syndrome,
            "NAK %#x for request %d", syndrome, index);
    e->nak_sent = syndrome;
}

static void check_ack(const struct view *v)
{
    struct end *e = v->e;
    uint32_t rel = psn_rel(e->peer, v->p->psn);
    uint32_t epsn = epsn_rel(e);
    uint8_t syndrome = v->p->aeth.syndrome;
    require(v, (syndrome & 0x80) == 0 && (syndrome & AETH_KIND_MASK) != AETH_RESERVED, "syndrome %#x", syndrome);
    if ((syndrome & AETH_KIND_MASK) == AETH_ACK) {
        require(v, rel < epsn || rel == PSN_MASK, "acknowledges what has not arrived (expected: %u)",
                (e->peer->sq_psn + epsn) & PSN_MASK);
        int named = op_at(e->peer, rel);
        require(v, named < 0 || !op_is_answered(e->peer->op[named].opcode), "names request %d, a READ or atomic",
                named);
        rel = (rel + 1) & PSN_MASK;
        check_answered(v, rel);
        check_msn(v, messages_before(e->peer, rel));
        return;
    }
    check_answered(v, rel);
    check_msn(v, expect_late(e->peer) ? v->p->aeth.msn : messages_before(e->peer, rel));
    if ((syndrome & AETH_KIND_MASK) == AETH_RNR) {
        require(v, rel == epsn, "RNR NAK, but another PSN is expected");
        check_rnr(v, rel);
    } else {
        check_nak(v, rel);
    }
}

/* A READ that is repeated reads again, unless it is short. So it may see what later requests wrote, or another part of
 * memory if its window was bound again with the same key. */
static bool may_see_later_data(const struct end *q, int index, uint32_t k)
{
    const struct op *o = &q->op[index];
    if (k >= o->answered || o->len <= READ_EXACT) {
        return false;
    }
    if (o->window >= 0) {
        return true;
    }
    for (int i = index + 1; i < q->posted; i++) {
        const struct op *l = &q->op[i];
        if (op_is_write(l->opcode) && o->rregion == REG_TGT && mem_end(q, l) == mem_end(q, o) &&
            l->roff < o->roff + o->len && o->roff < l->roff + l->len) {
            return true;
        }
    }
    return false;
}

static void check_read_response(const struct view *v)
{
    struct end *e = v->e;
    struct end *q = e->peer;
    const struct pkt *p = v->p;
    uint32_t rel = psn_rel(q, p->psn);
    int index = op_at(q, rel);
    bool answered = index >= 0 && op_is_answered(q->op[index].opcode);
    require(v, answered && !op_is_atomic(q->op[index].opcode), "no READ, ATOMIC WRITE or FLUSH has this PSN");
    struct op *o = &q->op[index];
    bool read = o->opcode == WR_RDMA_READ;
    uint32_t k = rel - o->rel;
    bool last = v->info->properties & (OP_IS_LAST | OP_IS_ONLY);
    bool begins = v->info->properties & (OP_IS_FIRST | OP_IS_ONLY);
    require(v, last ? k == read_end(o, k) || o->ends[k] & ENDS_AGAIN : k != read_end(o, k), "packet %u of %u", k,
            o->npsn);
    require(v, begins || rel == e->rel_resp, "does not follow the response before it");
    uint32_t n = !read ? 0 : k + 1 == o->npsn ? o->len - k * e->mtu : e->mtu;
    require(v, p->payload_len == n, "%u bytes, not %u", p->payload_len, n);
    require(v, n == 0 || memcmp(p->payload, o->data + k * e->mtu, n) == 0 || may_see_later_data(q, index, k),
            "READ %d, packet %u: payload", index, k);
    if (v->info->headers & OP_HAS_AETH) {
        require(v, (p->aeth.syndrome & AETH_KIND_MASK) == AETH_ACK, "syndrome %#x", p->aeth.syndrome);
        check_msn(v, messages_before(q, o->rel + read_end(o, k) + 1));
    }
    check_answered(v, o->rel);
    require(v, k <= o->answered, "responses before it were left out");
    o->answered = k == o->answered ? k + 1 : o->answered;
    e->rel_resp = last ? UINT32_MAX : rel + 1;
}

static void check_atomic_response(const struct view *v)
{
    struct end *q = v->e->peer;
    uint32_t rel = psn_rel(q, v->p->psn);
    int index = op_at(q, rel);
    require(v, index >= 0 && op_is_atomic(q->op[index].opcode), "no atomic has this PSN");
    struct op *o = &q->op[index];
    require(v, o->executed, "atomic %d was not carried out", index);
    require(v, v->p->atomic_orig == o->old, "atomic %d found another value", index);
    require(v, (v->p->aeth.syndrome & AETH_KIND_MASK) == AETH_ACK, "syndrome %#x", v->p->aeth.syndrome);
    check_msn(v, messages_before(q, rel + 1));
    check_answered(v, o->rel);
    o->answered = 1;
}

/* A SACK is for a peer that understands it, and names as missing only what follows the expected packet and was sent. */
bool observe_sack(struct host *h, const struct pkt *p)
{
    struct sim *s = h->sim;
    struct sack k;
    if (!sack_decode(p->payload, p->payload_len, &k)) {
        return false;
    }
    struct end *e = sender_of(h, k.responder), *q = e->peer;
    sim_require(s, h->cfg.selective && s->host[q->host].cfg.selective, "end %d: a SACK, which nobody expects",
                e->index);
    sim_require(s, k.requester == q->qpn && !e->closed && !e->left, "end %d: a SACK for QP %u", e->index, k.requester);
    if (!e->rogue && !q->rogue) {
        sim_require(s, psn_rel(q, k.expected) == epsn_rel(e), "end %d: a SACK from PSN %u", e->index, k.expected);
        sim_require(s, psn_rel(q, k.end) <= q->rel_new, "end %d: a SACK up to PSN %u, which was never sent", e->index,
                    k.end);
    }
    return true;
}

void observe_tx(struct host *h, const struct tx_pkt *t, const uint8_t *bytes, const struct pkt *p)
{
    if (dgram_observe(h, t, p)) {
        return;
    }
    struct view v = {.s = h->sim, .e = sender_of(h, t->src_qpn), .t = t, .p = p, .info = &op_table[p->opcode]};
    require(&v, !v.e->closed || v.e->left, "the QP is closed");
    check_form(&v, bytes);
    if (v.e->rogue) {
        return;
    }
    if (v.e->left) {
        require(&v, (p->opcode & OP_OPERATION_MASK) == OP_ACK && (p->aeth.syndrome & AETH_KIND_MASK) == AETH_ACK,
                "but the QP is destroyed");
    }
    bool request = v.info->properties & OP_IS_REQUEST;
    require(&v, (p->opcode & OP_SERVICE_MASK) == (v.e->type == QPT_RC ? OP_SERVICE_RC : OP_SERVICE_XRC), "service");
    require(&v, v.e->type != (request ? QPT_XRC_RECV : QPT_XRC_SEND), "from the wrong end");
    if (request) {
        check_request(&v);
        return;
    }
    require(&v, !p->ackreq && !p->solicited, "AckReq or solicited event in a response");
    if (v.info->headers & OP_HAS_AETH) {
        check_credits_given(&v);
    }
    if ((p->opcode & OP_OPERATION_MASK) == OP_ACK) {
        check_ack(&v);
    } else if (v.info->properties & OP_IS_READ) {
        check_read_response(&v);
    } else if (v.info->properties & OP_IS_ATOMIC) {
        check_atomic_response(&v);
    } else {
        require(&v, false, "a response of no kind that an RC QP has");
    }
}
