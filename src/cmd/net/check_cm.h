// SPDX-License-Identifier: BSD-2-Clause
/* The check of `pumice doctor` that concerns programs that connect by rdma_cm. */
#ifndef PUMICE_SRC_CMD_NET_CHECK_CM_H
#define PUMICE_SRC_CMD_NET_CHECK_CM_H

#include "src/cmd/net/doctor_report.h"

/* Checks librdmacm, which these programs use: whether it is installed, its version, and whether the client library has
 * the symbols that it imports. Says if this machine also has the kernel's own rdma_cm. */
void check_cm(struct doctor_report *report);

#endif
