// SPDX-License-Identifier: BSD-2-Clause
/* The order of a QP's ACK and of its own data in a batch. */
#ifndef PUMICE_DAEMON_CORE_ACK_ORDER_H
#define PUMICE_DAEMON_CORE_ACK_ORDER_H

#include <stdbool.h>

#include "daemon/core/base/tx_batch.h"
#include "daemon/core/qp/qp.h"

/* May a plain ACK wait until the QP's data are in the batch?
 *
 * A message that took a receive request wakes a program, and the data may be its answer. The ACK goes before them, as a
 * NIC sends it: the peer's program may rely on it that its request completes before the answer comes, as perftest does
 * with events. An ACK that reaches the peer together with the answer costs least.
 *
 * A program that polls its memory for a WRITE relies on no such order. If its peer got the ACK first, the peer would
 * poll its own memory for the answer while the daemon needs the processor to receive it. So the ACK goes behind. */
bool ack_order_may_wait(const struct qp *qp, const struct tx_batch *b);

#endif
