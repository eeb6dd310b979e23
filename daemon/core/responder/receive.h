// SPDX-License-Identifier: BSD-2-Clause
/* The responder of RC and XRC QPs: checks the PSN of a request packet, answers duplicates, has new packets executed,
 * and refuses bad requests by a NAK. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_RECEIVE_H
#define PUMICE_DAEMON_CORE_RESPONDER_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct pkt_run;
struct qp;
struct rx_meta;
struct time_wait;

/* Takes in a request packet. */
void resp_rx(struct qp *qp, const struct pkt *p, uint64_t now);
/* Takes in a run of request packets. False: it was not taken in, and the packets are to be taken in one by one. */
bool resp_rx_run(struct qp *qp, const struct pkt_run *r, uint64_t now);
/* What time wait is to remember of a QP. False: it could not receive, or it failed. */
bool resp_received(const struct qp *qp, struct time_wait *e);
/* Takes in a packet for a QP that may not receive. True: the packet repeats one that the QP had received before its
 * program moved it to ERR, and it will be acknowledged. */
bool resp_rx_closed(struct qp *qp, const struct pkt *p, const struct rx_meta *meta);
/* A packet was accepted: if the QP is still in RTR and this is the first one, gives EVENT_COMM_EST. */
void resp_established(struct qp *qp);

#endif
