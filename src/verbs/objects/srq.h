// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues, for the rest of the library.
 *
 * Requests of an SRQ complete out of order, so their slots in the ring say nothing once the daemon has read them.
 * Each outstanding request has a number, its cookie, and the library keeps the request's SGEs under it. Cookies are
 * free again when the completion was polled. */
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include "src/verbs/base/objects.h"

/* Ends the request with that cookie: len bytes of data that came with its completion go to its SGEs (len 0: none), and
 * its place is free. The caller holds the SRQ's lock, and gives the completion's place back before it lets that go. */
void vb_srq_retire(struct vb_srq *srq, uint32_t wqe_index, const uint8_t *data, uint32_t len);

/* What the library completes by itself after the daemon's death. */
struct vb_flushed {
    uint64_t wr_id;
    uint8_t opcode; /* enum ibv_wc_opcode */
};
/* The daemon is dead: ends the next of what is outstanding in the SRQ, operations on its matching list first, then what the list
 * holds, then receive requests. False: nothing is. The caller holds the lock of a CQ where the SRQ's completions go. */
bool vb_srq_flush_next(struct vb_srq *srq, struct vb_flushed *out);

/* Distributes len bytes over num SGEs, which the daemon has checked. */
void vb_scatter(const struct pm_sge *sge, uint32_t num, const uint8_t *data, uint32_t len);

#endif
