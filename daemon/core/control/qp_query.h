// SPDX-License-Identifier: BSD-2-Clause
/* The attributes and the state of a QP, for its owner and for people. */
#ifndef PUMICE_DAEMON_CORE_CONTROL_QP_QUERY_H
#define PUMICE_DAEMON_CORE_CONTROL_QP_QUERY_H

#include "daemon/core/base/report.h"
#include "daemon/core/base/types.h"
#include "daemon/core/qp/requester_state.h"

struct qp;

/* The attributes as ibv_query_qp reports them: rq_psn and sq_psn are the present ones. */
void qp_query(const struct qp *qp, struct qp_attr *attr);
enum qp_state qp_state(const struct qp *qp);
/* The first PSN of the requests that the QP sends, or (received) that it receives. */
uint32_t qp_first_psn(const struct qp *qp, bool received);

/* A snapshot of a QP, for `pumice status` and `pumice why`. */
struct qp_info {
    uint32_t qpn, dest_qpn;
    uint8_t type, state;
    uint32_t sq_posted, rq_posted; /* requests in the private queues */
    uint32_t una_psn; /* oldest unacknowledged PSN */
    uint32_t next_psn; /* next PSN to send */
    uint32_t max_psn; /* next PSN never sent */
    uint32_t epsn; /* next expected PSN */
    uint32_t msn;
    uint8_t retries_left, rnr_retries_left;
    uint32_t reads_outstanding;
    uint64_t deadline; /* NEVER: no timer runs */
    uint64_t srtt_ns; /* usual round trip to the destination, of all QPs; 0: not known */
    /* The last time that the oldest unacknowledged packet changed or was sent (again), ns. 0: nothing is
     * unacknowledged. */
    uint64_t progress_at;
    uint64_t rnr_until; /* ns; 0: the QP does not wait for the peer's RNR timer */
    uint64_t timeout_ns; /* the QP's timeout in effect; 0: none */
    uint8_t probes; /* tail probes since the last progress */
    uint8_t backoff; /* the wait for the next probe is doubled so often, until a round trip is known again */
    uint64_t probe_ns; /* the wait for the next probe, from the last progress or probe */
    bool probing; /* nothing was answered in time: the QP sends one packet at a time until an answer comes */
    bool retransmitting; /* the QP is sending packets again */
    uint64_t window_bytes; /* present congestion window of the destination, which other QPs share */
    uint64_t inflight_bytes;
    uint64_t rate; /* bytes per second, the limit after CNPs; 0: no limit */
    bool waiting_rate; /* packets wait because of that limit */
    bool waiting_rnr; /* waits for the end of the peer's RNR timer */
    uint32_t waiting_srqn; /* XRC, with waiting_rnr: number of the peer's SRQ that has no receive request; else 0 */
    uint8_t credit_state; /* enum credit_state: the receive requests of the peer, with engine_config.e2e_credits */
    uint32_t credits; /* with CREDITS_LIMITED: messages that may still be sent */
    bool waiting_credit; /* the next message waits for a receive request of the peer */
    uint64_t credit_until; /* then one message is sent without a credit, ns; 0: not known yet */
    bool waiting_fence; /* the next request waits for earlier ones: by SEND_FENCE, or as it is a LOCAL_INV */
    bool waiting_reads; /* the next request needs a READ or atomic credit, and there is none */
    bool waiting_window; /* something could be sent, but its own window is full (bytes or packets) */
    bool waiting_peer; /* waits for room in the window of the destination address, which other QPs share */
    bool waiting_drain; /* SQD: requests that began before are not done yet */
    bool windowless; /* an unreliable QP, which has no window of its own */
    struct report failure; /* the first cause of the state ERR or SQE; kind REPORT_NONE: there is none */
    struct engine_counters counters; /* this QP's */
};
void qp_info(const struct qp *qp, struct qp_info *info);

#endif
