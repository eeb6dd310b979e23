// SPDX-License-Identifier: BSD-2-Clause
/* Checks completions and events as they come, and the engines' state after each step. */
#include "tests/sim/sim.h"

#include <string.h>

/* --- send completions -------------------------------------------------------------------------- */

static uint64_t timeout_ns(const struct end *e)
{
    const struct engine_config *c = &e->sim->host[e->host].cfg;
    uint64_t t = (uint64_t)4096 << e->attr.timeout;
    if (t < c->crowd_timeout_ns)
        t = 4 * t < c->crowd_timeout_ns ? 4 * t : c->crowd_timeout_ns;
    return t < c->min_timeout_ns ? c->min_timeout_ns : t;
}

/* The user learns that a QP has failed, and may then kill the peer. */
static void note_failure(struct end *e, const char *queue, int index, uint8_t status)
{
    struct sim *s = e->sim;
    capture_note(s, "end %d: %s request %d fails with status %u", e->index, queue, index, status);
    if (e->failed) {
        return;
    }
    e->failed = true;
    e->failed_at = s->now;
    bool waits = e->peer->plant >= 0 && !e->peer->failed; /* for the NAK, which must be seen */
    if (s->sc.kill_peer && !s->closing && !waits) {
        uint64_t at = s->now + prng_range(&s->rng, 0, 1 * MS);
        evq_push(&s->events, (struct timed){.at = at, .kind = EV_STEP, .n = e->peer->index, .v = STEP_KILL});
    }
}

static void first_send_error(struct end *e, int index, uint8_t status)
{
    struct sim *s = e->sim;
    struct op *o = &e->op[index];
    sim_require(s, expect_send(e, index, status), "end %d: request %d fails with status %u, which nothing explains",
                e->index, index, status);
    if (status == WC_RETRY_EXC_ERR) {
        uint64_t from = e->una_changed > o->first_sent ? e->una_changed : o->first_sent;
        uint64_t least = (uint64_t)(e->attr.retry_cnt + 1) * timeout_ns(e);
        sim_require(s, s->now - from >= least, "end %d: retries of request %d ran out after %llu ns of %llu", e->index,
                    index, (unsigned long long)(s->now - from), (unsigned long long)least);
    }
    e->sfailed = true;
    note_failure(e, "send", index, status);
}

/* Retires requests that complete without a completion: unsignaled ones before a signaled or failed one. */
static void retire(struct end *e, int upto)
{
    for (; e->sdone < upto; e->sdone++) {
        struct op *o = &e->op[e->sdone];
        sim_require(e->sim, !(o->flags & SEND_SIGNALED) && !e->sig_all, "end %d: no completion of signaled request %d",
                    e->index, e->sdone);
        o->retired = true;
        o->status = WC_SUCCESS;
        oracle_send(e, e->sdone);
        counters_sent(e, o);
    }
}

static void check_send(struct end *e, const struct completion *c)
{
    static const uint8_t opcode[] = {[WR_RDMA_WRITE] = WC_RDMA_WRITE,
                                     [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
                                     [WR_SEND] = WC_SEND,
                                     [WR_SEND_WITH_IMM] = WC_SEND,
                                     [WR_RDMA_READ] = WC_RDMA_READ,
                                     [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
                                     [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
                                     [WR_SEND_WITH_INV] = WC_SEND,
                                     [WR_LOCAL_INV] = WC_LOCAL_INV,
                                     [WR_BIND_MW] = WC_BIND_MW,
                                     [WR_FLUSH] = WC_FLUSH,
                                     [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE};
    struct sim *s = e->sim;
    int index = (int)c->slot - 1000 * (e->index + 1);
    sim_require(s, c->cq == e->op, "end %d: send completion for the wrong queue", e->index);
    sim_require(s, index >= e->sdone && index < e->posted, "end %d: completion of request %d, but %d is next of %d",
                e->index, index, e->sdone, e->posted);
    struct op *o = &e->op[index];
    sim_require(s, c->wr_id == o->wr_id && c->opcode == opcode[o->opcode],
                "end %d: completion of request %d: wr_id or opcode", e->index, index);
    if (e->sfailed) {
        sim_require(s, index == e->sdone, "end %d: request %d is not flushed", e->index, e->sdone);
        sim_require(s, c->status == WC_WR_FLUSH_ERR, "end %d: request %d has status %u after a failure", e->index,
                    index, c->status);
    } else {
        retire(e, index);
    }
    o->retired = true;
    o->status = c->status;
    e->sdone = index + 1;
    counters_sent(e, o);
    if (c->status != WC_SUCCESS) {
        if (!e->sfailed) {
            first_send_error(e, index, c->status);
        }
        return;
    }
    sim_require(s, (o->flags & SEND_SIGNALED) || e->sig_all, "end %d: request %d is unsignaled, and completes",
                e->index, index);
    if (o->plant >= PLANT_DEREG && !e->key_gone && !e->peer->key_gone) {
        o->plant = PLANT_NONE; /* the key will be removed when it is no longer needed */
        e->plant = -1;
    }
    sim_require(s, o->plant == PLANT_NONE, "end %d: request %d succeeds in spite of fault %u", e->index, index,
                o->plant);
    sim_require(s, !op_is_read_or_atomic(o->opcode) || c->byte_len == o->len, "end %d: request %d: byte_len %u, not %u",
                e->index, index, c->byte_len, o->len);
    oracle_send(e, index);
    capture_note(s, "end %d: request %d completes", e->index, index);
}

/* --- receive completions ----------------------------------------------------------------------- */

static const struct op *op_of_recv(const struct end *e, const struct pool *p, int index)
{
    const struct end *q = e->peer;
    for (int i = 0; i < q->posted; i++) {
        if (q->op[i].recv == index && q->op[i].pool == p && !q->op[i].returned) {
            return &q->op[i];
        }
    }
    return NULL;
}

/* A small message travels in the completion: the poller copies it to the buffer. */
static void scatter_inline(struct end *e, const struct rcv *v, const struct completion *c)
{
    struct sim *s = e->sim;
    uint32_t left = c->inline_len;
    const uint8_t *from = c->data;
    sim_require(s, left <= COMPLETION_INLINE && left == c->byte_len && c->opcode == WC_RECV,
                "end %d: %u bytes in a completion of %u", e->index, left, c->byte_len);
    for (unsigned i = 0; i < v->nseg && left > 0; i++) {
        uint32_t n = v->seg[i].len < left ? v->seg[i].len : left;
        memcpy(mem_at(e, &v->seg[i]), from, n);
        from += n;
        left -= n;
    }
    sim_require(s, left == 0, "end %d: %u bytes of a completion have no buffer", e->index, left);
}

static void check_recv_success(struct end *e, struct end *home, int index, const struct completion *c)
{
    struct sim *s = e->sim;
    struct rcv *v = &home->rcv[index];
    const struct op *o = op_of_recv(e, c->srq_owner, index);
    sim_require(s, o, "end %d: receive %d completes, but nothing was sent to it", e->index, index);
    bool write = o->opcode == WR_RDMA_WRITE_WITH_IMM;
    bool inv = o->opcode == WR_SEND_WITH_INV, imm = o->opcode != WR_SEND && !inv;
    sim_require(s, c->opcode == (write ? WC_RECV_RDMA_WITH_IMM : WC_RECV), "end %d: receive %d: opcode %u", e->index,
                index, c->opcode);
    sim_require(s, c->byte_len == o->len, "end %d: receive %d: byte_len %u, not %u", e->index, index, c->byte_len,
                o->len);
    sim_require(s,
                c->flags == (imm   ? WC_WITH_IMM
                             : inv ? WC_WITH_INV
                                   : 0),
                "end %d: receive %d: flags %#x", e->index, index, c->flags);
    sim_require(s, !imm || memcmp(c->imm, o->imm, 4) == 0, "end %d: receive %d: immediate data", e->index, index);
    sim_require(s, !inv || c->inv_rkey == ((e->window[o->window].key & ~0xffu) | o->tag), "end %d: receive %d: key",
                e->index, index);
    sim_require(s, c->src_qp == e->peer->qpn, "end %d: receive %d: from QP %u", e->index, index, c->src_qp);
    sim_require(s, c->solicited == ((o->flags & SEND_SOLICITED) != 0), "end %d: receive %d: solicited", e->index,
                index);
    if (c->inline_len > 0) {
        scatter_inline(home, v, c);
    }
    oracle_recv(e, o);
    capture_note(s, "end %d: receive %d completes with %u bytes", e->index, index, c->byte_len);
}

/* A receive of an SRQ completes once, for a message of the peer that has taken it, in the order of these messages. */
static void check_pooled(struct end *e, const struct pool *p, int index)
{
    struct sim *s = e->sim;
    sim_require(s, e->type == QPT_XRC_RECV ? p->xrcd == e->xrcd : p == e->pool, "end %d: a receive of pool %d",
                e->index, p->index);
    sim_require(s, index >= 0 && index < p->home->rposted && !p->home->rcv[index].done,
                "end %d: receive %d of pool %d completes, out of %d, or again", e->index, index, p->index,
                p->home->rposted);
    const struct op *o = op_of_recv(e, p, index);
    sim_require(s, o, "end %d: receive %d of pool %d completes, but no message has taken it", e->index, index,
                p->index);
    int at = (int)(o - e->peer->op) + 1;
    sim_require(s, at > e->rlast, "end %d: the receive of request %d completes after that of request %d", e->index,
                at - 1, e->rlast - 1);
    e->rlast = at;
}

static void check_recv(struct end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    struct pool *p = c->srq_owner ? pool_of(&s->host[e->host], c->srq_owner) : NULL;
    struct end *home = p ? p->home : e;
    int index = (int)c->slot - 1000 * (home->index + 1);
    if (p) {
        check_pooled(e, p, index);
    } else {
        sim_require(s, index == e->rdone && index < e->rposted, "end %d: receive %d completes, but %d is next of %d",
                    e->index, index, e->rdone, e->rposted);
    }
    sim_require(s, has_rq(e) == !p && c->cq == (p && p->xrcd ? (void *)p : e->rcv),
                "end %d: receive completion for the wrong queue", e->index);
    struct rcv *v = &home->rcv[index];
    sim_require(s, c->wr_id == v->wr_id, "end %d: receive %d: wr_id", e->index, index);
    v->done = true;
    v->status = c->status;
    e->rdone++;
    counters_received(e, c);
    if (e->rfailed) {
        /* A deferred write that fails also fails the QP's other completions of the batch. */
        bool taken = s->sc.defer && c->status == WC_LOC_PROT_ERR && e->peer->plant >= 0 &&
                     e->peer->op[e->peer->plant].plant == PLANT_WRITE_FAULT;
        sim_require(s, c->status == WC_WR_FLUSH_ERR || taken, "end %d: receive %d has status %u after a failure",
                    e->index, index, c->status);
    } else if (c->status != WC_SUCCESS) {
        sim_require(s, expect_recv(e, index, c->status),
                    "end %d: receive %d fails with status %u, which nothing explains", e->index, index, c->status);
        e->rfailed = true;
        note_failure(e, "receive", index, c->status);
    } else {
        sim_require(s, v->plant == PLANT_NONE, "end %d: receive %d succeeds in spite of fault %u", e->index, index,
                    v->plant);
        check_recv_success(e, home, index, c);
    }
}

/* With a rogue peer, a request may have any result, but only one, and in order. */
static void check_rogue(struct end *e, const struct completion *c)
{
    struct sim *s = e->sim;
    struct pool *p = c->srq_owner ? pool_of(&s->host[e->host], c->srq_owner) : NULL;
    sim_require(s, !c->is_recv || has_rq(e) == !p, "rogue end %d: a receive of the wrong queue", e->index);
    sim_require(s, !p || p->rogue, "rogue end %d: takes a receive of pool %d", e->index, p->index);
    sim_require(s,
                c->cq == (p && p->xrcd ? (void *)p
                          : c->is_recv ? (void *)e->rcv
                                       : (void *)e->op),
                "rogue end %d: completion for the wrong queue", e->index);
    const struct end *home = p ? p->home : e;
    int *next = p ? &p->done : c->is_recv ? &e->rdone : &e->sdone;
    int index = (int)c->slot - 1000 * (home->index + 1);
    int first = *next, most = c->is_recv ? home->rposted : e->posted;
    sim_require(s, index >= first && index < most, "rogue end %d: completion of %s %d, but %d is next of %d", e->index,
                c->is_recv ? "receive" : "request", index, first, most);
    bool quiet = !c->is_recv && !e->sfailed;
    for (int i = first; i < index; i++) {
        sim_require(s, quiet && !(e->op[i].flags & SEND_SIGNALED) && !e->sig_all, "rogue end %d: no completion of %d",
                    e->index, i);
    }
    bool *failed = c->is_recv ? &e->rfailed : &e->sfailed;
    sim_require(s, !*failed || c->status == WC_WR_FLUSH_ERR || (s->sc.defer && c->is_recv),
                "rogue end %d: %d has status %u", e->index, index, c->status);
    *failed = *failed || c->status != WC_SUCCESS;
    e->failed = e->failed || *failed;
    *next = index + 1;
}

void check_completion(struct host *h, const struct completion *c)
{
    struct sim *s = h->sim;
    struct end *e = c->qp_owner;
    if (dgram_completion(h, c)) {
        return;
    }
    sim_require(s, e >= s->end && e < s->end + s->sc.nends && e->host == h->index && e->qpn == c->qpn,
                "host %d: a completion of a QP that it doesn't have", h->index);
    sim_require(s, !e->closed, "end %d: a completion after RESET", e->index);
    sim_require(s, c->timestamp <= s->now, "end %d: a completion from the future", e->index);
    s->totals.done_at = s->closing ? s->totals.done_at : s->now;
    if (e->rogue) {
        check_rogue(e, c);
    } else if (c->is_recv) {
        check_recv(e, c);
    } else {
        check_send(e, c);
    }
}

/* --- events ------------------------------------------------------------------------------------ */

void check_event(struct host *h, const struct event *ev)
{
    struct sim *s = h->sim;
    struct end *e = ev->qp_owner;
    if (e && dgram_event(h, ev)) {
        return;
    }
    if (!e) {
        pool_event(pool_of(h, ev->srq_owner), ev->type);
        return;
    }
    sim_require(s, e >= s->end && e < s->end + s->sc.nends && e->host == h->index && e->qpn == ev->qpn && ev->type < 32,
                "host %d: event %u of a QP that it doesn't have", h->index, ev->type);
    const struct end *q = e->peer;
    uint8_t planted = q->plant >= 0 ? expected_event(&q->op[q->plant], s->sc.defer) : 0;
    e->events[ev->type]++;
    capture_note(s, "end %d: event %u", e->index, ev->type);
    if (e->rogue) {
        return;
    }
    sim_require(s, e->events[ev->type] == 1, "end %d: event %u comes again", e->index, ev->type);
    switch (ev->type) {
    case EVENT_COMM_EST:
        sim_require(s, e->rts_at > e->rtr_at, "end %d: COMM_EST, but it was never in RTR when packets came", e->index);
        break;
    case EVENT_QP_LAST_WQE_REACHED:
        sim_require(s, e->pool && qp_state(e->qp) == QPS_ERR, "end %d: LAST_WQE_REACHED", e->index);
        break;
    case EVENT_SQ_DRAINED:
        sim_require(s, e->sqd_pending, "end %d: SQ_DRAINED unasked", e->index);
        e->sqd_pending = false;
        break;
    default:
        sim_require(s, planted == ev->type, "end %d: event %u, which nothing explains", e->index, ev->type);
        break;
    }
}

/* --- state after each step --------------------------------------------------------------------- */

static void check_psns(struct end *e, const struct qp_info *i)
{
    struct sim *s = e->sim;
    uint32_t una = psn_rel(e, i->una_psn), next = psn_rel(e, i->next_psn), max = psn_rel(e, i->max_psn);
    sim_require(s, una <= next && next <= max, "end %d: PSNs out of order: unacknowledged %u, next %u, new %u",
                e->index, una, next, max);
    sim_require(s, max == e->rel_new || e->rogue, "end %d: PSN %u is next, but %u was not sent", e->index, max,
                e->rel_new);
    uint32_t window = s->host[e->host].cfg.window_pkts;
    sim_require(s, max - una <= window, "end %d: %u packets unacknowledged, window %u", e->index, max - una, window);
    sim_require(s, i->reads_outstanding <= e->attr.max_rd_atomic, "end %d: %u READs and atomics outstanding", e->index,
                i->reads_outstanding);
    if (una != e->una) {
        e->una = una;
        e->una_changed = s->now;
    }
}

static bool is_blocked(const struct host *h)
{
    return h->poll_pending;
}

static void check_timer(struct end *e, const struct qp_info *i)
{
    struct sim *s = e->sim;
    struct host *h = &s->host[e->host];
    if (i->state != QPS_RTS || i->sq_posted == 0 || e->attr.timeout == 0 || is_blocked(h)) {
        return;
    }
    bool gone_back = i->next_psn == i->una_psn; /* nothing is in flight */
    sim_require(s, i->una_psn == i->max_psn || i->deadline != NEVER || gone_back,
                "end %d: PSN %u is outstanding, and no timer runs", e->index, i->una_psn);
    bool waits = s->net.inflight > 0 || h->ninbox > 0;
    sim_require(s, waits || engine_deadline(h->e) != NEVER, "end %d: work is outstanding, and nothing will happen",
                e->index);
}

void check_step(struct sim *s)
{
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        struct qp_info i;
        if (!e->qp || e->closed) {
            continue;
        }
        qp_info(e->qp, &i);
        sim_require(s, i.qpn == e->qpn, "end %d: qp_info of QP %u", e->index, i.qpn);
        if (i.state == QPS_RTS || i.state == QPS_SQD) {
            check_psns(e, &i);
            e->rnr_waits |= i.waiting_rnr;
            check_timer(e, &i);
        }
    }
    pools_check_step(s);
}

/* --- at the end -------------------------------------------------------------------------------- */

static void check_plant(struct end *e)
{
    struct sim *s = e->sim;
    const struct op *o = &e->op[e->plant];
    const struct expectation *x = &expectations[o->plant];
    sim_require(s, o->status == x->status, "end %d: request %d has status %u, not %u (fault %u)", e->index, e->plant,
                o->status, x->status, o->plant);
    uint8_t event = expected_event(o, s->sc.defer);
    sim_require(s, event == 0 || e->peer->events[event] == 1, "end %d: no event %u", e->peer->index, event);
    if (x->recv_status != WC_SUCCESS && o->recv >= 0) {
        const struct rcv *v = &e->peer->rcv[o->recv];
        sim_require(s, v->done && v->status == x->recv_status, "end %d: receive %d has status %u, not %u",
                    e->peer->index, o->recv, v->status, x->recv_status);
    }
    for (int i = 0; i < e->plant; i++) {
        sim_require(s, e->op[i].retired && e->op[i].status == WC_SUCCESS,
                    "end %d: request %d before the wrong one has status %u", e->index, i, e->op[i].status);
    }
}

void check_end(struct sim *s)
{
    dgram_check_end(s);
    for (int k = 0; k < s->sc.nends; k++) {
        struct end *e = &s->end[k];
        sim_require(s, user_idle(e), "end %d: all is quiet, but %d of %d requests and %d of %d receives are done",
                    e->index, e->sdone, e->nops, e->rdone, e->nrcv);
        if (e->rogue) {
            continue;
        }
        sim_require(s, !e->leaves || e->left || e->failed || e->peer->failed, "end %d: is done, and does not leave",
                    e->index);
        if (e->plant >= 0 && s->sc.lossless) {
            check_plant(e);
        }
        for (int i = 0; i < e->nops; i++) {
            const struct op *o = &e->op[i];
            bool ok = o->retired && o->status == WC_SUCCESS;
            const struct rcv *v = o->recv >= 0 ? &recv_end(e, o)->rcv[o->recv] : NULL;
            sim_require(s, !ok || !op_takes_recv(o->opcode) || (v && v->done && v->status == WC_SUCCESS),
                        "end %d: request %d has succeeded, but its receive %d has not", e->index, i, o->recv);
            sim_require(s, !ok || o->rregion != REG_CELLS || o->executed, "end %d: atomic %d was never carried out",
                        e->index, i);
            sim_require(s, e->plant < 0 || i < e->plant || expect_late(e) || !o->executed,
                        "end %d: atomic %d was carried out after a failure", e->index, i);
        }
        sim_require(s, !e->sqd_pending || e->failed || e->closed, "end %d: no SQ_DRAINED", e->index);
        bool last = e->pool && !e->closed && qp_state(e->qp) == QPS_ERR;
        sim_require(s, !last || e->events[EVENT_QP_LAST_WQE_REACHED] == 1, "end %d: no LAST_WQE_REACHED", e->index);
    }
}
