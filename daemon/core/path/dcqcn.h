// SPDX-License-Identifier: BSD-2-Clause
/* Explicit congestion notification (IBA A17.9). When a switch has marked a packet, the receiver sends a congestion
 * notification packet (CNP) to its sender: at most one per QP and interval. The sender's QP then lowers its rate as
 * DCQCN does: by alpha / 2 of it, once per step. alpha says how congested the path has been. The rate goes back up in
 * steps: first each step goes half of the way to the rate before the cut, later beyond that rate. A QP that reaches the
 * line's rate has no limit any more. */
#ifndef PUMICE_DAEMON_CORE_PATH_DCQCN_H
#define PUMICE_DAEMON_CORE_PATH_DCQCN_H

#include "daemon/core/base/config.h"

#define DCQCN_BURST_MOST 8192u /* bytes that leave together at most, while there is a limit */

struct dcqcn {
    /* receiving */
    bool cnp_due;
    uint64_t cnp_at; /* time when the last CNP became due, ns; 0: never */

    /* sending */
    uint64_t rate; /* bytes per second; 0: no limit */
    uint64_t target; /* the rate before the last cut, or above it */
    uint32_t alpha; /* 65536 is 1 */
    uint32_t steps; /* steps up since the last cut */
    uint64_t alpha_at, step_at; /* times of their last change, ns */
    uint64_t cut_at; /* time of the last cut, ns */
    uint64_t step_ns; /* time between two steps, and between two cuts */
    /* The limit has risen since it was set. Before that, each CNP cuts: the first rate is a guess. */
    bool rose;
    /* With a limit: no packet leaves before this time, ns. */
    uint64_t next_at;
    bool waiting; /* packets wait for next_at */
    bool late; /* packets waited, and may make up for a timer that came late */
    /* without a limit: bytes sent since the time sent_since. The first cut starts from this rate */
    uint64_t sent, sent_since;
};

/* A marked packet came in. True: a CNP has become due (cnp_due). */
bool dcqcn_marked(struct dcqcn *c, const struct engine_config *cfg, uint64_t now);
/* A CNP came in. rtt: the shortest round trip of the path, ns; 0: not known. */
void dcqcn_cnp(struct dcqcn *c, const struct engine_config *cfg, uint64_t rtt, uint64_t now);
/* Bytes that may leave now. A packet that begins within them may leave as a whole. 0: none, the deadline says when.
 * UINT32_MAX: no limit. */
uint32_t dcqcn_allows(struct dcqcn *c, const struct engine_config *cfg, uint64_t now);
/* So many bytes were put into a batch. */
void dcqcn_sent(struct dcqcn *c, uint64_t bytes, uint64_t now);
/* When the bytes that wait may leave, ns; NEVER: none wait. */
static inline uint64_t dcqcn_deadline(const struct dcqcn *c)
{
    return c->waiting ? c->next_at : NEVER;
}
/* To be called at the deadline. True: the bytes that waited may leave now. */
bool dcqcn_expire(struct dcqcn *c, uint64_t now);

#endif
