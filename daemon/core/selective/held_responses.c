// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/selective/held_responses.h"

#include "daemon/core/path/peer_sacks.h"
#include "daemon/core/selective/scoreboard.h"
#include "wire/pumice/sack.h"

bool held_allowed(const struct qp *qp, uint64_t now)
{
    return peer_takes_sacks(&qp->e->flows, qp->peer, &qp->attr.av, qp->e->rx_like_pumice, now);
}

/* Adds the responses [s->end, to) to the gaps of the list. Other packets there have arrived. False: the list is full, and
 * s->end is where it ends. */
static bool list_gaps(const struct requester *r, struct sack *s, struct send_place *at, uint32_t to)
{
    while (psn_diff(to, s->end) > 0 && send_place_seek(r, at, s->end)) {
        const struct send_wqe *w = req_wqe(r, at->index);
        uint32_t end = wqe_end_psn(w);
        if (psn_diff(end, to) > 0)
            end = to;
        if (wqe_is_answered(w)) {
            if (s->gaps == SACK_GAPS_MOST)
                return false;
            s->gap[s->gaps++] = (struct sack_gap){.start = s->end, .end = end};
        }
        s->end = end;
    }
    s->end = to;
    return true;
}

bool held_missing(const struct requester *r, struct sack *s)
{
    struct send_place at = {.index = r->una};
    bool whole = true;
    *s = (struct sack){.expected = r->una_psn, .end = r->una_psn, .newest = r->executed};
    for (const struct list_node *l = r->held.packets.next; l != &r->held.packets && whole; l = l->next) {
        const struct held_packet *h = list_entry(l, struct held_packet, link);
        if (psn_diff(h->p.psn, r->executed) >= 0)
            break; /* it came before the QP went back */
        whole = list_gaps(r, s, &at, h->p.psn);
        if (whole)
            s->end = h->end;
    }
    if (whole)
        list_gaps(r, s, &at, r->executed);
    return s->gaps > 0;
}

static void note_executed(struct requester *r, uint32_t executed)
{
    if (!r->behind || psn_diff(executed, r->executed) > 0)
        r->executed = executed;
    r->behind = true;
}

/* Keeps a packet. If there is no room, the newest one of those that are kept makes room for an older one. */
static enum reorder_result keep(struct qp *qp, const struct pkt *p)
{
    struct reorder_queue *q = &qp->req->held;
    struct reorder_pool *pool = &qp->e->reorder;
    enum reorder_result result = reorder_hold(pool, q, p, 1, qp->req->una_psn);
    if (result == REORDER_NO_ROOM && reorder_newest_makes_room(pool, q) &&
        psn_diff(reorder_newest(q)->p.psn, p->psn) > 0) {
        reorder_discard_newest(pool, q);
        result = reorder_hold(pool, q, p, 1, qp->req->una_psn);
    }
    if (result == REORDER_NO_ROOM)
        COUNT(qp, reorder_no_room);
    return result;
}

/* A newer ACK of the same packets has other credits. */
static void replace_ack(const struct reorder_queue *q, const struct pkt *p)
{
    for (struct list_node *l = q->packets.next; l != &q->packets; l = l->next) {
        struct held_packet *h = list_entry(l, struct held_packet, link);
        if (h->p.psn == p->psn)
            h->p.aeth = p->aeth;
    }
}

/* If there is no room, only the credits of the ACK are lost. */
void held_ack(struct qp *qp, const struct pkt *p)
{
    struct requester *r = qp->req;
    if (r->credits.state != CREDITS_UNLIMITED &&
        reorder_hold(&qp->e->reorder, &r->held, p, 1, r->una_psn) == REORDER_TWICE)
        replace_ack(&r->held, p);
    note_executed(r, psn_add(p->psn, 1));
}

enum hold_result held_response(struct qp *qp, const struct pkt *p, uint64_t cost, uint64_t now)
{
    struct requester *r = qp->req;
    enum reorder_result result = held_allowed(qp, now) ? keep(qp, p) : REORDER_NO_ROOM;
    if (result == REORDER_NO_ROOM)
        return HOLD_REFUSED;
    if (result == REORDER_TWICE) {
        held_came_twice(qp, p->psn, now);
    } else {
        COUNT(qp, reordered_responses);
        r->held_cost += cost;
        r->timer_at = now; /* the path answers */
    }
    bool late = r->behind && psn_diff(p->psn, r->executed) < 0;
    note_executed(r, psn_add(p->psn, 1));
    bool ends = op_table[p->opcode].properties & (OP_IS_LAST | OP_IS_ONLY);
    return late || ends || result == REORDER_GAP ? HOLD_NEWS : HOLD_QUIET;
}

const struct pkt *held_next(struct qp *qp)
{
    struct requester *r = qp->req;
    while (r->held.count) {
        const struct pkt *p = &reorder_first(&r->held)->p;
        int32_t ahead = psn_diff(p->psn, r->una_psn);
        if (ahead > 0)
            return NULL;
        reorder_drop_first(&qp->e->reorder, &r->held);
        if (ahead == 0)
            return p;
    }
    return NULL;
}

void held_came_twice(struct qp *qp, uint32_t psn, uint64_t now)
{
    struct requester *r = qp->req;
    if (psn_diff(r->una_psn, r->asked_end) >= 0)
        r->asked = 0;
    if (r->asked == 0 || psn_diff(psn, r->asked_start) < 0)
        return;
    r->asked--;
    COUNT(qp, selective_unneeded);
    congestion_unneeded(&qp->peer->congestion, 1, r->board.lost == 0, now);
    reordering_unneeded(&qp->peer->reordering, qp->peer->congestion.srtt, now);
}
