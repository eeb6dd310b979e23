// SPDX-License-Identifier: BSD-2-Clause
/* Changes the attributes and the state of a QP (ibv_modify_qp). A table says which attributes each transition of the
 * state needs and allows, for each type of QP (IBA 11.2.5.2, table 91). */
#ifndef PUMICE_DAEMON_CORE_CONTROL_QP_MODIFY_H
#define PUMICE_DAEMON_CORE_CONTROL_QP_MODIFY_H

#include "daemon/core/base/types.h"

struct qp;

/* Changes attributes and state, all or nothing. -EINVAL leaves the QP as it was. *why, if why is not NULL, receives a
 * static text that says which rule was broken, or NULL. */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask, const char **why);

#endif
