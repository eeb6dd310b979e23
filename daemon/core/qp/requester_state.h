// SPDX-License-Identifier: BSD-2-Clause
/* The requester's state. The code is in daemon/core/requester. */
#ifndef PUMICE_CORE_QP_REQUESTER_STATE_H
#define PUMICE_CORE_QP_REQUESTER_STATE_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/wqe_queue.h"
#include "daemon/core/qp/send_wqe.h"

enum retrans_cause {
    RETRANS_FAST, /* sequence NAK, or a gap in responses */
    RETRANS_PROBE,
    RETRANS_TIMEOUT,
    RETRANS_RNR,
};
struct rd_credit { /* an outstanding READ request, atomic, ATOMIC WRITE or FLUSH */
    uint32_t first, end; /* PSNs of its responses, end exclusive */
};

/* Indexes of the send queue, in order: sq.head <= una <= cur <= unsent <= sq.tail.
 *   [head, una)   acknowledged; their completions wait for room
 *   una           holds the oldest unacknowledged PSN
 *   cur           holds the next packet to be sent (again)
 *   unsent        the first request without PSNs
 * A local operation (bind, invalidate) is carried out when it gets its place in the PSNs. It takes no PSN. From then on
 * una, cur and a retransmission step over it. If it failed, they stop there. */
struct requester {
    struct queue sq;
    uint32_t una, cur, unsent;
    uint32_t una_psn; /* oldest unacknowledged */
    uint32_t next_psn; /* next to send; before sent_psn during a retransmission */
    uint32_t sent_psn; /* next never sent */
    uint32_t unsent_psn; /* next not given to a request */
    uint32_t flush_end; /* requests before this index that are still in the queue are to be flushed */
    uint64_t inflight; /* cost of the packets [una_psn, next_psn) */
    uint64_t cwnd; /* congestion window: bound of inflight */
    uint32_t recover_psn; /* the window is not reduced again before this is acknowledged */

    struct rd_credit *rd; /* ring of ENGINE_MAX_RD_ATOMIC */
    uint32_t rd_head, rd_count;

    uint8_t fail_status; /* enum wc_status with which request una will fail; 0: none */
    uint8_t fail_cause;
    uint8_t retries_left, rnr_left;
    uint8_t probes; /* tail probes since the last progress */
    bool probe_due; /* send the last packet again */
    uint8_t cause; /* enum retrans_cause of the retransmission under way */
    uint64_t rnr_until; /* 0: not waiting */
    uint64_t progress_at; /* last time that the oldest unacknowledged packet changed or was sent (again) */
    uint64_t last_tx;
    uint64_t rewound_at; /* time of the last retransmission; 0: never */
    uint32_t rewind_psn; /* and its first PSN */

    uint32_t rtt_psn; /* packet whose ACK is timed */
    uint64_t rtt_start; /* 0: none */
    uint64_t srtt; /* smoothed round trip, ns; 0: not known */
    uint64_t rtt_min; /* the shortest round trip, ns; 0: not known */

    /* Tag matching: the offload's requests are in the queue among the user's. */
    uint32_t offload_queued; /* how many */
    uint32_t offload_reads; /* READs among them: for each one a slot is kept for its FIN */
    struct list_node rndv; /* matched entries whose rendezvous wait for a slot: tm_entry.job */

    uint64_t *atomic_result; /* ring of ENGINE_MAX_RD_ATOMIC: sources of writes that may be deferred */
    uint32_t atomic_count;
};

static inline struct send_wqe *req_wqe(const struct requester *r, uint32_t index)
{
    return queue_at(&r->sq, index);
}
/* Do requests wait to be flushed? In ERR and SQE all do. */
static inline bool req_is_flushing(const struct requester *r)
{
    return (int32_t)(r->flush_end - r->sq.head) > 0;
}
/* Has some packet of the request ever been sent, or was the local operation tried? Such a request has its place in the
 * PSNs. A request with a place may still wait for a fence, a credit or a window. */
static inline bool req_has_begun(const struct requester *r, const struct send_wqe *w)
{
    return w->npkts == 0 || w->first_psn != r->sent_psn;
}
/* Is every request that has begun complete? */
static inline bool req_is_drained(const struct requester *r)
{
    return r->sq.head == r->una && (r->una == r->unsent || !req_has_begun(r, req_wqe(r, r->una)));
}

#endif
