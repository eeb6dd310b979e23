// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: the device has none (max_srq is 0). */
#include <errno.h>

#include "ops.h"

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    (void)pd, (void)attr;
    return vb_null(-EOPNOTSUPP);
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    (void)srq, (void)attr, (void)mask;
    return vb_err(-EOPNOTSUPP);
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    (void)srq, (void)attr;
    return vb_err(-EOPNOTSUPP);
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    (void)srq;
    return vb_err(-EOPNOTSUPP);
}
