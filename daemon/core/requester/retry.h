// SPDX-License-Identifier: BSD-2-Clause
/* Retransmission, and the requester's timers. The timers are all derived from its state:
 *
 *   RNR wait     rnr_until                                The responder asked for it. Nothing is sent before.
 *   timeout      progress_at + 4.096 us * 2^timeout       No answer came for that long. Costs one of retry_cnt retries.
 *   credit       credits.wait_until                       Nothing is in flight. See requester/credits.h.
 *   reordering   board.wake_at                            A packet that may be late counts as lost.
 *   tail probe   timer_at + a few round trips, doubling   The last packets or their ACK may be lost. Costs no retry.
 *
 * The probe finds losses that no NAK reports. It comes long before the QP's timeout, which is often seconds long. The
 * wait for it starts with the first packet in flight, and again with each progress, so a path that is slow but moves
 * gets no probes. Each probe doubles the next wait. It stays doubled until a new round trip is known (RFC 6298). But packets
 * that were sent again show none (Karn's rule), and after an outage there may be thousands of them. So an answer that comes
 * soon after a timer has fired ends it, too.
 *
 * While nothing of the QP is in flight, because it has gone back and waits for its turn, no timer runs. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_RETRY_H
#define PUMICE_DAEMON_CORE_REQUESTER_RETRY_H

#include "daemon/core/qp/qp.h"

/* So many answers that come after the QP has gone back are taken for answers to the first transmission … */
#define TRUSTED_MOST 1u
#define TRUSTED_MOST_UNKNOWN 4u /* … and so many while no round trip is known. */

/* Goes back: the next packet to send is psn, which was sent before. */
void req_rewind(struct qp *qp, uint32_t psn);
/* Packets from psn on were lost: sends them again, and reduces the window unless the cause is RNR. */
void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now);
/* The responder's NAK says that the oldest unacknowledged packet was lost. */
void req_lost_by_nak(struct qp *qp, uint64_t now);
/* A response is missing. The responses after it are still coming in. */
void req_lost_response(struct qp *qp, uint64_t now);
/* Packets before psn, which were sent before, are not sent again by going back: undoes a part of a req_rewind. They count as
 * in flight. A READ request is skipped as a whole. */
void req_skip(struct qp *qp, uint32_t psn);
/* An answer came after the QP had gone back. Is it for the first transmission? It is if it came sooner than a repeated
 * packet can be answered. While no round trip is known, nothing shows it. On a slow path it is, and each timer that fires
 * doubles the wait, so timers soon fire no more. If they still fire, the packets were lost. So they were if a timer fires
 * again before another answer comes: a single packet may be answered faster than any packet of a full window. */
static inline bool retry_was_in_vain(struct requester *r, uint64_t rtt, uint64_t now)
{
    if (rtt && now - r->fired_at >= rtt)
        return false;
    return r->trusted < (rtt ? TRUSTED_MOST : TRUSTED_MOST_UNKNOWN) && ++r->trusted;
}
/* una_psn has moved: all retries are left again. beyond: the answer is for packets that the QP has not sent again since
 * it went back. That shows nothing if the responder keeps packets behind a gap. True: the QP went back because no answer
 * came in time, but its packets were not lost. */
static inline bool retry_progress(struct qp *qp, bool beyond, uint64_t now)
{
    struct requester *r = qp->req;
    bool unanswered = req_is_unanswered(r);
    bool in_vain = unanswered && ((beyond && !r->sacked) || retry_was_in_vain(r, qp->peer->congestion.rtt_min, now));
    if (in_vain)
        congestion_undo(&qp->peer->congestion);
    else if (unanswered)
        congestion_confirm(&qp->peer->congestion);
    r->retries_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
    r->probes = 0;
    r->probe_due = false;
    if (r->una_psn == r->sent_psn || (!unanswered && qp->peer->congestion.rtt_min))
        r->trusted = 0;
    r->progress_at = r->timer_at = now;
    if (r->backoff == 0)
        return in_vain;
    if (qp->peer->congestion.sampled_at > r->fired_at)
        r->backoff = 0;
    if (!in_vain && now - r->fired_at < congestion_rto(&qp->peer->congestion))
        r->backoff = 0;
    return in_vain;
}

/* The first packet is about to be in flight, perhaps again. The time during which nothing was in flight does not count
 * for the QP's timeout. */
static inline void retry_begins(struct requester *r, uint64_t now)
{
    r->timer_at = now;
    if (r->una_psn == r->sent_psn)
        r->progress_at = now;
    else
        r->progress_at += now - (r->rewound_at > r->progress_at ? r->rewound_at : r->progress_at);
}

/* The next moment at which req_expire has something to do; NEVER: none. */
uint64_t req_deadline(const struct qp *qp);
/* Does the work of the requester's timers that are due: ends an RNR wait, or retransmits. */
void req_expire(struct qp *qp, uint64_t now);
/* The wait for the next tail probe, ns. For connected QPs. */
uint64_t req_probe_ns(const struct qp *qp);
/* The QP's timeout in effect, ns. attr.timeout must not be 0. */
uint64_t req_timeout_ns(const struct qp *qp);

#endif
