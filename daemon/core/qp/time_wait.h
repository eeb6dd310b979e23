// SPDX-License-Identifier: BSD-2-Clause
/* What remains of a destroyed QP: enough to acknowledge once more what it had received.
 *
 * The last ACK of a connection may be lost after the application that got the last message has seen all it wanted
 * and destroyed its QP. The peer would then repeat that message to nobody, and report a failure of something that
 * succeeded. So the newest destroyed QPs leave a trace that answers duplicates, and nothing else: what was never
 * received is never acknowledged. */
#ifndef PUMICE_CORE_TIME_WAIT_H
#define PUMICE_CORE_TIME_WAIT_H

#include "daemon/core/engine.h"

#define TIME_WAIT_SLOTS 256u /* newest destroyed QPs that are remembered; a power of two */

struct time_wait {
    uint32_t qpn; /* 0: empty */
    uint32_t dest_qpn;
    uint32_t epsn; /* all before it were received */
    uint32_t msn;
    struct av av; /* of the peer */
    uint8_t service;
    bool ack_pending;
};
struct time_wait_ring {
    struct time_wait slot[TIME_WAIT_SLOTS];
    uint32_t tail; /* free-running index of the next one */
    uint32_t pending; /* ACKs to be sent */
};

/* Remembers a QP that is being destroyed, if it could receive. */
void time_wait_add(struct time_wait_ring *r, const struct qp *qp);
/* A packet for a QP that does not exist. True if it repeats what was received: it will be acknowledged. */
bool time_wait_rx(struct time_wait_ring *r, const struct pkt *p, const struct rx_meta *meta);
/* Appends pending ACKs; false: the batch is full. */
bool time_wait_tx(struct time_wait_ring *r, struct tx_batch *b);

#endif
