// SPDX-License-Identifier: BSD-2-Clause
/* Retransmission, and the requester's timers. The timers are all derived from its state:
 *
 *   RNR wait     rnr_until                                The responder asked for it. Nothing is sent before.
 *   timeout      progress_at + 4.096 us * 2^timeout       No answer came for that long. Costs one of retry_cnt retries.
 *   tail probe   last_tx + a few round trips, doubling    The last packets or their ACK may be lost. Costs no retry.
 *
 * The probe finds losses that no NAK reports. It comes long before the QP's timeout, which is often seconds long. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_RETRY_H
#define PUMICE_DAEMON_CORE_REQUESTER_RETRY_H

#include "daemon/core/qp/qp.h"

/* Goes back: the next packet to send is psn, which was sent before. */
void req_rewind(struct qp *qp, uint32_t psn);
/* Packets from psn on were lost: sends them again, and reduces the window unless the cause is RNR. */
void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now);
/* The responder's NAK says that the oldest unacknowledged packet was lost. */
void req_lost_by_nak(struct qp *qp, uint64_t now);
/* A response is missing. The responses after it are still coming in. */
void req_lost_response(struct qp *qp, uint64_t now);
/* una_psn has moved: all retries are left again. */
static inline void retry_progress(struct qp *qp, uint64_t now)
{
    struct requester *r = &qp->req;
    r->retries_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
    r->probes = 0;
    r->probe_due = false;
    r->progress_at = now;
}

/* The next moment at which req_expire has something to do; NEVER: none. */
uint64_t req_deadline(const struct qp *qp);
/* Does the work of the requester's timers that are due: ends an RNR wait, or retransmits. */
void req_expire(struct qp *qp, uint64_t now);
/* The QP's timeout in effect, ns. attr.timeout must not be 0. */
uint64_t req_timeout_ns(const struct qp *qp);

#endif
