// SPDX-License-Identifier: BSD-2-Clause
/* The requester's receiving half: ACKs, NAKs and responses, and the packets that they acknowledge. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_ACK_H
#define PUMICE_DAEMON_CORE_REQUESTER_ACK_H

#include <stdint.h>

struct pkt;
struct qp;

/* Takes in a response packet. */
void req_rx(struct qp *qp, const struct pkt *p, uint64_t now);

#endif
