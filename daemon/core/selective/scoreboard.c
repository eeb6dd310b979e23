// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/selective/scoreboard.h"

#include "daemon/core/base/min.h"
#include "wire/pumice/sack.h"

/* --- costs ------------------------------------------------------------------------------------ */

bool send_place_seek(const struct requester *r, struct send_place *at, uint32_t psn)
{
    for (; at->index != r->unsent; at->index++) {
        const struct send_wqe *w = req_wqe(r, at->index);
        if (w->npkts && wqe_offset(w, psn) < w->npkts)
            break;
    }
    at->psn = psn;
    return at->index != r->unsent;
}

/* The cost of packets [from, to). arrived: without requests with a response, because their cost is that of the response,
 * which is still to come. */
static uint64_t span_cost(const struct qp *qp, struct send_place *at, uint32_t from, uint32_t to, bool arrived)
{
    const struct requester *r = qp->req;
    uint64_t cost = 0;
    if (psn_diff(r->una_psn, from) > 0)
        from = r->una_psn;
    while (psn_diff(to, from) > 0 && send_place_seek(r, at, from)) {
        const struct send_wqe *w = req_wqe(r, at->index);
        uint32_t off = wqe_offset(w, from), n = min32(w->npkts - off, (uint32_t)psn_diff(to, from));
        if (!arrived || !wqe_is_answered(w))
            cost += req_cost(qp, w, off, off + n);
        from = psn_add(from, n);
    }
    return cost;
}

/* Counts anew the costs of the packets of the scoreboard that are not in flight. */
static void sum_up(struct qp *qp)
{
    struct requester *r = qp->req;
    struct scoreboard *b = &r->board;
    struct send_place at = {.index = r->una};
    b->arrived = b->lost = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct missing_range *m = &b->range[i];
        uint32_t next = i + 1 < b->count ? b->range[i + 1].start : b->end;
        if (m->due)
            b->lost += span_cost(qp, &at, m->next, m->end, false);
        b->arrived += span_cost(qp, &at, m->end, next, true);
    }
}

static uint64_t not_in_flight(const struct scoreboard *b)
{
    return b->arrived + b->lost;
}

/* `before` bytes of the scoreboard were not in flight before it changed. */
static void recount(struct qp *qp, uint64_t before)
{
    sum_up(qp);
    uint64_t after = not_in_flight(&qp->req->board);
    if (after < before)
        qp_charge(qp, before - after);
    else
        qp_release(qp, after - before);
}

/* --- the scoreboard --------------------------------------------------------------------------- */

void scoreboard_forget(struct qp *qp)
{
    struct scoreboard *b = &qp->req->board;
    if (b->count == 0)
        return;
    qp_charge(qp, not_in_flight(b));
    scoreboard_clear(b);
}

/* When will the next range that looks lost count as lost? */
static void set_wake(struct qp *qp)
{
    struct scoreboard *b = &qp->req->board;
    uint64_t window = reordering_window(&qp->peer->reordering, qp->peer->congestion.srtt);
    b->wake_at = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct missing_range *m = &b->range[i];
        if (m->suspected && !m->due && (b->wake_at == 0 || m->since + window < b->wake_at))
            b->wake_at = m->since + window;
    }
}

/* Packets of the range before psn have arrived. If none of them was sent again, they were late. */
static void note_arrived(struct qp *qp, const struct missing_range *m, uint32_t psn, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    uint32_t end = psn_diff(psn, m->end) < 0 ? psn : m->end;
    if (psn_diff(end, m->start) <= 0)
        return;
    uint32_t order = m->order + (uint32_t)psn_diff(end, m->start);
    if (m->repeated && (int32_t)(order - b->order_arrived) > 0)
        b->order_arrived = order;
    if (m->suspected && !m->repeated && m->next == m->start)
        reordering_late(&qp->peer->reordering, now - m->since);
}

uint64_t scoreboard_progress(struct qp *qp, uint64_t cost, uint64_t now)
{
    struct requester *r = qp->req;
    struct scoreboard *b = &r->board;
    uint64_t before = not_in_flight(b);
    uint32_t gone = 0;
    while (gone < b->count && psn_diff(r->una_psn, b->range[gone].end) >= 0)
        note_arrived(qp, &b->range[gone++], r->una_psn, now);
    if (psn_diff(r->una_psn, b->end) >= 0) {
        scoreboard_clear(b);
        return cost - before;
    }
    if (gone == b->count) /* the last range stays, for what is behind it */
        b->range[--gone].suspected = false;
    for (uint32_t i = gone; gone && i < b->count; i++)
        b->range[i - gone] = b->range[i];
    b->count -= gone;
    sum_up(qp);
    set_wake(qp);
    return cost - (before - not_in_flight(b));
}

/* The report about a range that the scoreboard has already: a part of it, as a rule. NULL: the range is new. */
static const struct missing_range *known_range(const struct scoreboard *b, const struct sack_gap *g)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (psn_diff(g->start, b->range[i].end) < 0 && psn_diff(g->end, b->range[i].start) > 0)
            return &b->range[i];
    return NULL;
}

/* Notes which packets of a range have arrived by now. */
static void compare(struct qp *qp, const struct missing_range *m, const struct sack *s, uint64_t now)
{
    uint32_t psn = psn_diff(s->end, m->end) < 0 ? s->end : m->end;
    for (uint32_t i = 0; i < s->gaps; i++)
        if (psn_diff(psn, s->gap[i].start) > 0 && psn_diff(psn, s->gap[i].end) <= 0)
            psn = s->gap[i].start;
    note_arrived(qp, m, psn, now);
}

/* Was the range sent again, and has a packet arrived that was sent later than all of it? */
static bool was_lost_again(const struct scoreboard *b, const struct missing_range *m, const struct sack *s)
{
    uint32_t order = m->order + (uint32_t)psn_diff(m->end, m->start);
    return psn_diff(s->newest, m->mark) > 0 || (int32_t)(b->order_arrived - order) > 0;
}

/* Has the answer to a tail probe come? The newest packet was sent again after all others, and has arrived. So the others
 * are lost. */
static bool probe_answered(struct requester *r, const struct sack *s)
{
    if (r->probes == 0 || s->newest != r->sent_psn || r->board.probed_at == r->fired_at)
        return false;
    r->board.probed_at = r->fired_at;
    return true;
}

/* Takes over what is known of a gap from the range that it was a part of. */
static void inherit(struct missing_range *m, const struct missing_range *known)
{
    uint32_t start = m->start, end = m->end;
    *m = *known;
    m->start = start;
    m->end = end;
    m->order += (uint32_t)psn_diff(start, known->start);
    m->next = start;
    if (known->due && psn_diff(known->next, start) > 0)
        m->next = psn_diff(known->next, end) < 0 ? known->next : start;
}

/* Does a range that looks lost count as lost now? at_once: it does not wait for the reordering window. */
static bool is_due(const struct qp *qp, const struct missing_range *m, bool at_once, uint64_t now)
{
    uint64_t window = reordering_window(&qp->peer->reordering, qp->peer->congestion.srtt);
    return m->due || (m->suspected && (at_once || now - m->since >= window));
}

/* Replaces the scoreboard by that of the report. True: packets were lost. Those for which the responder had no room were
 * not, but have to be sent again, too. */
static bool replace(struct qp *qp, const struct sack *s, uint64_t now)
{
    struct requester *r = qp->req;
    struct scoreboard *b = &r->board;
    struct missing_range range[SACK_GAPS_MOST];
    bool full = s->gap[s->gaps - 1].end == s->end, all = probe_answered(r, s), due = false, lost = false;
    if (full)
        reordering_no_room(&qp->peer->reordering, qp->peer->congestion.srtt, now);
    for (uint32_t i = 0; i < b->count; i++)
        compare(qp, &b->range[i], s, now);
    for (uint32_t i = 0; i < s->gaps; i++) {
        const struct missing_range *known = known_range(b, &s->gap[i]);
        struct missing_range *m = &range[i];
        bool dropped = full && i + 1 == s->gaps;
        *m = (struct missing_range){.start = s->gap[i].start, .end = s->gap[i].end, .next = s->gap[i].start};
        if (known)
            inherit(m, known);
        if (!m->suspected && (all || !m->repeated || was_lost_again(b, m, s))) {
            m->suspected = true;
            m->since = now;
        }
        m->due = is_due(qp, m, all, now);
        due |= m->due;
        lost |= m->due && !dropped;
    }
    for (uint32_t i = 0; i < s->gaps; i++)
        b->range[i] = range[i];
    b->count = s->gaps;
    b->end = s->end;
    b->due = due;
    return lost;
}

bool scoreboard_update(struct qp *qp, const struct sack *s, uint64_t now)
{
    uint64_t before = not_in_flight(&qp->req->board);
    bool lost = replace(qp, s, now);
    recount(qp, before);
    set_wake(qp);
    return lost;
}

void scoreboard_ripen(struct qp *qp, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    uint64_t before = not_in_flight(b);
    for (uint32_t i = 0; i < b->count; i++) {
        struct missing_range *m = &b->range[i];
        m->due = is_due(qp, m, false, now);
        b->due |= m->due;
    }
    recount(qp, before);
    set_wake(qp);
}

void scoreboard_sent(struct qp *qp, struct missing_range *m, uint32_t psn)
{
    uint64_t before = not_in_flight(&qp->req->board);
    m->next = psn;
    recount(qp, before);
}

bool scoreboard_has(const struct scoreboard *b, uint32_t psn)
{
    if (psn_diff(psn, b->range[0].start) < 0 || psn_diff(psn, b->end) >= 0)
        return false;
    for (uint32_t i = 0; i < b->count; i++)
        if (psn_diff(psn, b->range[i].start) >= 0 && psn_diff(psn, b->range[i].end) < 0)
            return false;
    return true;
}
