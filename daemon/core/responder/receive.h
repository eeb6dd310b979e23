// SPDX-License-Identifier: BSD-2-Clause
/* The responder of RC and XRC QPs: checks the PSN of a request packet, answers duplicates, has new packets executed,
 * and refuses bad requests by a NAK. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_RECEIVE_H
#define PUMICE_DAEMON_CORE_RESPONDER_RECEIVE_H

#include <stdint.h>

struct pkt;
struct qp;

/* Takes in a request packet. */
void resp_rx(struct qp *qp, const struct pkt *p, uint64_t now);
/* A packet was accepted: if the QP is still in RTR and this is the first one, gives EVENT_COMM_EST. */
void resp_established(struct qp *qp);

#endif
