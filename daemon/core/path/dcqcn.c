// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/dcqcn.h"

#include "daemon/core/base/min.h"

#define ALPHA_ONE 65536u
/* Each CNP, and each interval without a CNP, moves alpha by 1/256 of the distance to 1 or to 0. */
#define ALPHA_SHIFT 8
#define ALPHA_NS 55000u
/* Time between two steps up, and between two cuts. It is longer where the path's round trip is longer. All packets that left
 * before a cut may bring further CNPs: they tell nothing new, and a cut for each would empty the path. */
#define STEP_NS 300000u
#define STEP_MOST_NS 100000000u
/* Each step goes half of the way to a target. For the first FAST_STEPS this is the rate before the cut. Each later step
 * first raises the target by a small part of the line rate: senders that share a path come to equal rates so, and their
 * queue stays short. After ADD_STEPS without a CNP the path is free, and the raises become larger from step to step. But each is a small part
 * of the target at most: a mark takes some steps to come back when a queue is long. */
#define FAST_STEPS 5u
#define ADD_STEPS 50u
#define ADD_DIVISOR 8000u /* of the line rate */
#define GROW_DIVISOR 32u /* of the target */
#define MIN_DIVISOR 4000u /* the lowest rate, as a part of the line rate */
/* While there is a limit, the bytes of BURST_NS leave together, but not less than BURST_LEAST nor more than DCQCN_BURST_MOST. Longer bursts would fill a queue beyond
 * its threshold for marks although the rate is right. */
#define BURST_NS 50000u
#define BURST_LEAST 2048u
#define LATE_NS 200000u /* a sender that waited and comes late makes up for so much */
#define MEASURE_NS 1000000u /* how long the rate of a QP without a limit is measured */
#define NS_PER_S 1000000000u

/* --- the receiver of marks -------------------------------------------------------------------- */

bool dcqcn_marked(struct dcqcn *c, const struct engine_config *cfg, uint64_t now)
{
    if (!cfg->ecn || c->cnp_due || (c->cnp_at && now - c->cnp_at < cfg->cnp_interval_ns))
        return false;
    c->cnp_due = true;
    c->cnp_at = now;
    return true;
}

/* --- the sender ------------------------------------------------------------------------------- */

static uint64_t lowest(const struct engine_config *cfg)
{
    return cfg->line_rate / MIN_DIVISOR;
}

/* The rate that the QP has been sending at, as far as it is known. */
static uint64_t measured(const struct dcqcn *c, const struct engine_config *cfg, uint64_t now)
{
    uint64_t line = cfg->line_rate;
    uint64_t ns = now - c->sent_since;
    if (c->sent == 0 || ns < MEASURE_NS / 20 || ns > 2 * (uint64_t)MEASURE_NS)
        return line;
    uint64_t rate = c->sent * NS_PER_S / ns;
    return rate < lowest(cfg) ? lowest(cfg) : rate < line ? rate : line;
}

static void step_up(struct dcqcn *c, const struct engine_config *cfg)
{
    uint64_t line = cfg->line_rate;
    c->rose = true;
    if (++c->steps > FAST_STEPS)
        c->target += line / ADD_DIVISOR;
    if (c->steps > ADD_STEPS)
        c->target += min64(line / ADD_DIVISOR * (c->steps - ADD_STEPS), c->target / GROW_DIVISOR);
    c->rate = (c->rate + c->target) / 2;
    if (c->rate >= line) {
        c->rate = 0;
        c->sent = 0;
    }
}

/* Makes all changes that depend only on time. */
static void catch_up(struct dcqcn *c, const struct engine_config *cfg, uint64_t now)
{
    while (c->rate && now - c->step_at >= c->step_ns) {
        c->step_at += c->step_ns;
        step_up(c, cfg);
    }
    if (!c->rate)
        return;
    for (; now - c->alpha_at >= ALPHA_NS; c->alpha_at += ALPHA_NS)
        c->alpha -= c->alpha >> ALPHA_SHIFT;
}

static void raise_alpha(struct dcqcn *c, uint64_t now)
{
    c->alpha += (ALPHA_ONE - c->alpha) >> ALPHA_SHIFT;
    c->alpha_at = now;
}

void dcqcn_cnp(struct dcqcn *c, const struct engine_config *cfg, uint64_t rtt, uint64_t now)
{
    if (!cfg->ecn)
        return;
    catch_up(c, cfg, now);
    if (c->rate && c->rose && now - c->cut_at < c->step_ns) {
        /* On a long path, all CNPs of a round trip tell of one queue. They count once, with the cut. */
        if (c->step_ns == STEP_NS)
            raise_alpha(c, now);
        return;
    }
    c->step_ns = rtt > STEP_NS ? min64(rtt, STEP_MOST_NS) : STEP_NS;
    if (c->rate == 0) {
        c->rate = measured(c, cfg, now);
        c->alpha = ALPHA_ONE;
        c->rose = false;
        c->next_at = now;
    }
    c->target = c->rate;
    c->rate -= (uint64_t)((c->rate / 2 * c->alpha) / ALPHA_ONE);
    if (c->rate < lowest(cfg))
        c->rate = lowest(cfg);
    raise_alpha(c, now);
    c->steps = 0;
    c->step_at = c->cut_at = now;
}

/* Bytes that leave together. */
static uint32_t burst(const struct dcqcn *c)
{
    uint64_t bytes = c->rate * BURST_NS / NS_PER_S;
    return bytes < BURST_LEAST ? BURST_LEAST : bytes < DCQCN_BURST_MOST ? (uint32_t)bytes : DCQCN_BURST_MOST;
}

uint32_t dcqcn_allows(struct dcqcn *c, const struct engine_config *cfg, uint64_t now)
{
    if (c->rate)
        catch_up(c, cfg, now);
    if (!c->rate)
        return UINT32_MAX;
    if (c->next_at <= now)
        return burst(c);
    c->waiting = true;
    return 0;
}

void dcqcn_sent(struct dcqcn *c, uint64_t bytes, uint64_t now)
{
    if (c->rate) {
        uint64_t least = c->late ? now - min64(now, LATE_NS) : now;
        c->next_at = (c->next_at > least ? c->next_at : least) + bytes * NS_PER_S / c->rate;
        c->late = c->late && c->next_at < now;
        return;
    }
    if (c->sent == 0 || now - c->sent_since > MEASURE_NS) {
        c->sent = 0;
        c->sent_since = now;
    }
    c->sent += bytes;
}

bool dcqcn_expire(struct dcqcn *c, uint64_t now)
{
    if (!c->waiting || c->next_at > now)
        return false;
    c->waiting = false;
    c->late = true;
    return true;
}
