// SPDX-License-Identifier: BSD-2-Clause
/* Makes the completions of a QP. */
#ifndef PUMICE_DAEMON_CORE_COMPLETE_H
#define PUMICE_DAEMON_CORE_COMPLETE_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

/* Retires acknowledged requests and flushes those of a failed QP as far as the completion queue has room. True:
 * something is left. */
bool qp_complete(struct qp *qp, uint64_t now);

#endif
