// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups: which UD QPs get a copy of what is sent to a group (IBA 10.5.2). */
#ifndef PUMICE_CORE_MCAST_H
#define PUMICE_CORE_MCAST_H

#include "daemon/core/base/list.h"
#include "daemon/core/engine.h"

#define MCAST_BUCKETS 64u /* a power of two */

struct mcast_member { /* one QP in one group */
    struct list_node group; /* in mcast.bucket, or in mcast.unused */
    struct list_node of_qp; /* in qp.groups */
    struct qp *qp;
    uint8_t gid[16];
};
struct mcast {
    struct list_node bucket[MCAST_BUCKETS]; /* of members, by hash of the group */
    struct list_node unused;
    struct mcast_member *members; /* [size] */
    uint32_t size;
    uint32_t untouched; /* those from here on were never used */
};

/* members: size zeroed ones. */
void mcast_init(struct mcast *m, struct mcast_member *members, uint32_t size);
/* Takes the QP out of all groups. */
void mcast_leave_all(struct mcast *m, struct qp *qp);
/* The member after `at` (NULL: the first) of the group, NULL: none. Valid until somebody joins or leaves. */
struct mcast_member *mcast_next(const struct mcast *m, const uint8_t gid[16], struct mcast_member *at);

#endif
