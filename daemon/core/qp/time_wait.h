// SPDX-License-Identifier: BSD-2-Clause
/* Remembers destroyed QPs, to acknowledge duplicates of the packets that they had received.
 *
 * The last ACK of a connection may be lost after the application has its last message and destroys its QP. The peer
 * would then repeat that message to a QP that does not exist, and report a failure of a message that arrived. So the
 * engine remembers the newest destroyed QPs. It acknowledges duplicates for them. It never acknowledges a packet that
 * the QP had not received.
 *
 * The same goes for a QP that its program moved to ERR, as rdma_disconnect does before the QP is destroyed. */
#ifndef PUMICE_DAEMON_CORE_QP_TIME_WAIT_H
#define PUMICE_DAEMON_CORE_QP_TIME_WAIT_H

#include "daemon/core/base/rx_meta.h"
#include "daemon/core/base/tx_batch.h"

#define TIME_WAIT_SLOTS 256u /* most destroyed QPs that are remembered; a power of two */

struct time_wait {
    uint32_t qpn; /* 0: empty */
    uint32_t dest_qpn;
    uint32_t ack_psn, ack_msn; /* of its ACKs: the last packet that was received and has no response of its own */
    struct av av; /* of the peer */
    uint8_t service;
    bool ack_pending;
};
struct time_wait_ring {
    struct time_wait slot[TIME_WAIT_SLOTS];
    uint32_t tail; /* free-running index of the next one */
    uint32_t pending; /* ACKs to be sent */
};

/* Does the packet repeat one that the QP had received? */
bool time_wait_covers(const struct time_wait *e, const struct pkt *p, const struct rx_meta *meta);

/* Remembers a QP that is being destroyed. */
void time_wait_add(struct time_wait_ring *r, const struct time_wait *qp);
/* Takes in a packet for a QP that does not exist. True: a destroyed QP had received it, and it will be acknowledged. */
bool time_wait_rx(struct time_wait_ring *r, const struct pkt *p, const struct rx_meta *meta);
/* Appends pending ACKs. False: the batch is full. */
bool time_wait_tx(struct time_wait_ring *r, struct tx_batch *b);

#endif
