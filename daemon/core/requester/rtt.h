// SPDX-License-Identifier: BSD-2-Clause
/* The requester's measurement of round trips. All functions are on the path of every ACK. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_RTT_H
#define PUMICE_DAEMON_CORE_REQUESTER_RTT_H

#include "daemon/core/base/psn.h"
#include "daemon/core/qp/qp.h"

/* A new packet that asks for an ACK was planned. The time until its ACK is a round trip. One packet at a time is
 * measured. */
static inline void rtt_packet_planned(struct requester *r, uint32_t psn, uint64_t now)
{
    if (r->rtt_start == 0) {
        r->rtt_psn = psn;
        r->rtt_start = now;
    }
}
/* Stops the measurement: the measured packet was not sent. */
static inline void rtt_cancel(struct requester *r)
{
    r->rtt_start = 0;
}
/* Packets [psn, psn + n) are sent again. An ACK of one of them may be for either transmission, so it shows no round trip
 * (Karn's rule). */
static inline void rtt_packets_repeated(struct requester *r, uint32_t psn, uint32_t n)
{
    int32_t at = psn_diff(r->rtt_psn, psn);
    if (at >= 0 && (uint32_t)at < n)
        r->rtt_start = 0;
}
/* May the round trip of a packet be measured that is sent again? After a NAK it may: the responder has dropped the
 * packets behind the lost one, so an ACK can only be for the packets that are sent now. But not if a probe has sent the
 * oldest packet, too, and not for READs, whose responses may still be on their way. */
static inline bool rtt_may_time_again(const struct requester *r)
{
    return r->cause == RETRANS_FAST && r->fired_at < r->progress_at;
}
/* The measured packet is known to have arrived. If the responder keeps packets behind a gap, its own answer may have come to
 * nothing, and a timer made the QP ask again. Then this moment shows no round trip. */
static inline void rtt_end(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    if (!r->sacked || r->fired_at < r->rtt_start)
        congestion_sample(&qp->peer->congestion, now - r->rtt_start, now);
    r->rtt_start = 0;
}
/* una_psn has moved. */
static inline void rtt_progress(struct qp *qp, uint64_t now)
{
    const struct requester *r = qp->req;
    if (r->rtt_start && psn_diff(r->una_psn, r->rtt_psn) > 0)
        rtt_end(qp, now);
}

#endif
