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

/* The cost of packets [from, to). arrived: the cost of a request with a response is that of the response, so it does not
 * count as long as the response is still to come. */
static uint64_t span_cost(const struct qp *qp, struct send_place *at, uint32_t from, uint32_t to, bool arrived)
{
    const struct requester *r = qp->req;
    uint64_t cost = 0;
    if (psn_diff(r->una_psn, from) > 0)
        from = r->una_psn;
    while (psn_diff(to, from) > 0 && send_place_seek(r, at, from)) {
        const struct send_wqe *w = req_wqe(r, at->index);
        uint32_t off = wqe_offset(w, from), n = min32(w->npkts - off, (uint32_t)psn_diff(to, from)), counts = n;
        if (arrived && wqe_is_answered(w)) {
            int32_t executed = psn_diff(r->board.executed, from);
            counts = executed > 0 ? min32(n, (uint32_t)executed) : 0;
        }
        if (counts)
            cost += req_cost(qp, w, off, off + counts);
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
    if (psn_diff(r->una_psn, b->executed) > 0)
        b->executed = r->una_psn; /* so that it does not become so old that it seems to be ahead */
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

/* Takes over what is known of a gap from the range that it was a part of. The requester may have sent a part of the range again:
 * that part of the gap is not sent once more. */
static void inherit(struct missing_range *m, const struct missing_range *known)
{
    uint32_t start = m->start, end = m->end;
    *m = *known;
    m->start = start;
    m->end = end;
    m->order += (uint32_t)psn_diff(start, known->start);
    m->next = start;
    if (known->due && psn_diff(known->next, start) > 0)
        m->next = psn_diff(known->next, end) < 0 ? known->next : end;
}

/* Does a range that looks lost count as lost now? at_once: it does not wait for the reordering window. */
static bool is_due(const struct qp *qp, const struct missing_range *m, bool at_once, uint64_t now)
{
    uint64_t window = reordering_window(&qp->peer->reordering, qp->peer->congestion.srtt);
    return m->due || (m->suspected && (at_once || now - m->since >= window));
}

/* Is the range of the kind that the list is about? Requests before the end of a list of responses have arrived meanwhile. */
static bool is_of_kind(const struct scoreboard *b, const struct missing_range *m, const struct sack *s,
                       enum missing_kind kind)
{
    return missing_kind_of(b, m) == kind || (kind == MISSING_RESPONSES && psn_diff(m->start, s->end) < 0);
}

/* Returns what is known of a gap. A gap in responses can grow, because the requester drops responses without room. The new part
 * was not asked for again yet. all: a gap that looks lost is lost. */
static struct missing_range judge(const struct qp *qp, const struct sack *s, const struct sack_gap *g,
                                  enum missing_kind kind, bool all, uint64_t now)
{
    const struct scoreboard *b = &qp->req->board;
    const struct missing_range *known = known_range(b, g);
    struct missing_range m = {.start = g->start, .end = g->end, .next = g->start};
    bool grown = known && kind == MISSING_RESPONSES && psn_diff(g->start, known->start) < 0;
    if (known && !grown)
        inherit(&m, known);
    if (known && kind == MISSING_RESPONSES && psn_diff(g->end, known->end) > 0)
        m.repeated = false;
    if (!m.suspected && (all || !m.repeated || was_lost_again(b, &m, s))) {
        m.suspected = true;
        m.since = now;
    }
    m.due = is_due(qp, &m, all, now);
    return m;
}

/* The new ranges of the scoreboard, in the order of their PSNs. Ranges that do not fit are left out. Then `end` is the PSN of the
 * first one of them. */
struct new_ranges {
    struct missing_range range[SACK_GAPS_MOST];
    uint32_t count;
    uint32_t end; /* PSN: the scoreboard knows nothing of packets behind it */
};

static bool add_range(struct new_ranges *to, const struct missing_range *m)
{
    if (to->count == SACK_GAPS_MOST) {
        to->end = m->start;
        return false;
    }
    to->range[to->count++] = *m;
    return true;
}

/* The end of the request that PSN psn is in the middle of, or psn. The request has arrived if a part of its response has. */
static uint32_t request_end(const struct requester *r, uint32_t psn)
{
    struct send_place at = {.index = r->una};
    if (!send_place_seek(r, &at, psn) || !wqe_is_read(req_wqe(r, at.index)))
        return psn;
    const struct send_wqe *w = req_wqe(r, at.index);
    uint32_t off = wqe_offset(w, psn), in = (off - w->chunk_base) % w->chunk;
    return in ? psn_add(psn, min32(w->chunk - in, w->npkts - off)) : psn;
}

/* Adds the ranges that the list is not about, and the rest of a range of requests whose beginning has arrived meanwhile. */
static void add_others(const struct requester *r, const struct sack *s, enum missing_kind kind, struct new_ranges *to)
{
    const struct scoreboard *b = &r->board;
    for (uint32_t i = 0; i < b->count; i++) {
        struct missing_range m = b->range[i];
        if (psn_diff(m.end, r->una_psn) <= 0)
            continue;
        bool rest = kind == MISSING_RESPONSES && psn_diff(m.start, s->end) < 0 && psn_diff(m.end, s->end) > 0;
        if (rest) {
            m.start = request_end(r, s->end);
            if (psn_diff(m.end, m.start) <= 0)
                continue;
            inherit(&m, &b->range[i]);
        }
        if ((rest || !is_of_kind(b, &m, s, kind)) && !add_range(to, &m))
            return;
    }
}

/* Adds the gaps of the list. True: packets were lost that did not count as lost before. Those for which the responder had no
 * room were not lost, but have to be sent again, too: they are the last gap of a SACK, if nothing has arrived behind it. */
static bool add_gaps(struct qp *qp, const struct sack *s, enum missing_kind kind, uint64_t now, struct new_ranges *to)
{
    bool full = kind == MISSING_REQUESTS && s->gap[s->gaps - 1].end == s->end, lost = false;
    bool all = probe_answered(qp->req, s);
    if (full)
        reordering_no_room(&qp->peer->reordering, qp->peer->congestion.srtt, now);
    for (uint32_t i = 0; i < s->gaps; i++) {
        const struct missing_range *known = known_range(&qp->req->board, &s->gap[i]);
        struct missing_range m = judge(qp, s, &s->gap[i], kind, all, now);
        if (!add_range(to, &m))
            break;
        lost |= m.due && !(known && known->due) && !(full && i + 1 == s->gaps);
    }
    return lost;
}

/* Replaces the scoreboard's ranges of one kind by those of the list. True: packets were lost. */
static bool replace(struct qp *qp, const struct sack *s, enum missing_kind kind, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    struct new_ranges to = {.count = 0, .end = s->end};
    for (uint32_t i = 0; i < b->count; i++)
        if (is_of_kind(b, &b->range[i], s, kind))
            compare(qp, &b->range[i], s, now);
    if (kind == MISSING_REQUESTS)
        add_others(qp->req, s, kind, &to);
    bool lost = add_gaps(qp, s, kind, now, &to);
    if (kind == MISSING_RESPONSES) {
        if (s->end == s->newest) { /* else responses behind its end may be missing */
            if (b->count && psn_diff(b->end, to.end) > 0)
                to.end = b->end;
            add_others(qp->req, s, kind, &to);
        }
        b->executed = s->end;
    }
    b->due = false;
    for (uint32_t i = 0; i < to.count; i++) {
        b->range[i] = to.range[i];
        b->due |= to.range[i].due;
    }
    b->count = to.count;
    b->end = to.end;
    return lost;
}

bool scoreboard_update(struct qp *qp, const struct sack *s, enum missing_kind kind, uint64_t now)
{
    struct scoreboard *b = &qp->req->board;
    uint64_t before = not_in_flight(b);
    if (b->count == 0)
        b->executed = qp->req->una_psn;
    bool lost = replace(qp, s, kind, now);
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
