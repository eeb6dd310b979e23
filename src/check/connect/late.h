// SPDX-License-Identifier: BSD-2-Clause
/* Receive requests that were posted after the peer had posted their message (RULE_LATE_RECEIVE). Under the lock of
 * records.h. */
#ifndef PUMICE_SRC_CHECK_CONNECT_LATE_H
#define PUMICE_SRC_CHECK_CONNECT_LATE_H

#include "src/check/objects/records.h"

/* The program posts this receive request, the next one of the queue pair. */
void late_check(struct qp_record *q, const struct request *r);

#endif
