// SPDX-License-Identifier: BSD-2-Clause
/* The responder's half of selective repeat: it keeps requests that came before a missing one (base/reorder.h), and reports
 * what is missing (wire/pumice/sack.h). It does so only for peers that understand the report; others get a NAK, and send
 * everything again from the missing packet on. */
#ifndef PUMICE_DAEMON_CORE_SELECTIVE_HELD_REQUESTS_H
#define PUMICE_DAEMON_CORE_SELECTIVE_HELD_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/tx_batch.h"

struct pkt;
struct qp;

/* A request packet came before an earlier one. True: it is kept, or the peer learns from a SACK that it is missing. False:
 * the peer has to go back. */
bool resp_hold(struct qp *qp, const struct pkt *p, uint64_t now);
/* Sends the SACK that is due, if something is still missing. False: the batch is full. */
bool resp_send_sack(struct qp *qp, struct tx_batch *b);

#endif
