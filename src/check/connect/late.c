// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/late.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/check/base/finding.h"
#include "src/check/connect/peers.h"

/* NULL: unknown. */
static const struct peer *peer_of(struct qp_record *q)
{
    const struct connection *c = &q->connection;

    if (!q->other || !peers_is(q->other, &c->peer_gid, c->peer))
        q->other = peers_find(&c->peer_gid, c->peer);
    return q->other;
}

static void report(const struct qp_record *q, const struct request *r, const struct peer *p, uint64_t sent)
{
    uint64_t number = q->receives_posted, when = 0;
    unsigned retry = atomic_load(&p->rnr_retry);
    struct finding_place place = {.where = r->where, .whose = "the peer posted the message"};
    char late[64] = "", tries[64] = "it tries for ever, because its rnr_retry is 7";

    if (sent - number < PEER_MESSAGES) {
        when = atomic_load(&p->message[number % PEER_MESSAGES].when);
        place.other_id = atomic_load(&p->message[number % PEER_MESSAGES].where);
        place.other_pid = p->pid;
    }
    if (when)
        snprintf(late, sizeof(late), " %.3f ms", (double)(peers_now() - when) / 1e6);
    if (retry < 7)
        snprintf(tries, sizeof(tries), "it gives up after %u more tries (rnr_retry)", retry);
    finding_add(RULE_LATE_RECEIVE, &place,
                "QP 0x%x: the receive request with wr_id %" PRIu64 " is posted%s after the peer (QP 0x%x) posted the "
                "message for it: a message without a receive request makes the peer wait and try again (RNR); %s",
                q->qp->qp_num, r->wr_id, late, p->qpn, tries);
}

void late_check(struct qp_record *q, const struct request *r)
{
    const struct peer *p = q->own ? peer_of(q) : NULL;

    /* Messages of an RC connection take receive requests in order, and none is lost. */
    if (!p || q->qp->qp_type != IBV_QPT_RC)
        return;
    uint64_t sent = atomic_load_explicit(&p->sent, memory_order_acquire);
    if (sent > q->receives_posted)
        report(q, r, p, sent);
}
