// SPDX-License-Identifier: BSD-2-Clause
/* The congestion window of a destination. All QPs that send to one address share the path there, so they share one
 * window, one measurement of round trips and one rate. So the number of QPs does not change the load of the path.
 *
 *     start         The window begins with some packets. It grows by half each round trip until packets are lost, or
 *                   until round trips become long because packets wait on the path (slow start).
 *     growth        Then it grows by a small part per round trip. The growth is slow, because with go-back-N the sender
 *                   repeats up to a window of packets for each lost packet.
 *     loss          The sender judges by the round trips and by what the path carried since the loss before, because a
 *                   NAK does not say why packets were lost:
 *                     queue    The latest round trips were long: packets waited on the path until its buffer was full.
 *                              The window becomes about a half.
 *                     tight    Several times, less than a window came through between two losses. The buffer may be too
 *                              small to make round trips long. The window becomes about a half.
 *                     random   Several times, more than a window came through, and round trips showed no queue. So the
 *                              path loses packets whatever their number. The window stays, or grows again, up to
 *                              CWND_RANDOM or what the path carries.
 *                   The window becomes smaller once per round trip, but not smaller than the capacity of the path as far
 *                   as it is known: a rate that the path has just delivered, times the shortest round trip.
 *     timeout       If nothing comes back at all, the window becomes two packets, and slow start leads back to a part of
 *                   the former window.
 *
 *     undone        If it turns out that the packets had not been lost, but they or the answer were only late, the window
 *                   is again as before (RFC 4015, RFC 3708).
 *
 * Hosts with little processor time answer late, which makes round trips long, too. But then they differ much from each
 * other. So the judgement compares round trips with the largest difference of late between one and the next (jitter).
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
 * for each QP. With go-back-N, the value keeps 70 % of 4 GB/s at a round trip of 30 us when one packet in a hundred is lost
 * (sim --goodput). With selective retransmission, a larger window repeats no more packets. */
#define CWND_CAPACITY_MOST 147456u
#define CWND_CAPACITY_SELECTIVE 1048576u
/* The window that random losses leave, if it was larger. While a packet is missing, the receiver keeps all packets behind
 * it, and then copies them. With a larger window they no longer fit in a processor's cache beside those that still wait in
 * the socket. But a path that carries more in a round trip has a larger window, and so has a path that seldom loses
 * packets. With 1 MiB, ib_write_bw of 64 KiB was 15 % slower at a loss of 1 %. */
#define CWND_RANDOM 655360u
#define CWND_LEAST_PKTS 2u /* the smallest window */
#define CONGESTION_RECENT 4u /* round trips that are remembered */
#define CONGESTION_RANDOM 4u /* after so many more random losses than others, losses are taken for random */
/* So much of a window may leave in one burst. Short pauses between packets would cost a system call for each, and a
 * sender that sleeps on a busy processor may lose its turn there. */
#define PACE_BURST_PART 8u

/* The window before it was reduced, perhaps without a real loss. */
struct congestion_undo {
    uint64_t cwnd; /* 0: there is nothing to undo */
    uint64_t ssthresh, loss_at;
    uint8_t tight;
};
/* Losses in doubt: packets that were sent again one by one, and may only have been late. */
struct congestion_doubt {
    struct congestion_undo undo; /* the window before the oldest loss that still counts */
    uint64_t since; /* time of that loss */
    uint32_t resent; /* packets that were sent again since then and did not come twice yet */
    uint32_t before; /* the same for the packets before it */
};

struct congestion {
    uint64_t cwnd; /* the window, in bytes */
    uint64_t ssthresh; /* slow start while the window is below this, in bytes */
    uint64_t srtt, rttvar; /* smoothed round trip and its mean deviation, ns; srtt 0: not known */
    uint64_t rtt_min; /* the shortest round trip, ns. It creeps up slowly, in case the path changes. */
    uint64_t recent[CONGESTION_RECENT]; /* ring of the latest round trips, ns */
    uint64_t jitter; /* how much a round trip differs from the one before, on average, ns */
    uint64_t jitter_peak; /* the largest jitter; older ones count less and less */
    uint64_t sampled_at; /* time of the latest round trip */
    uint64_t progress_at; /* the last time that packets were acknowledged */
    uint64_t
        passed_at; /* the last time that a packet left although the window was full, or that nothing was in flight */
    uint64_t acked_sent_at; /* when the packet of the latest round trip was sent */
    uint64_t loss_at; /* time of the last loss that counted; 0: never */
    struct congestion_undo undo; /* of a probe or a timeout */
    struct congestion_doubt doubt;
    uint64_t carried; /* bytes that were acknowledged since then */
    uint64_t between; /* bytes between two such losses, on average */
    uint32_t rounds; /* measurements of the rate since */
    uint8_t newest; /* index of the latest one of `recent` */
    bool queue; /* packets waited on the path when the last loss was seen */
    uint8_t random; /* losses that look random, less those that do not; 0 ... CONGESTION_RANDOM */
    uint8_t tight; /* number of losses since the path carried a whole window between two losses; at most
                    * TIGHT_LOSSES */
    bool late; /* packets waited for the pace. They may make up for a timer that comes late. */
    uint8_t backoff; /* while no round trip is known: number of probes, of all QPs together */
    uint64_t rate; /* bytes per second: the largest rate that was acknowledged recently */
    uint64_t round_at, round_bytes; /* start of the present measurement of the rate, and bytes acknowledged since */
    uint64_t next_at; /* pacing: no packet leaves before this time */
    struct timer timer; /* kind TIMER_PATH: QPs that wait for the pace or for the window become ready */
};

void congestion_init(struct congestion *c, const struct engine_config *cfg);
/* A round trip was measured. */
void congestion_sample(struct congestion *c, uint64_t sample, uint64_t now);
/* Packets were lost while `inflight` bytes were in flight. packet: cost of a full packet. most: the
 * capacity counts at most so much (peer_window_capacity). */
void congestion_loss(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t inflight,
                     uint64_t packet, uint64_t now);
/* The path has not answered in time, to any QP. packet, most: as above. */
void congestion_timeout(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t packet,
                        uint64_t now);
/* Packets seem to be lost, because no answer came in time: remembers the window, before it is reduced. */
void congestion_suspect(struct congestion *c);
/* The answer was only late: restores the window. */
void congestion_undo(struct congestion *c);
/* Packets were lost indeed: there is nothing to undo. */
static inline void congestion_confirm(struct congestion *c)
{
    c->undo.cwnd = c->doubt.undo.cwnd = 0;
}
/* Packets count as lost, and will be sent again one by one. They may only be late: remembers the window. */
void congestion_suspect_late(struct congestion *c, uint64_t now);
/* So many of these packets were sent again. */
static inline void congestion_resent(struct congestion *c, uint32_t packets)
{
    c->doubt.resent += packets;
}
/* So many of them came twice. If this is true of all, nothing was lost: restores the window (RFC 3708). all_sent: the QP has
 * sent all packets again that count as lost. */
void congestion_unneeded(struct congestion *c, uint32_t packets, bool all_sent, uint64_t now);
/* So many bytes were acknowledged; `inflight` were in flight before. packet, most: as above. */
void congestion_progress(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t released,
                         uint64_t inflight, uint64_t packet, uint64_t now);

/* Is the window at its largest? Then packets were not lost recently, and packets leave without a pace. */
static inline bool congestion_is_free(const struct congestion *c, const struct engine_config *cfg)
{
    return c->cwnd >= cfg->peer_window_bytes;
}
/* Does the path lose packets whatever their number? */
static inline bool congestion_is_random(const struct congestion *c)
{
    return c->random == CONGESTION_RANDOM;
}
/* How long an answer may take, ns (RFC 6298); 0: no round trip is known yet. */
static inline uint64_t congestion_rto(const struct congestion *c)
{
    uint64_t t = c->srtt + 4 * c->rttvar;
    return t > 2 * c->srtt ? t : 2 * c->srtt;
}
/* Bytes that may leave now, beyond what the window allows. A packet that begins within them may leave as a whole. 0:
 * none before congestion_pace_at. */
static inline uint64_t congestion_pace(struct congestion *c, const struct engine_config *cfg, uint64_t now)
{
    if (c->loss_at == 0 || c->srtt == 0 || congestion_is_free(c, cfg))
        return UINT64_MAX;
    uint64_t ahead = c->next_at > now ? c->next_at - now : 0, burst = c->srtt / PACE_BURST_PART;
    if (ahead && ahead >= burst) {
        c->late = true;
        return 0;
    }
    uint64_t bytes = c->cwnd * (burst - ahead) / c->srtt;
    return bytes ? bytes : 1;
}
/* When congestion_pace returned 0: the time to try again. A half of a burst can leave then at once. */
static inline uint64_t congestion_pace_at(const struct congestion *c)
{
    return c->next_at - c->srtt / PACE_BURST_PART / 2;
}
/* The time that so many bytes take at the present pace, ns. The pace is faster than the window, by a quarter; in slow start
 * twice as fast. But just after a loss it is slower: packets that the receiver will drop still wait on the path. */
static inline uint64_t congestion_pace_ns(const struct congestion *c, uint64_t bytes, uint64_t now)
{
    uint64_t last = c->recent[c->newest], ns = bytes * (c->srtt > last ? c->srtt : last) / c->cwnd;
    if (c->cwnd < c->ssthresh)
        return ns / 2;
    if (now - c->loss_at < 2 * c->srtt)
        return c->queue ? 2 * ns : ns * 5 / 4;
    return ns * 4 / 5;
}
/* So many bytes were put into a batch. A sender that waited for the pace and comes late makes up for up to a round
 * trip. */
static inline void congestion_sent(struct congestion *c, const struct engine_config *cfg, uint64_t bytes, uint64_t now)
{
    if (c->loss_at == 0 || c->srtt == 0 || congestion_is_free(c, cfg))
        return;
    uint64_t least = c->late ? now - min64(c->srtt, now) : now;
    c->next_at = (c->next_at > least ? c->next_at : least) + congestion_pace_ns(c, bytes, now);
    c->late = c->late && c->next_at < now;
}

#endif
