// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/engine.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/ack_order.h"
#include "daemon/core/control/exit_check.h"
#include "daemon/core/control/qp_timer.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/requester/ack.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/rendezvous.h"
#include "daemon/core/requester/retire.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/send.h"
#include "daemon/core/responder/receive.h"
#include "daemon/core/responder/reply.h"
#include "daemon/core/responder/uc.h"
#include "daemon/core/responder/ud.h"
#include "daemon/core/urgent.h"
#include "wire/pumice/sack.h"
#include "wire/syndrome.h"

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
        .read_copy_bytes = 2u << 20,
        .reorder_bytes = 4u << 20,
        .first_window_bytes = 69632,
        .path_silence_ns = 4000000,
        .burst_bytes = 65536,
        .max_resends = 16,
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
           c->num_gids >= 1 && c->num_gids <= ENGINE_MAX_GIDS && c->burst_bytes >= 4096 &&
           c->peer_window_bytes >= 4096 && c->line_rate >= 1000000 && c->first_window_bytes >= 4096;
}

/* Offsets of the engine's parts in its memory. Each part starts on a cache line. */
struct sections {
    size_t qps, srqs, keys, mcast, peers, timers, gsi, done, events, copies, reorder, total;
};

static size_t reserve(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at = (here + bytes + 63) & ~(size_t)63;
    return here;
}

static void sections_of(const struct engine_config *c, struct sections *l)
{
    size_t at = 0;
    reserve(&at, sizeof(struct engine));
    l->qps = reserve(&at, qp_table_bytes(c->max_qp));
    l->srqs = reserve(&at, (size_t)pow2_at_least(c->max_srq) * sizeof(struct srq *));
    l->keys = reserve(&at, ((size_t)c->max_mr + 1) * sizeof(struct mkey));
    l->mcast = reserve(&at, (size_t)c->max_mcast * sizeof(struct mcast_member));
    l->peers = reserve(&at, (size_t)c->max_peers * sizeof(struct peer_window));
    l->timers = reserve(&at, sizeof(struct timer_wheel));
    l->gsi = reserve(&at, gsi_size());
    l->done = reserve(&at, (size_t)c->completion_slots * sizeof(struct completion));
    l->events = reserve(&at, (size_t)c->event_slots * sizeof(struct event));
    l->copies = reserve(&at, c->read_copy_bytes);
    l->reorder = reserve(&at, c->selective && !c->reorder_mem ? c->reorder_bytes : 0);
    l->total = at;
}

size_t engine_size(const struct engine_config *cfg)
{
    struct sections l;
    sections_of(cfg, &l);
    return l.total;
}

struct engine *engine_init(void *mem, const struct engine_config *cfg, const struct mem_ops *mem_ops, void *mem_ctx,
                           const struct owner_ops *owner_ops, void *owner_ctx)
{
    if (!config_ok(cfg))
        return NULL;
    struct sections l;
    sections_of(cfg, &l);
    uint8_t *base = mem;
    struct engine *e = mem;
    e->cfg = *cfg;
    e->mem = (struct mem_access){.ops = mem_ops, .ctx = mem_ctx};
    e->owner = (struct owner_calls){.ops = owner_ops, .ctx = owner_ctx};
    qp_table_init(&e->qps, base + l.qps, cfg->max_qp);
    e->next_qpn = cfg->first_qpn;
    e->srqs = (struct srq **)(void *)(base + l.srqs);
    e->srq_mask = pow2_at_least(cfg->max_srq) - 1;
    e->next_srqn = 1;
    key_table_init(&e->keys, (struct mkey *)(void *)(base + l.keys), cfg->max_mr, &cfg->number_secret);
    mcast_init(&e->mcast, (struct mcast_member *)(void *)(base + l.mcast), cfg->max_mcast);
    peer_window_table_init(&e->peers, &e->cfg, (struct peer_window *)(void *)(base + l.peers), cfg->max_peers);
    e->timers = (struct timer_wheel *)(void *)(base + l.timers);
    timer_wheel_init(e->timers);
    datagram_flow_table_init(&e->flows, &e->cfg, e->timers, &e->peers, &e->counters);
    gsi_init(&e->gsi, &e->cfg, &e->counters, base + l.gsi);
    scheduler_init(&e->scheduler);
    list_init(&e->urgent);
    list_init(&e->detached);
    list_init(&e->changed_cntrs);
    e->done = (struct completion *)(void *)(base + l.done);
    e->done_mask = cfg->completion_slots - 1;
    e->events = (struct event *)(void *)(base + l.events);
    e->event_mask = cfg->event_slots - 1;
    e->copies = (struct read_copies){.bytes = base + l.copies, .size = cfg->read_copy_bytes};
    uint32_t payload = 128u << cfg->active_mtu;
    uint32_t slots = cfg->selective ? (uint32_t)(cfg->reorder_bytes / reorder_slot_size(payload)) : 0;
    reorder_pool_init(&e->reorder, cfg->reorder_mem ? cfg->reorder_mem : base + l.reorder, slots, payload);
    return e;
}

void engine_share_init(struct engine *e, struct sched_share *share)
{
    sched_share_init(share, &e->scheduler);
}

const struct engine_counters *engine_counters(const struct engine *e)
{
    return &e->counters;
}

/* Costs for the scheduler, in bytes: a packet takes as long as a copy of so many bytes. A turn takes time, too. */
#define PACKET_COST 2048u
#define TURN_COST 512u

/* --- QPs by number ---------------------------------------------------------------------------- */

struct qp *qp_find(struct engine *e, uint32_t qpn)
{
    return qp_table_find(&e->qps, qpn);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Retires acknowledged requests and flushes those of a failed QP as far as the completion queue has room. True:
 * something is left. */
static bool complete(struct qp *qp, uint64_t now)
{
    bool left = req_retire(qp, now);
    if (left)
        return true;
    if (qp->tm && qp->attr.state != QPS_ERR && !rndv_start(qp, now))
        return true;
    if (req_is_flushing(qp->req))
        left = req_flush(qp, now);
    if (qp->attr.state != QPS_ERR)
        return left;
    left |= qp->tm && tm_flush(qp, now);
    return resp_flush(qp, now) || left;
}

/* One turn of one QP. NAKs and responses come before data. A turn has at most one burst of each. So a peer that READs
 * without end does not keep this QP's own requests back. */
static enum tx_result qp_turn(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    if (!urgent_cnp(qp, b))
        return TX_FULL;
    bool ack_waits = resp_has_work(qp->resp) && ack_order_may_wait(qp, b);
    uint32_t n = b->n;
    enum tx_result r = resp_has_work(qp->resp) && !ack_waits ? resp_tx(qp, b, now) : TX_DONE;
    if (r != TX_FULL) {
        enum tx_result data = req_tx(qp, b, now);
        r = data > r ? data : r;
    }
    if (ack_waits && resp_has_work(qp->resp)) { /* not if the QP has failed meanwhile */
        if (b->hold_acks && b->n == n && r == TX_DONE) {
            b->held = true;
            r = TX_MORE;
        } else if (resp_tx(qp, b, now) == TX_FULL) {
            r = TX_FULL;
        }
    }
    if (complete(qp, now) && r == TX_DONE)
        r = TX_MORE; /* completions wait for room */
    qp_set_timer(qp);
    return r;
}

static uint32_t turn_cost(uint32_t packets, size_t bytes)
{
    return (uint32_t)bytes + packets * PACKET_COST + TURN_COST;
}

uint32_t engine_tx(struct engine *e, struct tx_batch *b, uint64_t now)
{
    uint32_t start = b->n;
    struct sched_entity *next;
    reorder_reuse(&e->reorder);
    tm_flush_detached(e, now);
    if ((e->time_wait.pending && !time_wait_tx(&e->time_wait, b)) || !datagram_flow_tx(&e->flows, b, now) ||
        !gsi_tx(&e->gsi, b) || (e->backlog && !urgent_tx(e, b, now)))
        return b->n - start;
    e->backlog = false;
    scheduler_new_round(&e->scheduler);
    while ((next = scheduler_next(&e->scheduler)) != NULL) {
        uint32_t before_pkts = b->n, before_done = e->done_tail;
        size_t before_bytes = b->used;
        struct qp *qp = list_entry(next, struct qp, sched);
        enum tx_result r = qp_turn(qp, b, now);
        bool progress = b->n != before_pkts || e->done_tail != before_done;
        bool no_room = r == TX_FULL && b->n == before_pkts;
        sched_end_turn(&qp->sched, no_room ? 0 : turn_cost(b->n - before_pkts, b->used - before_bytes), progress);
        /* A QP for which the batch had no room has the first turn in the next batch. */
        if (no_room)
            sched_make_ready_first(&qp->sched);
        else if (r != TX_DONE)
            qp_schedule(qp);
        EXIT_CHECK_TURN(qp);
        if (r == TX_FULL) {
            e->backlog = true;
            return b->n - start;
        }
    }
    datagram_flow_tx(&e->flows, b, now);
    ENGINE_CHECK(e);
    return b->n - start;
}

/* --- packets in ------------------------------------------------------------------------------- */

/* May the QP take packets? In SQE and SQD the responder goes on. */
static bool may_receive(const struct qp *qp)
{
    return qp->attr.state >= QPS_RTR && qp->attr.state != QPS_ERR;
}

void engine_set_gid(struct engine *e, uint8_t index, const uint8_t gid[16])
{
    assert(index < e->cfg.num_gids);
    memcpy(e->cfg.gids[index], gid, sizeof(e->cfg.gids[index]));
}

void engine_set_timing(struct engine *e, uint64_t ack_delay_ns, uint64_t min_timeout_ns)
{
    e->cfg.ack_delay_ns = ack_delay_ns;
    e->cfg.min_timeout_ns = min_timeout_ns;
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

/* Is the opcode one of the QP's service, and for the half that the QP has? */
static bool has_opcode(const struct qp *qp, uint8_t opcode)
{
    bool response = op_table[opcode].properties & OP_IS_RESPONSE;
    if (is_cnp(opcode))
        return qp->type != QPT_UD;
    return (opcode & OP_SERVICE_MASK) == qp->service && qp->type != (response ? QPT_XRC_RECV : QPT_XRC_SEND);
}

/* May packets of this QP of the device go to the QP? All QPs of a device have one address, so it does not tell. */
static bool is_peer(const struct qp *qp, uint32_t src_qpn)
{
    return qp->type == QPT_UD || src_qpn == qp->attr.dest_qpn;
}

/* May the QP take the packet at all (IBA 9.6.1)? */
static bool admissible(struct qp *qp, const struct pkt *p, const struct rx_meta *meta)
{
    enum drop_cause cause;
    qp_wake(qp);
    COUNT(qp, rcvd_pkts);
    if (!has_opcode(qp, p->opcode)) {
        COUNT(qp, rx_bad_opcode);
        cause = DROP_OPCODE;
    } else if (!may_receive(qp)) {
        if (resp_rx_closed(qp, p, meta)) {
            qp->e->counters.rx_time_wait++;
            return false;
        }
        COUNT(qp, rx_bad_state);
        cause = DROP_STATE;
    } else if (!pkey_matches(p->pkey)) {
        COUNT(qp, rx_bad_pkey);
        cause = DROP_PKEY;
    } else if (qp->type != QPT_UD && memcmp(meta->src_gid, qp->attr.av.dgid, 16) != 0) {
        COUNT(qp, rx_bad_source);
        cause = DROP_SOURCE;
    } else if (qp->type != QPT_UD && memcmp(meta->dst_gid, qp->e->cfg.gids[qp->attr.av.sgid_index], 16) != 0) {
        COUNT(qp, rx_bad_destination);
        cause = DROP_DESTINATION;
    } else if (meta->src_qpn && !is_peer(qp, meta->src_qpn)) {
        COUNT(qp, rx_bad_source_qp);
        cause = DROP_SOURCE_QP;
    } else {
        return true;
    }
    report_drop(qp->e, cause, p, meta);
    return false;
}

/* The packet is for no QP here. */
static void drop_unknown(struct engine *e, const struct pkt *p, const struct rx_meta *meta)
{
    e->counters.rx_unknown_qp++;
    report_drop(e, DROP_UNKNOWN_QP, p, meta);
}

/* Packets for QP 1. */
static void to_gsi(struct engine *e, const struct pkt *p, const struct rx_meta *meta)
{
    enum drop_cause cause;
    if (gsi_rx(&e->gsi, p, meta, &cause))
        return;
    e->counters.rx_unknown_qp += cause == DROP_UNKNOWN_QP;
    e->counters.rx_bad_pkey += cause == DROP_PKEY;
    e->counters.rx_bad_qkey += cause == DROP_QKEY;
    report_drop(e, cause, p, meta);
}

/* Each member gets its own copy and makes its own checks (IBA 10.5.2.1). The sender gets no copy. */
static void to_group(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct mcast_member *m = mcast_next(&e->mcast, meta->dst_gid, NULL);
    bool own = is_own_address(e, meta->src_gid);
    if (!m || (p->opcode & OP_SERVICE_MASK) != OP_SERVICE_UD) {
        drop_unknown(e, p, meta);
        return;
    }
    for (; m; m = mcast_next(&e->mcast, meta->dst_gid, m)) {
        if ((own && m->qp->qpn == p->deth.src_qpn) || !admissible(m->qp, p, meta))
            continue;
        ud_rx(m->qp, p, meta, now);
        complete(m->qp, now);
        EXIT_CHECK_QP(m->qp);
    }
}

static void marked(struct qp *qp, uint64_t now)
{
    COUNT(qp, np_ecn_marked_roce_packets);
    if (!dcqcn_marked(qp->dcqcn, &qp->e->cfg, now))
        return;
    urgent_add(qp);
    qp_schedule(qp);
}

/* The CNP for a QP's last packets comes this long after them at most, maybe after their ACK. It is more than a round
 * trip in a network that marks packets. */
#define CNP_LATE_NS 10000000u

/* May packets of the QP have met congestion? A CNP has no PSN, so anybody who can forge the peer's address can send
 * one. It must not slow a QP that has nothing under way. */
static bool awaits_cnp(const struct qp *qp, uint64_t now)
{
    const struct requester *r = qp->req;
    uint64_t last = r->progress_at > qp->resp->data_at ? r->progress_at : qp->resp->data_at;
    return r->una_psn != r->sent_psn || (last && now - last <= CNP_LATE_NS);
}

static void cnp_received(struct qp *qp, uint64_t now)
{
    if (!awaits_cnp(qp, now)) {
        COUNT(qp, rx_idle_cnp);
        return;
    }
    COUNT(qp, rp_cnp_handled);
    dcqcn_cnp(qp->dcqcn, &qp->e->cfg, qp->peer ? qp->peer->congestion.rtt_min : 0, now);
}

void engine_withhold_recv(struct engine *e, bool on)
{
    e->recv_withheld = on;
}

/* Packets for PROBE_QPN that are no probes. */
static void to_requester(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct sack s;
    struct qp *qp = e->cfg.selective && datagram_flow_is_own(p) && sack_decode(p->payload, p->payload_len, &s)
                        ? qp_find(e, s.requester)
                        : NULL;
    if (!qp || !qp->awake || !req_rx_sack(qp, &s, meta, now)) {
        drop_unknown(e, p, meta);
        return;
    }
    complete(qp, now);
    qp_set_timer(qp);
    EXIT_CHECK_QP(qp);
}

void engine_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    if (p->dest_qpn == QPN_MULTICAST) {
        to_group(e, p, meta, now);
        return;
    }
    if (p->dest_qpn == PROBE_QPN) {
        if (!datagram_flow_rx(&e->flows, p, meta, now))
            to_requester(e, p, meta, now);
        return;
    }
    if (p->dest_qpn == MAD_QPN) {
        to_gsi(e, p, meta);
        return;
    }
    struct qp *qp = qp_find(e, p->dest_qpn);
    if (!qp) {
        if (time_wait_rx(&e->time_wait, p, meta))
            e->counters.rx_time_wait++;
        else
            drop_unknown(e, p, meta);
        return;
    }
    if (!admissible(qp, p, meta))
        return;
    sched_charge_received(&qp->sched, p->payload_len + PACKET_COST);
    e->rx_like_pumice = meta->like_pumice;
    if (meta->ce && qp->type != QPT_UD && !is_cnp(p->opcode))
        marked(qp, now);
    if (is_cnp(p->opcode))
        cnp_received(qp, now);
    else if (qp->type == QPT_UD)
        ud_rx(qp, p, meta, now);
    else if (qp->type == QPT_UC)
        uc_rx(qp, p, now);
    else if (op_table[p->opcode].properties & OP_IS_RESPONSE)
        req_rx(qp, p, now);
    else
        resp_rx(qp, p, now);
    if (qp->resp->ack_due)
        urgent_add(qp);
    complete(qp, now);
    qp_set_timer(qp);
    EXIT_CHECK_QP(qp);
}

void engine_mem_fault(struct engine *e, uint32_t qpn, uint64_t now)
{
    struct qp *qp = qp_find(e, qpn);
    if (!qp || !qp->awake || !may_receive(qp))
        return;
    COUNT(qp, mem_faults);
    bool reported = false;
    for (uint32_t i = e->done_head; i != e->done_tail; i++) {
        struct completion *c = &e->done[i & e->done_mask];
        bool wrote = c->is_recv || c->opcode == WC_RDMA_READ || c->opcode == WC_COMP_SWAP || c->opcode == WC_FETCH_ADD;
        if (c->qpn == qpn && (c->status == WC_SUCCESS || c->status == WC_TM_RNDV_INCOMPLETE) && wrote &&
            tm_fault(qp, c, now)) {
            comp_cntr_undo(qp, c);
            c->status = WC_LOC_PROT_ERR;
            c->solicited = reported = true;
        }
    }
    reported = reported || resp_recv_fault(qp, now);
    report_error(qp, ERROR_MEMORY, reported ? WC_LOC_PROT_ERR : 0, 0);
    if (!qp_is_reliable(qp)) {
        uc_mem_fault(qp, reported);
        return;
    }
    if (!reported && qp->req->una != qp->req->unsent && wqe_is_read(req_wqe(qp->req, qp->req->una))) {
        req_fail(qp, WC_LOC_PROT_ERR, 0);
        reported = true;
    }
    if (!reported)
        event_add(qp, EVENT_QP_ACCESS_ERR);
    /* The QP could not store the result of its own request, and its peer waits for no answer. A NAK would be for a packet
     * that the peer has not sent. An initiator of XRC has no responder. */
    if (qp->type == QPT_XRC_SEND || qp->resp->acked_psn == qp->resp->epsn) {
        qp_fail(qp);
        return;
    }
    /* The ACK for the written packets has not gone out yet, because packets follow deferred writes. A NAK replaces it,
     * from the first packet that it would have acknowledged, because the engine does not know which write failed.
     * Responses would acknowledge the packets, too, so they are dropped. */
    resp_drop_responses(qp);
    qp_fail_with_nak(qp, NAK_REMOTE_OPERATION, qp->resp->acked_psn, NULL);
}

void engine_mem_unmapped(struct engine *e, uint32_t qpn, uint32_t n)
{
    struct qp *qp = qp_find(e, qpn);
    if (qp && qp->awake)
        COUNT_N(qp, mem_unmapped, n);
}

/* --- time ------------------------------------------------------------------------------------- */

uint64_t engine_deadline(const struct engine *e)
{
    return timer_wheel_earliest(e->timers);
}

void engine_expire(struct engine *e, uint64_t now)
{
    struct timer *t;
    while ((t = timer_wheel_pop(e->timers, now)) != NULL) {
        if (t->kind == TIMER_PATH) {
            sched_wake_all(&list_entry(t, struct peer_window, congestion.timer)->waiting);
            continue;
        }
        if (t->kind == TIMER_PEER) {
            datagram_flow_expire(&e->flows, list_entry(t, struct peer_window, flow.timer), now);
            continue;
        }
        struct qp *qp = list_entry(t, struct qp, timer);
        if (qp_deadline(qp) <= now) {
            if (qp->resp->ack_deadline && qp->resp->ack_deadline <= now) {
                qp->resp->ack_deadline = 0;
                qp->resp->ack_pending = true;
                resp_ack_is_due(qp->resp, now);
                urgent_add(qp);
                qp_schedule(qp);
            }
            if (dcqcn_expire(qp->dcqcn, now))
                qp_schedule(qp);
            req_expire(qp, now);
        }
        qp_set_timer(qp);
        EXIT_CHECK_QP(qp);
    }
}

/* --- connectivity checks ---------------------------------------------------------------------- */

int engine_check(struct engine *e, const struct av *av, uint32_t size, uint32_t sequence, uint64_t token)
{
    return datagram_flow_check(&e->flows, av, size, sequence, token);
}

bool engine_pop_check(struct engine *e, struct check *c)
{
    return datagram_flow_pop_check(&e->flows, c);
}

bool engine_has_peer(const struct engine *e, const uint8_t gid[16])
{
    const struct peer_window *p = peer_window_lookup(&e->peers, gid);
    return p && (p->users || p->inflight);
}

/* --- QP 1 ------------------------------------------------------------------------------------- */

int engine_send_mad(struct engine *e, const struct av *av, const uint8_t mad[MAD_LEN])
{
    return gsi_send(&e->gsi, av, mad);
}

bool engine_pop_mad(struct engine *e, struct gsi_mad *out)
{
    return gsi_pop(&e->gsi, out);
}
