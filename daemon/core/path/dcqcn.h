// SPDX-License-Identifier: BSD-2-Clause
/* Explicit congestion notification (IBA A17.9, row E28). A packet that a switch has marked is answered by a congestion
 * notification packet (CNP) to its sender, at most one per QP and interval. The sender's QP then lowers its rate, in the way
 * of DCQCN: by half of alpha, which says how congested the path has been, and goes back up in steps, first half of the way
 * to where it was, then beyond. A QP that reaches the line's rate has no limit any more. */
#ifndef PUMICE_CORE_ECN_H
#define PUMICE_CORE_ECN_H

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct tx_batch;

struct ecn {
    /* receiving */
    bool cnp_due;
    uint64_t cnp_at; /* when the last CNP became due, ns; 0: never */

    /* sending */
    uint64_t rate; /* bytes per second; 0: no limit */
    uint64_t target; /* the rate before the last cut, or beyond */
    uint32_t alpha; /* 65536 is 1 */
    uint32_t steps; /* up since the last cut */
    uint64_t alpha_at, step_at; /* when they changed last, ns */
    uint64_t next_at; /* with a limit: nothing leaves before, ns */
    bool waiting; /* something wants to leave at next_at */
    uint64_t sent, sent_since; /* bytes since then, while there is no limit: what the first cut starts from */
};

/* A marked packet came for the QP. */
void ecn_marked(struct qp *qp, uint64_t now);
/* Appends a CNP if one is due; false: the batch is full. */
bool ecn_tx(struct qp *qp, struct tx_batch *b);
/* A CNP came. */
void ecn_cnp(struct qp *qp, uint64_t now);
/* Bytes that may leave now, a packet that begins below it included; 0: none, the QP is woken in time. UINT32_MAX: no
 * limit. */
uint32_t ecn_allows(struct qp *qp, uint64_t now);
void ecn_sent(struct qp *qp, uint64_t bytes, uint64_t now);
uint64_t ecn_deadline(const struct qp *qp);
void ecn_expire(struct qp *qp, uint64_t now);

#endif
