// SPDX-License-Identifier: BSD-2-Clause
/* Requests that a program builds with ibv_wr_*. These go through functions of the queue pair. The checker puts its own
 * functions there, which note each request and call those of the library. ibv_wr_complete posts what was noted. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_WR_H
#define PUMICE_SRC_CHECK_REQUESTS_WR_H

#include <infiniband/verbs.h>

/* To be called for a new queue pair with send_ops_flags, with the lock of records.h. */
void wr_replace(struct ibv_qp *ibqp);
/* Frees what was noted for a queue pair that is no longer there. The same lock. */
void wr_forget(const struct ibv_qp *ibqp);

#endif
