// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/selective/held_responses.h"

#include "daemon/core/qp/qp.h"

uint32_t held_responses_gaps(const struct qp *qp, struct sack *s)
{
    const struct requester *r = qp->req;
    const struct reorder_queue *q = &r->held;
    *s = (struct sack){.expected = r->una_psn, .end = r->una_psn};
    for (const struct list_node *l = q->packets.next; l != &q->packets; l = l->next) {
        const struct held_packet *h = list_entry(l, struct held_packet, link);
        if (psn_diff(h->p.psn, s->end) > 0) {
            if (s->gaps == SACK_GAPS_MOST)
                break;
            s->gap[s->gaps++] = (struct sack_gap){.start = s->end, .end = h->p.psn};
        }
        s->end = h->end;
    }
    s->newest = list_entry(q->packets.prev, struct held_packet, link)->end;
    return s->gaps;
}

/* Appends a gap, or ends the description before it. */
static bool append(struct sack *s, uint32_t start, uint32_t end)
{
    if (s->gaps == SACK_GAPS_MOST) {
        s->end = start;
        return false;
    }
    s->gap[s->gaps++] = (struct sack_gap){.start = start, .end = end};
    return true;
}

bool held_responses_and_sack(const struct qp *qp, const struct sack *reported, struct sack *s, uint32_t *responses)
{
    *responses = held_responses_gaps(qp, s);
    if (psn_diff(reported->expected, s->end) < 0)
        return false;
    s->newest = reported->newest;
    for (uint32_t i = 0; i < reported->gaps; i++)
        if (!append(s, reported->gap[i].start, reported->gap[i].end))
            return true;
    s->end = reported->end;
    return true;
}

uint32_t held_responses_and_board(const struct qp *qp, struct sack *s)
{
    const struct scoreboard *b = &qp->req->board;
    uint32_t responses = held_responses_gaps(qp, s), end = s->end;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct missing_range *m = &b->range[i];
        if (m->responses || psn_diff(m->start, end) < 0)
            continue;
        if (!append(s, m->start, m->end))
            return responses;
        s->end = b->end;
    }
    return responses;
}
