// SPDX-License-Identifier: BSD-2-Clause
/* Creating, resizing, modifying and destroying completion queues. ibv_create_cq, ibv_resize_cq and ibv_destroy_cq are
 * exported; these are the functions that a context points to. */
#ifndef PUMICE_SRC_VERBS_CONTROL_CREATE_CQ_H
#define PUMICE_SRC_VERBS_CONTROL_CREATE_CQ_H

#include <infiniband/verbs.h>

/* ibv_create_cq_ex: NULL with errno on failure. EOPNOTSUPP: a field or flag that this device lacks. */
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
/* ibv_modify_cq: moderation of events. 0 or errno value. */
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

#endif
