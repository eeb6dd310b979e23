// SPDX-License-Identifier: BSD-2-Clause
/* Explicit congestion notification (IBA A17.9). When a switch has marked a packet, the receiver sends a congestion
 * notification packet (CNP) to its sender: at most one per QP and interval. The sender's QP then lowers its rate as
 * DCQCN does: by alpha / 2 of it. alpha says how congested the path has been. The rate goes back up in steps: first
 * each step goes half of the way to the rate before the cut, later beyond that rate. A QP that reaches the line's rate
 * has no limit any more. */
#ifndef PUMICE_DAEMON_CORE_PATH_DCQCN_H
#define PUMICE_DAEMON_CORE_PATH_DCQCN_H

#include "daemon/core/base/config.h"

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
    /* With a limit: no packet leaves before this time, ns. */
    uint64_t next_at;
    bool waiting; /* packets wait for next_at */
    /* without a limit: bytes sent since the time sent_since. The first cut starts from this rate */
    uint64_t sent, sent_since;
};

/* A marked packet came in. True: a CNP has become due (cnp_due). */
bool dcqcn_marked(struct dcqcn *c, const struct engine_config *cfg, uint64_t now);
/* A CNP came in. */
void dcqcn_cnp(struct dcqcn *c, const struct engine_config *cfg, uint64_t now);
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
