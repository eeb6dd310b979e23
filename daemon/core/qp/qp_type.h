// SPDX-License-Identifier: BSD-2-Clause
/* A table of the types of QPs: the service of their packets, and the send requests that may be posted to them (IBA
 * table 96). */
#ifndef PUMICE_DAEMON_CORE_QP_QP_TYPE_H
#define PUMICE_DAEMON_CORE_QP_QP_TYPE_H

#include "daemon/core/base/types.h"

struct qp_type_info {
    bool exists;
    uint8_t service; /* enum op_service */
    uint16_t send_ops; /* bits of enum send_op */
};
#define QP_LOCAL_OPS (1 << WR_BIND_MW | 1 << WR_LOCAL_INV)

/* type: enum qp_type, or any other number, which does not exist. */
const struct qp_type_info *qp_type_info(uint8_t type);

#endif
