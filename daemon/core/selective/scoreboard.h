// SPDX-License-Identifier: BSD-2-Clause
/* The scoreboard of a requester: what the responder has received beyond the first missing packet, as its last SACK says
 * (wire/pumice/sack.h), and before that which responses are missing (selective/held_responses.h).
 *
 * A gap that is reported for the first time looks lost. On a path that reorders packets it waits for the reordering
 * window (path/reordering.h), and counts as lost if it is not filled by then.
 *
 * Packets that have arrived leave the windows at once, so others can be sent while the missing ones are on their way. So do
 * those that are lost, until they are sent again. If a SACK shows that a packet has arrived which was sent later than a
 * retransmission, the retransmission was lost. If nothing is sent later, the tail probe takes its place. */
#ifndef PUMICE_DAEMON_CORE_SELECTIVE_SCOREBOARD_H
#define PUMICE_DAEMON_CORE_SELECTIVE_SCOREBOARD_H

#include "daemon/core/qp/qp.h"

/* A place in the send queue: the request that a PSN belongs to. Places are only moved forward. */
struct send_place {
    uint32_t index, psn;
};
/* Moves to the request of psn, which is not before the place. False: it belongs to no request that was sent. */
bool send_place_seek(const struct requester *r, struct send_place *at, uint32_t psn);

enum missing_kind {
    MISSING_REQUESTS, /* the responder has reported them */
    MISSING_RESPONSES, /* they belong to requests that have arrived */
};
static inline enum missing_kind missing_kind_of(const struct scoreboard *b, const struct missing_range *m)
{
    return psn_diff(m->end, b->executed) > 0 ? MISSING_REQUESTS : MISSING_RESPONSES;
}
/* Replaces what the scoreboard has of this kind by the list in s. Its expected PSN is not before una_psn. True: packets were
 * lost. If board.due is set, packets are to be sent again. */
bool scoreboard_update(struct qp *qp, const struct sack *s, enum missing_kind kind, uint64_t now);
/* The time board.wake_at has come: packets that looked lost, and might have been late, count as lost. */
void scoreboard_ripen(struct qp *qp, uint64_t now);
/* Has a packet arrived? The scoreboard is not empty. */
bool scoreboard_has(const struct scoreboard *b, uint32_t psn);
/* una_psn has moved over packets of this cost. Returns the cost of those that had not left the windows before. */
uint64_t scoreboard_progress(struct qp *qp, uint64_t cost, uint64_t now);
/* Moves the mark of a range: packets before psn were sent again, or can't be sent. They are in flight now. */
void scoreboard_sent(struct qp *qp, struct missing_range *m, uint32_t psn);
/* Forgets everything: what has arrived or is lost counts as in flight again. */
void scoreboard_forget(struct qp *qp);

#endif
