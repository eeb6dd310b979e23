// SPDX-License-Identifier: BSD-2-Clause
/* Fails a send request, and with it the QP. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_FAILURE_H
#define PUMICE_DAEMON_CORE_REQUESTER_FAILURE_H

#include <stdint.h>

struct qp;

/* The oldest unacknowledged request fails with this enum wc_status. cause: the completion's vendor_err. The QP goes to
 * ERR; to SQE if it is unreliable. */
void req_fail(struct qp *qp, uint8_t status, uint8_t cause);

#endif
