// SPDX-License-Identifier: BSD-2-Clause
/* The responder's sending half: responses to READs, atomics and the like in the order of their PSNs, then a NAK or an
 * ACK. An ACK never overtakes a response, because it would tell the requester that the response was lost (IBA
 * 9.7.5.1.3). */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_REPLY_H
#define PUMICE_DAEMON_CORE_RESPONDER_REPLY_H

#include "daemon/core/base/tx_batch.h"

struct qp;

/* Puts responses and acknowledgements into the batch. */
enum tx_result resp_tx(struct qp *qp, struct tx_batch *b, uint64_t now);

#endif
