// SPDX-License-Identifier: BSD-2-Clause
/* The requester's sending half: from work requests to packets, within the windows.
 *
 * A turn plans a run of packets for each request it gets to, and writes their headers at once. Then it gathers the payload of all of
 * them with one upcall, because a copy from client memory costs the same for one packet as for sixty. */
#ifndef PUMICE_CORE_REQUESTER_SEND_H
#define PUMICE_CORE_REQUESTER_SEND_H

#include "daemon/core/base/tx_batch.h"

struct qp;

/* Puts packets of the QP's send requests into the batch. */
enum tx_result req_tx(struct qp *qp, struct tx_batch *b, uint64_t now);

#endif
