// SPDX-License-Identifier: BSD-2-Clause
/* A burst: the packets that a QP sends in one turn. The turn plans a run of packets for each request that it comes to,
 * and writes their headers at once. Then it gathers the payload of all runs with one call of mem_ops.read. A copy from
 * client memory costs the same for one packet as for sixty. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_BURST_H
#define PUMICE_DAEMON_CORE_REQUESTER_BURST_H

#include "daemon/core/base/mem_ops.h"
#include "daemon/core/base/tx_batch.h"
#include "daemon/core/qp/qp.h"

#define BURST_SEGMENTS 256u
#define BURST_RUNS TX_BATCH_PKTS

struct run { /* consecutive packets of one request */
    uint32_t index; /* of the request */
    uint32_t psn; /* of its first packet */
    uint32_t pkt0; /* packets and bytes of the batch before the run */
    size_t used0;
    unsigned segment0, segments; /* its part of burst.segment */
    unsigned buf0, bufs; /* its part of burst.buf */
};
struct burst {
    struct qp *qp;
    struct tx_batch *b;
    uint64_t now;
    uint32_t budget; /* payload bytes left in this turn */
    uint32_t resends; /* packets that may still be sent again in this turn */
    uint32_t sent0; /* sent_psn at the start */
    unsigned runs, segments, bufs;
    struct mem_segment segment[BURST_SEGMENTS]; /* where the payload is */
    struct buf buf[TX_BATCH_PKTS]; /* where the payload is copied to */
    struct run run[BURST_RUNS];
};

/* Starts a burst. */
void burst_init(struct burst *s, struct qp *qp, struct tx_batch *b, uint32_t budget, uint64_t now);
/* Has the turn sent as much as it may? */
bool burst_is_spent(const struct burst *s);
/* How many packets of the request, from packet off on, fit into the rest of the turn and of the batch. 0: the batch is
 * full. */
uint32_t burst_room(const struct burst *s, const struct send_wqe *w, uint32_t off);

enum plan_verdict {
    PLAN_OK,
    PLAN_FULL, /* the batch has no room for the first packet */
    PLAN_FAILED, /* memory of the request can't be read or written: WC_LOC_PROT_ERR */
};
/* Plans packets [off, off + *n) of a request, or for a READ the one request packet that asks for them. *n becomes the
 * number of PSNs that were planned; fewer than asked for if the batch has no room for all. */
enum plan_verdict burst_plan(struct burst *s, uint32_t index, uint32_t off, uint32_t *n);
/* Gathers the payload of all runs. If some memory can't be read, the first request with such memory fails
 * (local_error). Its packets and the packets after them are taken back, and the requester goes back to the first of
 * them. */
void burst_gather(struct burst *s);

#endif
