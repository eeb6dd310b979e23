// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/congestion.h"

#define NS_PER_S 1000000000u
#define QUEUE_SHORT_NS 100000u /* slow start ends when packets wait longer than this on the path … */
#define QUEUE_MOST_NS 100000000u /* … and the window does not grow while they wait longer than this */
#define QUEUE_PART 40u /* a round trip that is longer than the shortest one by this part shows a queue */
#define ROUND_LEAST_NS 20000u /* the rate is measured over a round trip, but not over less than this */
#define GROWTH_FIRST_PART 8u /* growth per round trip before the first loss, when slow start has ended */
#define GROWTH_PART 96u /* growth per round trip: this part of the window, less of it with longer packets, … */
#define GROWTH_PACKET 1280u /* cost of the packet for which this holds */
#define GROWTH_BYTES 384u /* … but not more than this and GROWTH_LARGE_PART of the window. … */
#define GROWTH_LARGE_PART 1024u
#define GROWTH_ROUNDS 256u /* … The growth doubles after each so many round trips without a loss, … */
#define GROWTH_DOUBLED_MOST 4u /* … so often at most. */
#define UNSAMPLED_LOSSES 4u /* after so many losses without a round trip in between, each one reduces the window */

void congestion_init(struct congestion *c, const struct engine_config *cfg)
{
    *c = (struct congestion){.cwnd = min64(cfg->first_window_bytes, cfg->peer_window_bytes), .ssthresh = UINT64_MAX};
    timer_init(&c->timer);
    c->timer.kind = TIMER_PATH;
}

/* --- round trips ------------------------------------------------------------------------------ */

void congestion_sample(struct congestion *c, const struct engine_config *cfg, uint64_t sample, uint64_t now)
{
    if (c->srtt == 0) {
        c->srtt = c->rtt_min = sample;
        c->rttvar = sample / 2;
    } else {
        uint64_t off = sample > c->srtt ? sample - c->srtt : c->srtt - sample;
        c->rttvar = (3 * c->rttvar + off) / 4;
        c->srtt = (7 * c->srtt + sample) / 8;
        c->rtt_min = sample < c->rtt_min ? sample : c->rtt_min + ((sample - c->rtt_min) >> 12);
    }
    c->rtt_last = sample;
    c->unsampled = 0;
    c->sampled_at = now;
    c->acked_sent_at = now - sample;
    if (c->cwnd < c->ssthresh && sample > 2 * c->rtt_min + QUEUE_SHORT_NS + 4 * cfg->host_delay_ns)
        c->ssthresh = c->cwnd;
}

/* --- growth ----------------------------------------------------------------------------------- */

/* Measures the rate once per round trip. Older rates count less and less. */
static void measure_rate(struct congestion *c, uint64_t released, uint64_t now)
{
    uint64_t ns = now - c->round_at;
    c->round_bytes += released;
    if (ns < c->srtt || ns < ROUND_LEAST_NS)
        return;
    uint64_t rate = c->round_bytes * NS_PER_S / ns, older = c->rate - c->rate / 8;
    c->rate = rate > older ? rate : older;
    c->round_at = now;
    c->round_bytes = 0;
    c->rounds++;
}

/* A window that is not in use does not grow: nothing shows that the path could carry more. */
void congestion_progress(struct congestion *c, const struct engine_config *cfg, uint64_t released, uint64_t inflight,
                         uint64_t packet, uint64_t now)
{
    c->progress_at = now;
    measure_rate(c, released, now);
    if (congestion_is_free(c, cfg) || inflight < c->cwnd / 2)
        return;
    if (c->cwnd < c->ssthresh) {
        c->cwnd += released / 2;
    } else if (c->loss_at == 0 && c->rtt_last < c->rtt_min + QUEUE_MOST_NS) {
        c->cwnd += released / GROWTH_FIRST_PART;
    } else if (c->rtt_last < c->rtt_min + QUEUE_MOST_NS || c->cwnd < cfg->first_window_bytes) {
        uint64_t times = packet > GROWTH_PACKET ? 16 * packet / GROWTH_PACKET : 16; /* in sixteenths */
        uint64_t part = c->cwnd * 256 / (GROWTH_PART * times * times);
        uint64_t per_round = min64(part, GROWTH_BYTES * 16 / times + c->cwnd / GROWTH_LARGE_PART);
        c->cwnd += released * (per_round << min32(c->rounds / GROWTH_ROUNDS, GROWTH_DOUBLED_MOST)) / c->cwnd;
    }
    c->cwnd = min64(c->cwnd, cfg->peer_window_bytes);
}

/* --- reduction -------------------------------------------------------------------------------- */

/* What the path is known to carry in a round trip without a queue, or while a host is late with its packets. */
static uint64_t capacity(const struct congestion *c, const struct engine_config *cfg, uint32_t qps)
{
    uint64_t ns = c->rtt_min > cfg->host_delay_ns ? c->rtt_min : cfg->host_delay_ns;
    return min64(c->rate / 1000 * (ns / 1000) / 1000, (uint64_t)qps * CWND_CAPACITY_MOST);
}

/* The window after a loss: `part` tenths of the present one. */
static uint64_t reduced(const struct congestion *c, const struct engine_config *cfg, uint32_t qps, uint64_t packet)
{
    uint64_t w = c->cwnd * 7 / 10, known = min64(capacity(c, cfg, qps), c->cwnd), least = CWND_LEAST_PKTS * packet;
    w = w > known ? w : known;
    return min64(w > least ? w : least, cfg->peer_window_bytes);
}

static void count_loss(struct congestion *c, uint64_t now)
{
    c->loss_at = now;
    c->rounds = 0;
}

/* Losses within a round trip have one cause. If less than half of the window was in flight, the window is not the
 * cause. */
void congestion_loss(struct congestion *c, const struct engine_config *cfg, uint32_t qps, uint64_t inflight,
                     uint64_t packet, uint64_t now)
{
    if (c->loss_at && now - c->loss_at < c->srtt)
        return;
    if (c->unsampled < UNSAMPLED_LOSSES)
        c->unsampled++;
    bool queue = c->sampled_at > c->loss_at && c->rtt_last > c->rtt_min + c->rtt_min / QUEUE_PART + cfg->host_delay_ns;
    uint64_t least = queue || c->unsampled == UNSAMPLED_LOSSES ? 0 : min64(c->cwnd, (uint64_t)qps * CWND_CAPACITY_MOST);
    count_loss(c, now);
    if (inflight < c->cwnd / 2)
        return;
    uint64_t w = reduced(c, cfg, qps, packet);
    c->cwnd = c->ssthresh = w > least ? w : least;
}

void congestion_timeout(struct congestion *c, const struct engine_config *cfg, uint32_t qps, uint64_t packet,
                        uint64_t now)
{
    uint64_t part = reduced(c, cfg, qps, packet);
    if (part < c->ssthresh)
        c->ssthresh = part;
    c->cwnd = min64(CWND_LEAST_PKTS * packet, cfg->peer_window_bytes);
    count_loss(c, now);
}
