// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/congestion.h"

#define NS_PER_S 1000000000u
#define QUEUE_SHORT_NS 100000u /* slow start ends when packets wait longer than this on the path … */
#define QUEUE_MOST_NS 100000000u /* … and the window does not grow while they wait longer than this */
#define QUEUE_PART 40u /* a round trip that is longer than the shortest one by this part shows a queue … */
#define QUEUE_JITTER 2u /* … if it is also longer by so many times the largest jitter of late. … */
#define QUEUE_SUDDEN_JITTER 4u /* … A single one must be longer by so many times the jitter. */
/* A host whose daemon sleeps between packets has round trips of one length for a while, and later of another. So the
 * jitter that counts for a queue fades slowly, in so many round trips. */
#define JITTER_FADES 256u
#define ROUND_LEAST_NS 20000u /* the rate is measured over a round trip, but not over less than this */
#define GROWTH_FIRST_PART 8u /* growth per round trip when losses do not show that the window is too large */
#define GROWTH_PART 96u /* growth per round trip: this part of the window, less of it with longer packets, … */
#define GROWTH_PACKET 1280u /* cost of the packet for which this holds */
#define GROWTH_BYTES 384u /* … but not more than this and GROWTH_LARGE_PART of the window. … */
#define GROWTH_LARGE_PART 1024u
/* … With long round trips there are few of them between losses, and TCP, which may share the path, grows by one packet in
 * each. So each GROWTH_RTT_NS of the round trip add GROWTH_BYTES once more, up to GROWTH_LONGER_MOST times. … */
#define GROWTH_RTT_NS 500000u
#define GROWTH_LONGER_MOST 4u
#define GROWTH_ROUNDS 256u /* … The growth doubles after each so many round trips without a loss, … */
#define GROWTH_DOUBLED_MOST 4u /* … so often at most. */
#define REDUCED_TENTHS 5u /* the window after a loss, in tenths of the window before. … */
/* … Senders with long packets give up more: one of their packets takes the place of several short ones. Buffers often
 * hold a number of packets, whatever their length, so the other senders would lose more often. */
#define REDUCED_TENTHS_LONG 4u
#define LONG_PACKET_COST 2560u
/* On a slower path, an answer that comes late shows that the window is too large, and is no reason to undo anything. */
#define UNDO_RTT_MOST_NS 10000000u
#define LATE_ROUNDS 8u /* losses within so many round trips are undone together, when all of their packets were late */
#define TIGHT_LOSSES 4u /* after so many losses with less than a window between two of them, the window is too large */

void congestion_init(struct congestion *c, const struct engine_config *cfg)
{
    *c = (struct congestion){.cwnd = min64(cfg->first_window_bytes, cfg->peer_window_bytes), .ssthresh = UINT64_MAX};
    timer_init(&c->timer);
    c->timer.kind = TIMER_PATH;
}

/* --- round trips ------------------------------------------------------------------------------ */

static void first_sample(struct congestion *c, uint64_t sample)
{
    c->srtt = c->rtt_min = sample;
    c->rttvar = sample / 2;
    for (uint32_t i = 0; i < CONGESTION_RECENT; i++)
        c->recent[i] = sample;
}

static void next_sample(struct congestion *c, uint64_t sample)
{
    uint64_t off = sample > c->srtt ? sample - c->srtt : c->srtt - sample, last = c->recent[c->newest];
    c->rttvar = (3 * c->rttvar + off) / 4;
    c->srtt = (7 * c->srtt + sample) / 8;
    c->rtt_min = sample < c->rtt_min ? sample : c->rtt_min + ((sample - c->rtt_min) >> 12);
    c->jitter = (7 * c->jitter + (sample > last ? sample - last : last - sample)) / 8;
    c->jitter_peak =
        c->jitter > c->jitter_peak ? c->jitter : c->jitter_peak - (c->jitter_peak - c->jitter) / JITTER_FADES;
    c->newest = (c->newest + 1) % CONGESTION_RECENT;
    c->recent[c->newest] = sample;
}

void congestion_sample(struct congestion *c, uint64_t sample, uint64_t now)
{
    uint64_t before = c->recent[c->newest];
    if (c->srtt == 0)
        first_sample(c, sample);
    else
        next_sample(c, sample);
    c->sampled_at = now;
    c->acked_sent_at = now - sample;
    if (c->cwnd < c->ssthresh && min64(sample, before) > 2 * c->rtt_min + QUEUE_SHORT_NS)
        c->ssthresh = c->cwnd;
}

/* Do packets wait on the path? All of the latest round trips are longer than the shortest one, by more than they lately
 * differed from each other; or the latest one is longer by far. */
static bool queue_seen(const struct congestion *c)
{
    uint64_t low = c->recent[0], noise = QUEUE_JITTER * c->jitter_peak, part = c->rtt_min / QUEUE_PART;
    for (uint32_t i = 1; i < CONGESTION_RECENT; i++)
        low = min64(low, c->recent[i]);
    return low > c->rtt_min + (noise > part ? noise : part) ||
           c->recent[c->newest] > 2 * c->rtt_min + QUEUE_SHORT_NS + QUEUE_SUDDEN_JITTER * c->jitter;
}

/* Bytes that the path carries in so many nanoseconds, as far as it is known. */
static uint64_t carried_in(const struct congestion *c, uint64_t ns)
{
    return c->rate / 1000 * (ns / 1000) / 1000;
}

/* The largest window that random losses leave or let grow. If losses are seldom, most windows have none. */
static uint64_t random_window(const struct congestion *c, uint64_t most)
{
    uint64_t path = carried_in(c, c->rtt_min), seldom = c->between / 2, w = path > seldom ? path : seldom;
    return min64(w > CWND_RANDOM ? w : CWND_RANDOM, most);
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

/* The growth after so many acknowledged bytes, when losses have shown that a larger window is too large. */
static uint64_t careful_growth(const struct congestion *c, uint64_t released, uint64_t packet)
{
    uint64_t times = packet > GROWTH_PACKET ? 16 * packet / GROWTH_PACKET : 16; /* in sixteenths */
    uint64_t part = c->cwnd * 256 / (GROWTH_PART * times * times);
    uint64_t longer = min64(1 + c->srtt / GROWTH_RTT_NS, GROWTH_LONGER_MOST);
    uint64_t per_round = min64(part, longer * GROWTH_BYTES * 16 / times + c->cwnd / GROWTH_LARGE_PART);
    return released * (per_round << min32(c->rounds / GROWTH_ROUNDS, GROWTH_DOUBLED_MOST)) / c->cwnd;
}

/* A window that is not in use does not grow: nothing shows that the path could carry more. */
void congestion_progress(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t released,
                         uint64_t inflight, uint64_t packet, uint64_t now)
{
    c->progress_at = now;
    c->carried += released;
    measure_rate(c, released, now);
    if (congestion_is_free(c, cfg) || inflight < c->cwnd / 2)
        return;
    bool short_queue = c->recent[c->newest] < c->rtt_min + QUEUE_MOST_NS;
    if (c->cwnd < c->ssthresh)
        c->cwnd += released / 2;
    else if (congestion_is_random(c) && c->cwnd < random_window(c, most))
        c->cwnd += released / GROWTH_FIRST_PART;
    else if (c->loss_at == 0 && short_queue)
        c->cwnd += released / GROWTH_FIRST_PART;
    else if (short_queue || c->cwnd < cfg->first_window_bytes)
        c->cwnd += careful_growth(c, released, packet);
    c->cwnd = min64(c->cwnd, cfg->peer_window_bytes);
}

/* --- reduction -------------------------------------------------------------------------------- */

/* The window after a loss that shows that it is too large. */
static uint64_t reduced(const struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t packet)
{
    uint64_t w = c->cwnd * (packet > LONG_PACKET_COST ? REDUCED_TENTHS_LONG : REDUCED_TENTHS) / 10;
    uint64_t path = carried_in(c, c->rtt_min + c->jitter), known = min64(min64(path, most), c->cwnd);
    uint64_t least = CWND_LEAST_PKTS * packet;
    w = w > known ? w : known;
    return min64(w > least ? w : least, cfg->peer_window_bytes);
}

static void count_loss(struct congestion *c, uint64_t now)
{
    c->loss_at = now;
    c->between = (7 * c->between + c->carried) / 8;
    c->rounds = 0;
    c->carried = 0;
}

/* Judges a loss. True: the window is too large. */
static bool judge_loss(struct congestion *c)
{
    bool sampled = c->sampled_at > c->loss_at;
    if (c->carried >= c->cwnd)
        c->tight = 0;
    else if (c->tight < TIGHT_LOSSES)
        c->tight++;
    c->queue = sampled && queue_seen(c);
    if (c->queue)
        c->random = 0;
    else if (sampled && c->carried >= c->cwnd && c->random < CONGESTION_RANDOM)
        c->random++;
    else if (c->carried < c->cwnd / 2 && c->random)
        c->random--;
    return c->queue || (c->tight == TIGHT_LOSSES && !congestion_is_random(c));
}

/* Losses within a round trip have one cause. If less than half of the window was in flight, the window is not the
 * cause. */
void congestion_loss(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t inflight,
                     uint64_t packet, uint64_t now)
{
    if (c->loss_at && now - c->loss_at < c->srtt)
        return;
    uint64_t least = judge_loss(c) ? 0 : min64(c->cwnd, random_window(c, most));
    count_loss(c, now);
    if (inflight < c->cwnd / 2)
        return;
    uint64_t w = reduced(c, cfg, most, packet);
    c->cwnd = c->ssthresh = w > least ? w : least;
}

void congestion_timeout(struct congestion *c, const struct engine_config *cfg, uint64_t most, uint64_t packet,
                        uint64_t now)
{
    uint64_t part = congestion_is_random(c) ? c->cwnd : reduced(c, cfg, most, packet);
    /* A further timeout in one outage shows nothing new. The first one has made the window small (RFC 5681, 3.1). */
    bool again = c->loss_at && c->progress_at < c->loss_at;
    if (part < c->ssthresh && !again)
        c->ssthresh = part;
    c->cwnd = min64(CWND_LEAST_PKTS * packet, cfg->peer_window_bytes);
    count_loss(c, now);
}

/* --- the window as before --------------------------------------------------------------------- */

static struct congestion_undo present(const struct congestion *c)
{
    return (struct congestion_undo){c->cwnd, c->ssthresh, c->loss_at, c->tight};
}

static void restore(struct congestion *c, struct congestion_undo *u)
{
    if (u->cwnd == 0)
        return;
    c->cwnd = u->cwnd > c->cwnd ? u->cwnd : c->cwnd;
    c->ssthresh = u->ssthresh > c->ssthresh ? u->ssthresh : c->ssthresh;
    c->loss_at = u->loss_at;
    c->tight = u->tight;
    u->cwnd = 0;
}

void congestion_suspect(struct congestion *c)
{
    c->doubt.undo.cwnd = 0;
    if (c->undo.cwnd == 0 && c->srtt && c->srtt < UNDO_RTT_MOST_NS)
        c->undo = present(c);
}

void congestion_undo(struct congestion *c)
{
    restore(c, &c->undo);
}

/* Packets that are lost soon after others belong to the same window, whose packets may all be late. */
void congestion_suspect_late(struct congestion *c, uint64_t now)
{
    struct congestion_doubt *d = &c->doubt;
    c->undo.cwnd = 0;
    if (d->undo.cwnd && now - d->since < LATE_ROUNDS * c->srtt)
        return;
    *d = (struct congestion_doubt){.undo = present(c), .since = now, .before = d->resent};
}

/* For two round trips, packets that come twice may have been sent again before the loss. */
void congestion_unneeded(struct congestion *c, uint32_t packets, bool all_sent, uint64_t now)
{
    struct congestion_doubt *d = &c->doubt;
    if (now - d->since < 2 * c->srtt) {
        uint32_t before = min32(packets, d->before);
        d->before -= before;
        packets -= before;
    }
    if (d->resent == 0 || packets == 0)
        return;
    d->resent -= min32(packets, d->resent);
    if (d->resent == 0 && all_sent)
        restore(c, &d->undo);
}
