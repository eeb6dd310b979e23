// SPDX-License-Identifier: BSD-2-Clause
/* Creating, opening and destroying queue pairs of all types. ibv_create_qp, ibv_qp_to_qp_ex and ibv_destroy_qp are
 * exported; these are the functions that a context points to. */
#ifndef PUMICE_SRC_VERBS_CONTROL_CREATE_QP_H
#define PUMICE_SRC_VERBS_CONTROL_CREATE_QP_H

#include <infiniband/verbs.h>

/* ibv_create_qp_ex. On success attr->cap holds the granted limits. NULL with errno on failure. EOPNOTSUPP: this device
 * lacks the type, a flag or an operation. EINVAL: an object is missing or of another context, or a limit is too
 * high. */
struct ibv_qp *vb_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
/* ibv_open_qp: a handle of an XRC target that another process made. NULL with errno on failure. */
struct ibv_qp *vb_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);

#endif
