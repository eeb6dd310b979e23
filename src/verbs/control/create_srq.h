// SPDX-License-Identifier: BSD-2-Clause
/* Creating, modifying, querying and destroying shared receive queues: basic ones, those of XRC and those that match
 * tags. ibv_create_srq, ibv_modify_srq, ibv_query_srq and ibv_destroy_srq are exported; these are the functions that a
 * context points to. */
#ifndef PUMICE_SRC_VERBS_CONTROL_CREATE_SRQ_H
#define PUMICE_SRC_VERBS_CONTROL_CREATE_SRQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* ibv_create_srq_ex. On success attr->attr holds the granted limits. NULL with errno on failure. */
struct ibv_srq *vb_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
/* ibv_get_srq_num. 0, or EINVAL: only an SRQ of XRC has a number on the wire. */
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *num);

#endif
