// SPDX-License-Identifier: BSD-2-Clause
/* ibv_wr_*: send requests that are built field by field between wr_start and wr_complete. The lock of the send queue is
 * held in between, and only wr_complete shows the requests to the daemon. The first failure stays until wr_complete,
 * which then drops the whole batch and returns the error. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_QP_EX_H
#define PUMICE_SRC_VERBS_DATAPATH_QP_EX_H

#include <infiniband/verbs.h>

/* Sets the functions of a QP. */
void vb_qp_ex_ops(struct ibv_qp_ex *qp);

#endif
