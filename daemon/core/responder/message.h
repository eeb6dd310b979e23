// SPDX-License-Identifier: BSD-2-Clause
/* Messages that go to a receive request: SENDs, and the end of an RDMA WRITE with immediate data. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_MESSAGE_H
#define PUMICE_DAEMON_CORE_RESPONDER_MESSAGE_H

#include "daemon/core/responder/request.h"

/* Carries out a packet of a SEND in the receive request in use (resp_fetch_recv), which must exist. props: the packet's, or
 * those of a run (execute.h). */
enum rx_verdict resp_send(struct qp *qp, const struct pkt *p, uint16_t props, uint64_t now);
/* The message is complete with packet p: completes its receive request. opcode: enum wc_opcode. inline_data: the
 * packet's payload, if it travels in the completion; else NULL. */
void resp_deliver(struct qp *qp, const struct pkt *p, uint8_t opcode, const uint8_t *inline_data, uint64_t now);

#endif
