// SPDX-License-Identifier: BSD-2-Clause
/* The requester's half of selective repeat: it finds out from the reports of the responder, and from the responses that
 * come, which packets are lost, and which may only be late. requester/send.c sends only the lost ones again, before new
 * ones. As a last resort the requester goes back as without SACKs, and forgets the scoreboard: so it does not matter if the
 * responder has lost what it had received. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_SELECTIVE_H
#define PUMICE_DAEMON_CORE_REQUESTER_SELECTIVE_H

#include "daemon/core/qp/qp.h"

struct sack;

/* Takes in a valid SACK, after una_psn was moved to its expected PSN as far as possible. */
void selective_report(struct qp *qp, const struct sack *s, uint64_t now);
/* The same for a list of missing responses (selective/held_responses.h). */
void selective_responses(struct qp *qp, const struct sack *s, uint64_t now);
/* The time board.wake_at has come: missing packets that might have been late count as lost. */
void selective_expire(struct qp *qp, uint64_t now);

#endif
