// SPDX-License-Identifier: BSD-2-Clause
/* The requester's congestion window and its measurement of round trips. All functions are on the path of every ACK. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_CONGESTION_H
#define PUMICE_DAEMON_CORE_REQUESTER_CONGESTION_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/min.h"
#include "daemon/core/base/psn.h"
#include "daemon/core/qp/requester_state.h"

/* Bytes. With go-back-N, the sender repeats up to a window of packets for each lost packet. A window below the capacity
 * of the path costs as much. This value keeps 70 % of 4 GB/s at a round trip of 30 us when one packet in a hundred is
 * lost (sim --goodput). It has room for two messages of 64 KiB and the overhead of their packets, at an MTU of 2048. */
#define CWND_MIN 147456u
#define CWND_GROWTH 2u /* packets that the window grows by per round trip */

/* --- round trips ------------------------------------------------------------------------------ */

/* A new packet that asks for an ACK was planned. The time until its ACK is a round trip. One packet at a time is
 * measured. */
static inline void rtt_packet_planned(struct requester *r, uint32_t psn, uint64_t now)
{
    if (r->rtt_start == 0) {
        r->rtt_psn = psn;
        r->rtt_start = now;
    }
}
/* Stops the measurement: the measured packet is sent again, or was not sent, so its ACK would not show a round trip. */
static inline void rtt_cancel(struct requester *r)
{
    r->rtt_start = 0;
}
/* una_psn has moved. */
static inline void rtt_progress(struct requester *r, uint64_t now)
{
    if (r->rtt_start == 0 || psn_diff(r->una_psn, r->rtt_psn) <= 0)
        return;
    uint64_t sample = now - r->rtt_start;
    r->srtt = r->srtt ? (7 * r->srtt + sample) / 8 : sample;
    if (r->rtt_min == 0 || sample < r->rtt_min)
        r->rtt_min = sample;
    r->rtt_start = 0;
}

/* --- the window ------------------------------------------------------------------------------- */

static inline void cwnd_init(struct requester *r, const struct engine_config *cfg)
{
    r->cwnd = cfg->peer_window_bytes;
    r->recover_psn = r->una_psn;
}
/* una_psn has moved, and so many bytes are no longer in flight: the window grows. */
static inline void cwnd_progress(struct requester *r, const struct engine_config *cfg, uint64_t released, uint32_t mtu)
{
    if (psn_diff(r->una_psn, r->recover_psn) > 0)
        r->recover_psn = r->una_psn;
    r->cwnd = min64(r->cwnd + released * CWND_GROWTH * mtu / r->cwnd, cfg->peer_window_bytes);
}
/* Packets were lost: halves the window, once per window, so that one burst of losses counts once. */
static inline void cwnd_loss(struct requester *r, const struct engine_config *cfg)
{
    if (psn_diff(r->una_psn, r->recover_psn) < 0)
        return;
    uint64_t floor = min64(CWND_MIN, cfg->peer_window_bytes / 2);
    r->cwnd = r->cwnd / 2 < floor ? floor : r->cwnd / 2;
    r->recover_psn = r->sent_psn;
}
/* Is the window at its largest, because no packet was lost recently? */
static inline bool cwnd_is_full_size(const struct requester *r, const struct engine_config *cfg)
{
    return r->cwnd >= cfg->peer_window_bytes;
}

#endif
