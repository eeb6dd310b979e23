// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable connections (IBA 9.8.2). A send request is done when its last packet has been handed out
 * (requester/send.c). The responder acknowledges nothing, and carries out messages that arrive whole and in sequence.
 * It drops everything else silently: a message with a gap, up to the next message that begins; a message without a
 * receive request; a message that keys or rights do not allow (IBA 9.8.2.2; class D of its errors). Only if the user's
 * own receive request is at fault, that request completes with the error and the QP goes to ERR. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_UC_H
#define PUMICE_DAEMON_CORE_RESPONDER_UC_H

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct qp;

/* Takes in a packet. */
void uc_rx(struct qp *qp, const struct pkt *p, uint64_t now);
/* A deferred write for this UC or UD QP failed. reported: a completion says so. */
void uc_mem_fault(struct qp *qp, bool reported);

#endif
