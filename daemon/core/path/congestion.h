// SPDX-License-Identifier: BSD-2-Clause
/* The congestion window of a destination. All QPs that send to one address share the path there, so they share one
 * window, one measurement of round trips and one rate. So the number of QPs does not change the load of the path.
 *
 *     start         The window begins with some packets. It grows by half each round trip until packets are lost, or
 *                   until round trips become long because packets wait on the path (slow start).
 *     growth        Then it grows by a small part per round trip. The growth is slow, because with go-back-N the sender
 *                   repeats up to a window of packets for each lost packet.
 *     loss          A loss reduces the window by a part, once per round trip, but not below the capacity of the path as
 *                   far as it is known: a rate that the path has just delivered, times the shortest round trip. A small
 *                   window stays as it is if round trips show no queue: then the path loses packets whatever their
 *                   number. If losses follow each other so quickly that no round trip can be measured, they count.
 *     timeout       If nothing comes back at all, the window becomes two packets, and slow start leads back to a part of
 *                   the former window.
 *
 * After a loss, packets leave at the pace of the window (a window per round trip) instead of in bursts. A NAK says that
 * packets were lost, but the packets after them may still wait on the path. A burst would be lost there, too.
 *
 * All functions here are on the path of every ACK or every burst. */
#ifndef PUMICE_DAEMON_CORE_PATH_CONGESTION_H
#define PUMICE_DAEMON_CORE_PATH_CONGESTION_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/min.h"
#include "daemon/core/base/timer_wheel.h"

/* A loss does not reduce the window below the capacity of the path, but the capacity counts at most this many bytes
 * for each QP.
 * The value keeps 70 % of 4 GB/s at a round trip of 30 us when one packet in a hundred is lost (sim --goodput). */
#define CWND_CAPACITY_MOST 147456u
#define CWND_LEAST_PKTS 2u /* the smallest window */

struct congestion {
    uint64_t cwnd; /* the window, in bytes */
    uint64_t ssthresh; /* slow start while the window is below this, in bytes */
    uint64_t srtt, rttvar; /* smoothed round trip and its mean deviation, ns; srtt 0: not known */
    uint64_t rtt_min; /* the shortest round trip, ns. It creeps up slowly, in case the path changes. */
    uint64_t rtt_last; /* the latest round trip, ns */
    uint64_t sampled_at; /* time of the latest round trip */
    uint64_t progress_at; /* the last time that packets were acknowledged */
    uint64_t
        passed_at; /* the last time that a packet left although the window was full, or that nothing was in flight */
    uint64_t acked_sent_at; /* when the packet of the latest round trip was sent */
    uint64_t loss_at; /* time of the last loss that counted; 0: never */
    uint32_t rounds; /* measurements of the rate since */
    uint8_t unsampled; /* number of losses since the latest round trip was measured */
    uint8_t backoff; /* while no round trip is known: number of probes, of all QPs together */
    uint64_t rate; /* bytes per second: the largest rate that was acknowledged recently */
    uint64_t round_at, round_bytes; /* start of the present measurement of the rate, and bytes acknowledged since */
    uint64_t next_at; /* pacing: no packet leaves before this time */
    struct timer timer; /* kind TIMER_PATH: QPs that wait for the pace or for the window become ready */
};

void congestion_init(struct congestion *c, const struct engine_config *cfg);
/* A round trip was measured. */
void congestion_sample(struct congestion *c, const struct engine_config *cfg, uint64_t sample, uint64_t now);
/* Packets were lost while `inflight` bytes were in flight. packet: cost of a full packet. qps:
 * number of QPs that are connected to the destination. */
void congestion_loss(struct congestion *c, const struct engine_config *cfg, uint32_t qps, uint64_t inflight,
                     uint64_t packet, uint64_t now);
/* The path has not answered in time, to any QP. packet, qps: as above. */
void congestion_timeout(struct congestion *c, const struct engine_config *cfg, uint32_t qps, uint64_t packet,
                        uint64_t now);
/* So many bytes were acknowledged; `inflight` were in flight before. packet: as above. */
void congestion_progress(struct congestion *c, const struct engine_config *cfg, uint64_t released, uint64_t inflight,
                         uint64_t packet, uint64_t now);

/* Is the window at its largest? Then packets were not lost recently, and packets leave without a pace. */
static inline bool congestion_is_free(const struct congestion *c, const struct engine_config *cfg)
{
    return c->cwnd >= cfg->peer_window_bytes;
}
/* How long an answer may take, ns (RFC 6298); 0: no round trip is known yet. */
static inline uint64_t congestion_rto(const struct congestion *c)
{
    uint64_t t = c->srtt + 4 * c->rttvar;
    return t > 2 * c->srtt ? t : 2 * c->srtt;
}
/* Bytes that may leave now, beyond what the window allows. A packet that begins within them may leave as a whole. 0:
 * none before congestion_pace_at. Packets may leave up to host_delay_ns before their time: if they waited for each short
 * pause, a sender on a busy processor would lose its turn there each time. */
static inline uint64_t congestion_pace(const struct congestion *c, const struct engine_config *cfg, uint64_t now)
{
    if (c->loss_at == 0 || c->srtt == 0 || congestion_is_free(c, cfg))
        return UINT64_MAX;
    uint64_t ahead = c->next_at > now ? c->next_at - now : 0;
    if (ahead && ahead >= cfg->host_delay_ns)
        return 0;
    uint64_t bytes = c->cwnd * (cfg->host_delay_ns - ahead) / c->srtt;
    return bytes ? bytes : 1;
}
/* When congestion_pace returned 0: the time to try again. A half of what may leave early can leave then at once. */
static inline uint64_t congestion_pace_at(const struct congestion *c, const struct engine_config *cfg)
{
    return c->next_at - cfg->host_delay_ns / 2;
}
/* So many bytes were put into a batch. The pace is faster than the window, by a quarter; in slow start twice as fast.
 * But just after a loss it is slower: packets that will be dropped by the receiver still wait on the path. */
static inline void congestion_sent(struct congestion *c, const struct engine_config *cfg, uint64_t bytes, uint64_t now)
{
    if (c->loss_at == 0 || c->srtt == 0 || congestion_is_free(c, cfg))
        return;
    uint64_t ns = bytes * (c->srtt > c->rtt_last ? c->srtt : c->rtt_last) / c->cwnd;
    ns = c->cwnd < c->ssthresh ? ns / 2 : now - c->loss_at < 2 * c->srtt ? ns * 5 / 4 : ns * 4 / 5;
    c->next_at = (c->next_at > now ? c->next_at : now) + ns;
}

#endif
