// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups of a device: each that some queue pair is in has a socket of its own, which is a member of the group
 * for the network (IGMP, MLD) while it is open. Which queue pairs get a copy is the engine's. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_MCAST_GROUP_H
#define PUMICE_DAEMON_OBJECTS_QP_MCAST_GROUP_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/clock.h"
#include "daemon/net/peer_cache.h"
#include "daemon/objects/qp/qp.h"

struct device;

#define MCAST_GROUP_HOT_NS NS_PER_MS

struct mcast_group {
    struct device *device;
    uint8_t gid[16];
    unsigned members; /* queue pairs */
    int fd; /* -1 in tests that have no network */
    ev_io readable;
    uint64_t hot_until; /* each pass looks at the socket until then; later the loop's poll has to tell */
    struct peers peers; /* senders */
    TAILQ_ENTRY(mcast_group) link;
};

struct membership { /* of a queue pair */
    struct mcast_group *group;
    LIST_ENTRY(membership) link;
};

struct control_reply;
struct session;
/* Control operations: ATTACH_MCAST and DETACH_MCAST. 0, or -errno with the reason in *rp. */
int mcast_group_attach(struct session *s, const void *rq, struct control_reply *rp);
int mcast_group_detach(struct session *s, const void *rq, struct control_reply *rp);

/* Is this a packet of the device itself, that the kernel brought back? Members here have got it already. */
bool mcast_group_is_echo(const struct mcast_group *g, const uint8_t src_gid[16]);

/* For a queue pair that goes; the engine has forgotten it, or will. */
void mcast_group_leave_all(struct membership_list *memberships);

#endif
