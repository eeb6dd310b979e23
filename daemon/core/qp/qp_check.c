// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/qp_check.h"

#include <assert.h>

#include "daemon/core/qp/qp.h"

#define WALK_MAX 64u /* requests whose cost is summed up; more would take too long at each call */
#define TABLES_MAX 64u /* slots of the tables of QPs and SRQs; larger tables are not checked */

/* How far a PSN is ahead of una_psn. */
static uint32_t ahead(const struct requester *r, uint32_t psn)
{
    return (psn - r->una_psn) & PSN_MASK;
}

static void check_queue(const struct requester *r)
{
    uint32_t una = r->una - r->sq.head, cur = r->cur - r->sq.head;
    uint32_t unsent = r->unsent - r->sq.head, tail = r->sq.tail - r->sq.head;
    assert(una <= cur);
    assert(cur <= unsent);
    assert(unsent <= tail);
    assert(tail <= r->sq.depth);
}

static uint64_t packet_cost(const struct qp *qp, const struct send_wqe *w, uint32_t from, uint32_t to)
{
    uint64_t cost = 0;
    for (; from < to; from++) {
        uint64_t start = (uint64_t)from * qp->mtu;
        uint64_t left = w->length > start ? w->length - start : 0;
        cost += (left < qp->mtu ? left : qp->mtu) + PACKET_OVERHEAD;
    }
    return cost;
}

/* The cost of the packets [una_psn, next_psn) is the count of the bytes in flight, without those that are known to have
 * arrived or to be lost. */
static void check_inflight(const struct qp *qp)
{
    const struct requester *r = qp->req;
    uint64_t cost = 0;
    uint32_t at = r->una_psn;
    if (r->unsent - r->una > WALK_MAX || ahead(r, r->next_psn) > 4 * WALK_MAX)
        return;
    for (uint32_t i = r->una; i != r->unsent && at != r->next_psn; i++) {
        const struct send_wqe *w = req_wqe(r, i);
        if (w->npkts == 0)
            continue;
        uint32_t from = wqe_offset(w, at), to = wqe_offset(w, r->next_psn);
        assert(from < w->npkts);
        to = to < w->npkts ? to : w->npkts;
        cost += packet_cost(qp, w, from, to);
        at = psn_add(w->first_psn, to);
    }
    assert(at == r->next_psn);
    assert(cost == r->inflight + r->board.arrived + r->board.lost);
    assert(r->inflight <= cost && r->board.arrived <= cost && r->board.lost <= cost);
}

static void check_credits(const struct requester *r)
{
    assert(r->rd_count <= ENGINE_MAX_RD_ATOMIC);
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->rd_count; i++) {
        const struct rd_credit *c = &r->rd[(r->rd_head + i) % ENGINE_MAX_RD_ATOMIC];
        assert(ahead(r, c->end) > at); /* the first one may have begun before una_psn */
        at = ahead(r, c->end);
        assert(at <= ahead(r, r->next_psn));
    }
}

/* The held packets are in order, and the QP still waits for a packet with PSN `at` before the first of them. */
static void check_held(const struct qp *qp, const struct reorder_queue *q, uint32_t at, enum qp_state least)
{
    uint32_t n = 0;
    for (const struct list_node *l = q->packets.next; l != &q->packets; l = l->next) {
        const struct held_packet *h = list_entry(l, struct held_packet, link);
        assert(n++ ? psn_diff(h->p.psn, at) >= 0 : psn_diff(h->p.psn, at) > 0);
        at = h->end;
    }
    assert(n == q->count);
    assert(n == 0 || (qp->attr.state >= least && qp->attr.state != QPS_ERR));
}

static void check_requester(const struct qp *qp)
{
    const struct requester *r = qp->req;
    check_queue(r);
    if ((qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD) || req_is_flushing(r))
        return;
    assert(ahead(r, r->next_psn) <= ahead(r, r->sent_psn));
    assert(ahead(r, r->sent_psn) <= ahead(r, r->unsent_psn) || r->unsent_psn == r->una_psn);
    if (!qp_is_reliable(qp)) {
        assert(r->una_psn == r->next_psn && r->inflight == 0);
        return;
    }
    check_inflight(qp);
    assert(r->board.count == 0 || ahead(r, r->board.end) <= ahead(r, r->next_psn));
    for (uint32_t i = 0; i < r->board.count; i++)
        assert(psn_diff(r->board.range[i].end, r->board.end) <= 0);
    assert(r->board.count || (r->board.arrived == 0 && r->board.lost == 0 && !r->board.due));
    check_credits(r);
    check_held(qp, &r->held, r->una_psn, QPS_RTS);
    assert(r->behind || r->held.count == 0);
    assert(!r->behind || psn_diff(r->executed, r->sent_psn) <= 0);
    assert(qp->peer);
    assert(qp->peer->congestion.cwnd > 0 && qp->peer->congestion.cwnd <= qp->e->cfg.peer_window_bytes);
}

static void check_offload(const struct requester *r)
{
    uint32_t queued = 0, reads = 0;
    for (uint32_t i = r->sq.head; i != r->sq.tail; i++) {
        queued += req_wqe(r, i)->offload != OFFLOAD_NONE;
        reads += req_wqe(r, i)->offload == OFFLOAD_READ;
    }
    assert(queued == r->offload_queued);
    assert(reads == r->offload_reads);
}

static void check_responder(const struct qp *qp)
{
    const struct responder *r = qp->resp;
    uint32_t pending = 0, again = 0, unread = 0;
    if (r->res_tail) { /* else its memory was never touched */
        for (unsigned i = 0; i <= r->res_mask; i++) {
            pending += r->res[i].pending;
            again += r->res[i].pending && r->res[i].again;
            unread += resource_is_unread(&r->res[i]);
            assert(r->res[i].pending || !r->res[i].copied);
        }
    }
    if (r->res_pending)
        assert(resp_resource(r, r->res_first)->pending && r->res_tail - r->res_first <= r->res_mask + 1);
    assert(pending == r->res_pending);
    assert(again == r->res_again);
    assert(unread == r->res_unread);
    assert(queue_used(&r->rq) <= r->rq.depth);
    check_held(qp, &r->held, r->epsn, QPS_RTR);
    if (!qp_has_rq(qp))
        assert(list_empty(&qp->taker) == (queue_used(&r->rq) == 0));
    assert(r->message == 0 || r->message == OP_IS_SEND || r->message == OP_IS_WRITE);
}

/* The QP has had no traffic, so it is on no list. */
static void check_asleep(const struct qp *qp)
{
    assert(list_empty(&qp->sched.ready) && list_empty(&qp->sched.waiting) && list_empty(&qp->urgent));
    assert(list_empty(&qp->taker));
    assert(qp->timer.when == NEVER);
    assert(qp->attr.state <= QPS_RTS && !qp->tm);
}

void qp_check(const struct qp *qp)
{
    if (!qp->awake) {
        check_asleep(qp);
        return;
    }
    check_requester(qp);
    if (qp->tm)
        check_offload(qp->req);
    check_responder(qp);
    if (qp->attr.state == QPS_ERR)
        assert(qp->req->inflight == 0 || qp->type == QPT_UD);
    if (qp->attr.state == QPS_ERR || qp->attr.state < QPS_RTS)
        assert(!sched_is_waiting(&qp->sched));
}

static void check_ready_list(const struct scheduler *s)
{
    uint32_t n = 0;
    uint64_t cost = 0;
    for (const struct list_node *l = s->shares.next; l != &s->shares; l = l->next) {
        const struct sched_share *share = list_entry(l, struct sched_share, link);
        assert(!list_empty(&share->ready));
        assert(cost <= share->cost);
        cost = share->cost;
        for (const struct list_node *m = share->ready.next; m != &share->ready; m = m->next)
            n++;
    }
    assert(n == s->count);
}

/* The bytes in flight to a destination are those of its connected QPs, and those of datagrams that are not released
 * yet. */
static void check_peer(const struct engine *e, const struct peer_window *p)
{
    uint64_t bytes = p->flow.charged - p->flow.released;
    uint32_t users = 0;
    for (uint32_t i = 0; i < e->qps.size; i++) {
        const struct qp *qp = e->qps.slot[i].qp;
        if (!qp || qp->peer != p || qp->type == QPT_UD)
            continue;
        bytes += qp->awake ? qp->req->inflight : 0;
        users++;
    }
    assert(bytes == p->inflight);
    assert(users == p->users);
}

static void check_srq(const struct srq *srq)
{
    uint32_t n = 0;
    for (const struct list_node *l = srq->takers.next; l != &srq->takers; l = l->next)
        n++;
    assert(n == srq->taken);
    assert(queue_used(&srq->rq) + srq->taken <= srq->rq.depth);
}

void engine_check_tables(const struct engine *e)
{
    uint32_t n = 0;
    if (e->qps.size > TABLES_MAX || e->srq_mask >= TABLES_MAX)
        return;
    for (uint32_t i = 0; i < e->qps.size; i++) {
        const struct qp *qp = e->qps.slot[i].qp;
        n += qp != NULL;
        assert(!qp || qp_table_index(&e->qps, qp->qpn) == i);
    }
    assert(n == e->qps.count);
    check_ready_list(&e->scheduler);
    for (uint32_t i = 0; i < e->peers.untouched; i++)
        check_peer(e, &e->peers.peers[i]);
    for (uint32_t i = 0; i <= e->srq_mask; i++)
        if (e->srqs[i])
            check_srq(e->srqs[i]);
}
