// SPDX-License-Identifier: BSD-2-Clause
/* Moves a QP to its error states: ERR, or SQE for unreliable QPs. */
#ifndef PUMICE_DAEMON_CORE_QP_QP_FAIL_H
#define PUMICE_DAEMON_CORE_QP_QP_FAIL_H

#include <stdint.h>

struct pkt;
struct qp;

/* Moves the QP to ERR. It sends nothing more, except a pending NAK or ACK. All its requests will be flushed. */
void qp_fail(struct qp *qp);
/* UC, UD: moves the QP to SQE. Its send requests will be flushed, and its responder goes on (IBA 10.3.1.6). */
void qp_fail_sends(struct qp *qp);
/* Refuses the peer's request: the QP sends a NAK that ends the connection, and goes to ERR. p: the packet, for the
 * report; NULL: the packet is not at hand any more. */
void qp_fail_with_nak(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p);

#endif
