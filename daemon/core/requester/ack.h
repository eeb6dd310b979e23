// SPDX-License-Identifier: BSD-2-Clause
/* The requester's receiving half: ACKs, NAKs and responses, and the packets that they acknowledge. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_ACK_H
#define PUMICE_DAEMON_CORE_REQUESTER_ACK_H

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct pkt_run;
struct qp;
struct rx_meta;
struct sack;

/* Takes in a response packet. */
void req_rx(struct qp *qp, const struct pkt *p, uint64_t now);
/* Takes in a run of responses to a READ. False: it was not taken in, and the packets are to be taken in one by one. */
bool req_rx_run(struct qp *qp, const struct pkt_run *r, uint64_t now);
/* Takes in a SACK that is addressed to the QP. False: it does not come from its peer. */
bool req_rx_sack(struct qp *qp, const struct sack *s, const struct rx_meta *meta, uint64_t now);

#endif
