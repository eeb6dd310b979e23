// SPDX-License-Identifier: BSD-2-Clause
/* Takes send requests off the send queue, in order, and makes their completions: requests that are done, and after a
 * failure the requests that are flushed. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_RETIRE_H
#define PUMICE_DAEMON_CORE_REQUESTER_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

/* Completes the requests that were acknowledged. A request that failed locally fails when all requests before it are
 * done. True: completions wait for room. */
bool req_retire(struct qp *qp, uint64_t now);
/* Flushes the requests of a failed QP. True: completions wait for room. */
bool req_flush(struct qp *qp, uint64_t now);
/* In SQD, gives the event that the send queue has drained, once. */
void req_drained(struct qp *qp);

#endif
