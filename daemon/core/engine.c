// SPDX-License-Identifier: BSD-2-Clause
/* The engine as a whole: its tables, who is ready to send, and the dispatch of packets and time to QPs. */
#include <errno.h>
#include <string.h>

#include "daemon/core/engine_priv.h"

void engine_config_defaults(struct engine_config *cfg)
{
    *cfg = (struct engine_config){
        .max_qp = 16384,
        .max_mr = 1u << 17,
        .max_srq = 16384,
        .max_mcast = 4096,
        .max_peers = 1024,
        .completion_slots = 4096,
        .event_slots = 1024,
        .window_pkts = 4096,
        .peer_window_bytes = 1u << 20,
        .cnp_interval_ns = 50000,
        .line_rate = 5000000000u,
        .flow_wait_ns = 2000000,
        .ack_delay_ns = 50000,
        .min_timeout_ns = 1000000,
        .probe_min_ns = 200000,
        .burst_bytes = 65536,
        .active_mtu = 5,
        .first_qpn = 17,
    };
}

static bool is_pow2(uint32_t n)
{
    return n && (n & (n - 1)) == 0;
}

static bool config_ok(const struct engine_config *c)
{
    return c->max_qp >= 1 && c->max_qp <= 1u << 20 && c->max_mr >= 1 && c->max_mr <= 1u << 22 &&
           c->max_srq <= 1u << 20 && c->max_peers >= 1 && c->max_mcast <= 1u << 20 && is_pow2(c->completion_slots) &&
           c->completion_slots >= 64 && is_pow2(c->event_slots) && c->window_pkts >= 1 && c->window_pkts <= 1u << 22 &&
           c->active_mtu >= 1 && c->active_mtu <= 5 && c->first_qpn >= 17 && c->first_qpn < QPN_MASK &&
           c->num_gids >= 1 && c->num_gids <= 8 && c->burst_bytes >= 4096 && c->peer_window_bytes >= 4096 &&
           c->line_rate >= 1000000;
}

/* Where the parts of the engine lie in its memory; each starts on a cache line. */
struct sections {
    size_t qps, srqs, keys, mcast, peers, timers, done, events, total;
};

static size_t place(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at = (here + bytes + 63) & ~(size_t)63;
    return here;
}

static void sections_of(const struct engine_config *c, struct sections *l)
{
    size_t at = 0;
    place(&at, sizeof(struct engine));
    l->qps = place(&at, (size_t)pow2_at_least(c->max_qp) * sizeof(struct qp *));
    l->srqs = place(&at, (size_t)pow2_at_least(c->max_srq) * sizeof(struct srq *));
    l->keys = place(&at, ((size_t)c->max_mr + 1) * sizeof(struct mkey));
    l->mcast = place(&at, (size_t)c->max_mcast * sizeof(struct mcast_member));
    l->peers = place(&at, (size_t)c->max_peers * sizeof(struct peer_window));
    l->timers = place(&at, sizeof(struct timer_wheel));
    l->done = place(&at, (size_t)c->completion_slots * sizeof(struct completion));
    l->events = place(&at, (size_t)c->event_slots * sizeof(struct event));
    l->total = at;
}

size_t engine_size(const struct engine_config *cfg)
{
    struct sections l;
    sections_of(cfg, &l);
    return l.total;
}

struct engine *engine_init(void *mem, const struct engine_config *cfg, const struct mem_ops *ops, void *ops_ctx)
{
    if (!config_ok(cfg))
        return NULL;
    struct sections l;
    sections_of(cfg, &l);
    uint8_t *base = mem;
    struct engine *e = mem;
    e->cfg = *cfg;
    e->ops = ops;
    e->ops_ctx = ops_ctx;
    e->qps = (struct qp **)(void *)(base + l.qps);
    e->qp_mask = pow2_at_least(cfg->max_qp) - 1;
    e->next_qpn = cfg->first_qpn;
    e->srqs = (struct srq **)(void *)(base + l.srqs);
    e->srq_mask = pow2_at_least(cfg->max_srq) - 1;
    e->next_srqn = 1;
    key_table_init(&e->keys, (struct mkey *)(void *)(base + l.keys), cfg->max_mr);
    mcast_init(&e->mcast, (struct mcast_member *)(void *)(base + l.mcast), cfg->max_mcast);
    peer_window_table_init(&e->peers, (struct peer_window *)(void *)(base + l.peers), cfg->max_peers);
    datagram_flow_table_init(&e->flows);
    e->timers = (struct timer_wheel *)(void *)(base + l.timers);
    timer_wheel_init(e->timers);
    list_init(&e->ready);
    list_init(&e->orphans);
    e->done = (struct completion *)(void *)(base + l.done);
    e->done_mask = cfg->completion_slots - 1;
    e->events = (struct event *)(void *)(base + l.events);
    e->event_mask = cfg->event_slots - 1;
    return e;
}

const struct engine_counters *engine_counters(const struct engine *e)
{
    return &e->counters;
}

/* --- QPs by number ------------------------------------------------------------------------------------------------------ */

struct qp *qp_find(struct engine *e, uint32_t qpn)
{
    struct qp *qp = e->qps[qpn & e->qp_mask];
    return qp && qp->qpn == qpn ? qp : NULL;
}

/* --- who is ready ------------------------------------------------------------------------------------------------------- */

void engine_ready(struct qp *qp)
{
    if (!list_empty(&qp->ready))
        return;
    list_append(&qp->e->ready, &qp->ready);
    qp->e->ready_count++;
}

static struct qp *take_ready(struct engine *e)
{
    struct qp *qp = list_entry(e->ready.next, struct qp, ready);
    list_remove(&qp->ready);
    e->ready_count--;
    return qp;
}

/* A QP whose turn came when the batch had no room left has the first one in the next batch. */
static void back_in_front(struct qp *qp)
{
    if (list_empty(&qp->ready)) {
        list_prepend(&qp->e->ready, &qp->ready);
        qp->e->ready_count++;
    }
}

uint32_t engine_turn_bytes(const struct engine *e, bool more)
{
    return !more && list_empty(&e->ready) ? UINT32_MAX : e->cfg.burst_bytes;
}

static bool joins_run(const struct tx_batch *b, uint32_t len)
{
    return b->n && len <= b->last.len && b->last.bytes + len <= b->row.bytes && b->last.pkts < b->row.pkts;
}

/* Would it begin a row that the end of the batch cuts short? Such a row costs the owner almost as much as a whole one. The last
 * packet that the batch takes may cut a row, as long as half of it goes in, or one of short packets, which is cheap for what it
 * is. */
static bool cuts_run(const struct tx_batch *b, uint32_t len)
{
    if (b->n == 0 || joins_run(b, len))
        return false;
    uint64_t whole = (uint64_t)b->row.pkts * len;
    if (whole <= b->row.bytes)
        return whole > b->cap - b->used;
    return b->row.bytes > b->cap - b->used || b->row.bytes / len / 2 > TX_BATCH_PKTS - b->n;
}

static void grow_run(struct tx_batch *b, uint32_t len)
{
    bool joins = joins_run(b, len);
    b->last.bytes = len + (joins ? b->last.bytes : 0);
    b->last.pkts = 1 + (joins ? b->last.pkts : 0);
    b->last.len = joins && len < b->last.len ? 0 : len;
}

void tx_take_back(struct tx_batch *b, uint32_t n, size_t used)
{
    b->n = n;
    b->used = used;
    b->last.len = 0;
}

struct tx_pkt *tx_append(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                         uint32_t payload_len, uint8_t **payload)
{
    uint32_t pad = pkt_pad(payload_len);
    uint32_t len = op_table[p->opcode].header_len + payload_len + pad + ICRC_LEN;
    if (b->n == TX_BATCH_PKTS || len > b->cap - b->used || cuts_run(b, len))
        return NULL;
    grow_run(b, len);
    uint8_t *at = b->buf + b->used;
    size_t header_len = pkt_encode(p, at);
    *payload = at + header_len;
    memset(*payload + payload_len, 0, pad);
    struct tx_pkt *t = &b->pkt[b->n++];
    *t = (struct tx_pkt){
        .av = av,
        .off = (uint32_t)b->used,
        .len = len,
        .src_qpn = src_qpn,
        .psn = p->psn,
        .header_len = (uint16_t)header_len,
    };
    b->used += len;
    return t;
}

struct tx_pkt *qp_append(struct qp *qp, struct tx_batch *b, const struct pkt *p, uint32_t payload_len,
                         uint8_t **payload)
{
    struct tx_pkt *t = tx_append(b, p, &qp->attr.av, qp->qpn, payload_len, payload);
    if (t) {
        COUNT(qp, sent_pkts);
        COUNT_N(qp, sent_bytes, payload_len);
    }
    return t;
}

/* One turn of one QP. NAKs and responses come before data, a burst of each in a turn, so that a peer that READs
 * without end does not keep this QP's own requests back. A plain ACK comes after it: nobody waits for it as for the
 * data. */
static enum tx_result turn(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    if (!ecn_tx(qp, b))
        return TX_FULL;
    enum tx_result r = resp_urgent(qp) ? resp_tx(qp, b, now) : TX_DONE;
    if (r != TX_FULL) {
        enum tx_result data = req_tx(qp, b, now);
        r = data > r ? data : r;
    }
    if (resp_has_work(qp) && !resp_urgent(qp)) {
        if (b->hold_acks && r == TX_DONE) {
            b->held = true;
            r = TX_MORE;
        } else if (resp_tx(qp, b, now) == TX_FULL) {
            r = TX_FULL;
        }
    }
    if (qp_service(qp, now) && r == TX_DONE)
        r = TX_MORE; /* completions wait for room */
    engine_timer(qp);
    return r;
}

uint32_t engine_tx(struct engine *e, struct tx_batch *b, uint64_t now)
{
    uint32_t start = b->n;
    bool progress = true;
    tm_flush_orphans(e, now);
    if ((e->time_wait.pending && !time_wait_tx(&e->time_wait, b)) || !datagram_flow_tx(e, b, now))
        return b->n - start;
    while (progress && !list_empty(&e->ready)) {
        progress = false;
        for (uint32_t i = e->ready_count; i > 0 && !list_empty(&e->ready); i--) {
            uint32_t before_pkts = b->n, before_done = e->done_tail;
            struct qp *qp = take_ready(e);
            enum tx_result r = turn(qp, b, now);
            if (r == TX_FULL && b->n == before_pkts)
                back_in_front(qp);
            else if (r != TX_DONE)
                engine_ready(qp);
            if (r == TX_FULL)
                return b->n - start;
            progress |= b->n != before_pkts || e->done_tail != before_done;
        }
    }
    datagram_flow_tx(e, b, now);
    return b->n - start;
}

/* --- packets in --------------------------------------------------------------------------------------------------------- */

/* QPs that can take packets. In SQE and SQD the responder works on. */
static bool may_receive(const struct qp *qp)
{
    return qp->attr.state >= QPS_RTR && qp->attr.state != QPS_ERR;
}

static bool is_own_address(const struct engine *e, const uint8_t gid[16])
{
    for (unsigned i = 0; i < e->cfg.num_gids; i++)
        if (memcmp(e->cfg.gids[i], gid, 16) == 0)
            return true;
    return false;
}

static bool is_cnp(uint8_t opcode)
{
    return (opcode & OP_SERVICE_MASK) == OP_SERVICE_CNP;
}

/* Is it of the QP's service, and for the half that it has? */
static bool has_opcode(const struct qp *qp, uint8_t opcode)
{
    bool response = op_table[opcode].properties & OP_IS_RESPONSE;
    if (is_cnp(opcode))
        return qp->type != QPT_UD;
    return (opcode & OP_SERVICE_MASK) == qp->service && qp->type != (response ? QPT_XRC_RECV : QPT_XRC_SEND);
}

/* Is the packet one that the QP takes at all? (9.6.1) */
static bool admissible(struct qp *qp, const struct pkt *p, const struct rx_meta *meta)
{
    enum drop_cause cause;
    COUNT(qp, rcvd_pkts);
    if (!has_opcode(qp, p->opcode)) {
        COUNT(qp, rx_bad_opcode);
        cause = DROP_OPCODE;
    } else if (!may_receive(qp)) {
        COUNT(qp, rx_bad_state);
        cause = DROP_STATE;
    } else if (!pkey_matches(p->pkey)) {
        COUNT(qp, rx_bad_pkey);
        cause = DROP_PKEY;
    } else if (qp->type != QPT_UD && memcmp(meta->src_gid, qp->attr.av.dgid, 16) != 0) {
        COUNT(qp, rx_bad_source);
        cause = DROP_SOURCE;
    } else {
        return true;
    }
    report_drop(qp->e, cause, p, meta->src_gid);
    return false;
}

/* One copy for each member (10.5.2.1), whose checks are its own; who sent it has it already. */
static void to_group(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct mcast_member *m = mcast_next(&e->mcast, meta->dst_gid, NULL);
    bool own = is_own_address(e, meta->src_gid);
    if (!m || (p->opcode & OP_SERVICE_MASK) != OP_SERVICE_UD) {
        e->counters.rx_unknown_qp++;
        report_drop(e, DROP_UNKNOWN_QP, p, meta->src_gid);
        return;
    }
    for (; m; m = mcast_next(&e->mcast, meta->dst_gid, m)) {
        if ((own && m->qp->qpn == p->deth.src_qpn) || !admissible(m->qp, p, meta))
            continue;
        ud_rx(m->qp, p, meta, now);
        qp_service(m->qp, now);
    }
}

void engine_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    if (p->dest_qpn == QPN_MULTICAST) {
        to_group(e, p, meta, now);
        return;
    }
    if (p->dest_qpn == PROBE_QPN) {
        datagram_flow_rx(e, p, meta, now);
        return;
    }
    struct qp *qp = qp_find(e, p->dest_qpn);
    if (!qp) {
        if (time_wait_rx(&e->time_wait, p, meta)) {
            e->counters.rx_time_wait++;
            return;
        }
        e->counters.rx_unknown_qp++;
        report_drop(e, DROP_UNKNOWN_QP, p, meta->src_gid);
        return;
    }
    if (!admissible(qp, p, meta))
        return;
    if (meta->ce && qp->type != QPT_UD && !is_cnp(p->opcode))
        ecn_marked(qp, now);
    if (is_cnp(p->opcode))
        ecn_cnp(qp, now);
    else if (qp->type == QPT_UD)
        ud_rx(qp, p, meta, now);
    else if (qp->type == QPT_UC)
        uc_rx(qp, p, now);
    else if (op_table[p->opcode].properties & OP_IS_RESPONSE)
        req_rx(qp, p, now);
    else
        resp_rx(qp, p, now);
    qp_service(qp, now);
    engine_timer(qp);
}

void engine_mem_fault(struct engine *e, uint32_t qpn, uint64_t now)
{
    struct qp *qp = qp_find(e, qpn);
    if (!qp || !may_receive(qp))
        return;
    COUNT(qp, mem_faults);
    bool told = false;
    for (uint32_t i = e->done_head; i != e->done_tail; i++) {
        struct completion *c = &e->done[i & e->done_mask];
        bool wrote = c->is_recv || c->opcode == WC_RDMA_READ || c->opcode == WC_COMP_SWAP || c->opcode == WC_FETCH_ADD;
        if (c->qpn == qpn && (c->status == WC_SUCCESS || c->status == WC_TM_RNDV_INCOMPLETE) && wrote &&
            tm_fault(qp, c, now)) {
            c->status = WC_LOC_PROT_ERR;
            c->solicited = told = true;
        }
    }
    told = told || resp_recv_fault(qp, now);
    report_error(qp, ERROR_MEMORY, told ? WC_LOC_PROT_ERR : 0, 0);
    if (!qp_is_reliable(qp)) {
        uc_mem_fault(qp, told);
        return;
    }
    if (!told && qp->req.una != qp->req.unsent && req_is_read(req_wqe(qp, qp->req.una))) {
        req_fail(qp, WC_LOC_PROT_ERR, 0);
        told = true;
    }
    if (!told)
        event_add(qp, EVENT_QP_ACCESS_ERR);
    if (qp->type == QPT_XRC_SEND) { /* it was the result of its own request: the peer has done nothing wrong */
        qp_fail(qp);
        return;
    }
    /* The ACK for what was written has not gone out yet, since packets follow deferred writes: the NAK takes its
     * place, for all that it would have acknowledged, because nobody knows which of the writes has failed. Responses
     * would acknowledge it, too. */
    resp_drop(qp);
    resp_fatal(qp, NAK_REMOTE_OPERATION, qp->resp.acked_psn, NULL);
}

/* --- time --------------------------------------------------------------------------------------------------------------- */

static uint64_t qp_deadline(const struct qp *qp)
{
    uint64_t d = req_deadline(qp);
    if (qp->resp.ack_deadline && qp->resp.ack_deadline < d)
        d = qp->resp.ack_deadline;
    if (ecn_deadline(qp) < d)
        d = ecn_deadline(qp);
    return d;
}

/* Deadlines mostly move away (each ACK does it): then the guest stays, and finds out when it is woken. */
void engine_timer(struct qp *qp)
{
    uint64_t d = qp_deadline(qp);
    if (d < qp->timer.when)
        timer_wheel_set(qp->e->timers, &qp->timer, d);
}

uint64_t engine_deadline(const struct engine *e)
{
    return timer_wheel_earliest(e->timers);
}

void engine_expire(struct engine *e, uint64_t now)
{
    struct timer *g;
    while ((g = timer_wheel_pop(e->timers, now)) != NULL) {
        if (g->kind == TIMER_PEER) {
            datagram_flow_expire(e, list_entry(g, struct peer_window, flow.timer), now);
            continue;
        }
        struct qp *qp = list_entry(g, struct qp, timer);
        if (qp_deadline(qp) <= now) {
            if (qp->resp.ack_deadline && qp->resp.ack_deadline <= now) {
                qp->resp.ack_deadline = 0;
                qp->resp.ack_pending = true;
                engine_ready(qp);
            }
            ecn_expire(qp, now);
            req_expire(qp, now);
        }
        engine_timer(qp);
    }
}
