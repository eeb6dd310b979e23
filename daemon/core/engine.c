// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/engine.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/ack_order.h"
#include "daemon/core/complete.h"
#include "daemon/core/control/exit_check.h"
#include "daemon/core/control/qp_timer.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/retry.h"
#include "daemon/core/requester/send.h"
#include "daemon/core/responder/reply.h"
#include "daemon/core/responder/uc.h"
#include "daemon/core/urgent.h"
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

/* Cost of a turn for the scheduler, in bytes: as PACKET_COST. */
#define TURN_COST 512u

/* --- QPs by number ---------------------------------------------------------------------------- */

struct qp *qp_find(struct engine *e, uint32_t qpn)
{
    return qp_table_find(&e->qps, qpn);
}

/* --- sending ---------------------------------------------------------------------------------- */

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
    if (qp_complete(qp, now) && r == TX_DONE)
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

/* --- settings and memory ---------------------------------------------------------------------- */

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

void engine_mem_fault(struct engine *e, uint32_t qpn, uint64_t now)
{
    struct qp *qp = qp_find(e, qpn);
    if (!qp || !qp->awake || !qp_may_receive(qp))
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
