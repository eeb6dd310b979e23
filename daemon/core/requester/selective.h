// SPDX-License-Identifier: BSD-2-Clause
/* The requester's half of selective repeat: it sends again only what the responder reports as missing. Missing packets go
 * before new ones, and keep to the windows. As a last resort the requester goes back as without SACKs, and forgets the
 * scoreboard: so it does not matter if the responder has lost what it had received. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_SELECTIVE_H
#define PUMICE_DAEMON_CORE_REQUESTER_SELECTIVE_H

#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/burst.h"

/* Takes in a valid SACK, after una_psn was moved to its expected PSN as far as possible. */
void selective_report(struct qp *qp, const struct sack *s, uint64_t now);
/* Plans the missing packets that are due. False: the turn is over, with this result. */
bool selective_send(struct burst *s, enum tx_result *result);

#endif
