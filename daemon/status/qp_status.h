// SPDX-License-Identifier: BSD-2-Clause
/* Describes a QP as JSON, for `pumice status` and `pumice why`.
 *
 * It is done in two steps, because the JSON of a QP takes some thirty times as long as a copy of its values. The copy
 * is taken in the device's thread. The thread that asks makes the JSON of it.
 *
 * qpn, session, pid, comm (an XRC target instead has session null and openers: [ session ], QP_STATUS_OPENERS at most),
 *     type, state,
 *     dest_qpn, dgid, path_mtu, pd, send_cq, recv_cq, srq, xrcd (null: none),
 *     requester ("free", "queued", "in hotel": waiting for an ACK, "on re-send list"),
 *     sq_posted, rq_posted (requests that the engine has),
 *     sq_ring, rq_ring (requests that the client wrote and the daemon has not read; null: the ring is broken),
 *     sq_max, rq_max, una_psn, next_psn, max_psn, epsn, msn, retries_left, rnr_retries_left, reads_outstanding,
 *     deadline_us (from now; null: no timer), srtt_us and window_bytes (of the destination), inflight_bytes,
 *     rate (bytes per second; congestion has lowered it; null: no limit), waiting_rate, waiting_rnr, waiting_fence,
 *     waiting_reads, broken, unreachable (texts, or null),
 *     comp_cntrs (handles of completion counters by what they count: { send, recv, read, remote_read, write,
 *     remote_write }; null: none), counters, hw_counters, mlx5_counters, usnic_counters (only those that are not 0),
 *     retry_cnt, rnr_retry, max_rd_atomic (attributes),
 *     credits (messages that the peer has receive requests for, "unknown", "unlimited"), waiting_credit, credit_us,
 *     waiting_window, waiting_peer (full windows), waiting_drain (SQD), waiting_srqn (null: none),
 *     probing (nothing was answered in time; one packet at a time is sent), retransmitting, probes (tail probes since the last progress),
 *     probe_us (wait for the next tail probe; null: not connected), backoff (how often that wait was doubled),
 *     silent_us (how long the oldest unacknowledged packet has been the oldest; null: all are acknowledged),
 *     rnr_us (time until the peer's RNR timer expires; null: it does not run),
 *     timeout_us (of the QP; null: none), failure (the first cause of its error, see error_log.h; null: none) */
#ifndef PUMICE_DAEMON_STATUS_QP_STATUS_H
#define PUMICE_DAEMON_STATUS_QP_STATUS_H

#include <jansson.h>

#include "daemon/core/base/types.h"
#include "daemon/core/control/qp_query.h"
#include "daemon/objects/qp/qp.h"

#define QP_STATUS_OPENERS 64u

/* The values of a QP at one moment. It has no pointers but to texts that stay. Handles and numbers of other objects are
 * -1 if there is none; sq_ring and rq_ring are negative if the ring is broken. */
struct qp_status {
    uint32_t qpn;
    const char *type;
    bool is_datagram; /* UD */
    bool has_session;
    uint32_t session; /* its number, and the program */
    int pid;
    char comm[16];
    unsigned num_openers;
    uint32_t opener[QP_STATUS_OPENERS];
    int64_t pd, send_cq, recv_cq, srq, xrcd;
    uint32_t comp_cntr[CNTR_OPS];
    uint32_t sq_max, rq_max;
    int64_t sq_ring, rq_ring;
    const char *broken, *unreachable;
    struct qp_attr attr;
    struct qp_info info;
};

/* Copies the values. In the device's thread; it allocates nothing. */
void qp_status_take(const struct client_qp *q, struct qp_status *out);
/* In any thread. Returns a new reference. */
json_t *qp_status_json(const struct qp_status *q);

#endif
