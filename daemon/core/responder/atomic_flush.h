// SPDX-License-Identifier: BSD-2-Clause
/* The responder's part of the memory extensions (IBA A19): ATOMIC WRITE and FLUSH. Both are answered by a READ response
 * without data, which replaces the ACK. Both take a resource, so that a duplicate is answered once more and not carried
 * out again.
 *
 * FLUSH has nothing to carry out: the writes of earlier packets are in memory before any packet leaves that was made
 * after them (mem_ops.h). So when the response leaves, these writes are visible to everybody. No region can be
 * registered as persistent. So no key allows a FLUSH to persistence. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_ATOMIC_FLUSH_H
#define PUMICE_DAEMON_CORE_RESPONDER_ATOMIC_FLUSH_H

#include "daemon/core/responder/request.h"

/* Do the QP's attributes allow this ATOMIC WRITE or FLUSH? */
enum rx_verdict memext_granted(const struct qp *qp, const struct pkt *p);
/* Carries it out, if the key allows it. */
enum rx_verdict memext_execute(struct qp *qp, const struct pkt *p);

#endif
