// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups: which UD QPs get a copy of a packet that is sent to a group (IBA 10.5.2). */
#ifndef PUMICE_DAEMON_CORE_PATH_MCAST_H
#define PUMICE_DAEMON_CORE_PATH_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/list.h"

#define MCAST_BUCKETS 64u /* a power of two */

struct qp;

/* One QP in one group. */
struct mcast_member {
    struct list_node group; /* in mcast.bucket, or in mcast.unused */
    struct list_node of_qp; /* in the QP's list of groups */
    struct qp *qp;
    uint8_t gid[16];
};
struct mcast {
    struct list_node bucket[MCAST_BUCKETS]; /* lists of members, by hash of the group */
    struct list_node unused;
    struct mcast_member *members; /* [size] */
    uint32_t size;
    uint32_t untouched; /* members from here on were never used */
};

/* members: `size` zeroed entries. */
void mcast_init(struct mcast *m, struct mcast_member *members, uint32_t size);
/* Adds the QP to a group, and the membership to the QP's list of groups. Joining twice counts once. -ENOMEM: no
 * room. */
int mcast_join(struct mcast *m, struct qp *qp, struct list_node *groups, const uint8_t gid[16]);
/* -ENOENT: the QP is no member. */
int mcast_leave(struct mcast *m, struct qp *qp, const uint8_t gid[16]);
/* Takes a QP out of all groups of its list. */
void mcast_leave_all(struct mcast *m, struct list_node *groups);
/* The member after `at` (NULL: the first) of the group; NULL: there is none. Valid until some QP joins or leaves a
 * group. */
struct mcast_member *mcast_next(const struct mcast *m, const uint8_t gid[16], struct mcast_member *at);

#endif
