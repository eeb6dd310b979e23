// SPDX-License-Identifier: BSD-2-Clause
/* The requester's sending half: from work requests to packets, within the windows. A turn has four steps for each run
 * of packets: choose the request, execute local operations before it, plan its packets (burst.h), and commit them. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_SEND_H
#define PUMICE_DAEMON_CORE_REQUESTER_SEND_H

#include "daemon/core/base/tx_batch.h"

struct qp;

/* Puts packets of the QP's send requests into the batch. */
enum tx_result req_tx(struct qp *qp, struct tx_batch *b, uint64_t now);

#endif
