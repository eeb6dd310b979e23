// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups of a device. Each group with a member QP has its own socket in each address family of the device,
 * because the source address of a sender decides in which family its packets travel (gid_to_addr). While a socket is
 * open, the network treats it as a member of the group (IGMP, MLD). The engine decides which QPs get a copy of a
 * packet. */
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

/* After a packet of the group, each pass receives from its socket for this long. */
#define MCAST_GROUP_HOT_NS NS_PER_MS

/* The socket of a group in one address family. */
struct mcast_socket {
    int fd;
    ev_io readable;
    /* Until then, each pass receives from the socket. After that, the loop's poll has to report data first. */
    uint64_t hot_until;
    struct peers peers; /* the senders */
};

#define MCAST_FAMILIES 2 /* IPv4, IPv6 */

struct mcast_group {
    struct device *device;
    struct quota_owner owner; /* the user who joined first pays for it */
    uint8_t gid[16];
    uint32_t number; /* numbers grow, and the device's list is in their order */
    unsigned members; /* number of QPs */
    /* NULL: the device has no address of the family, or there is no network, as in tests. */
    struct mcast_socket *socket[MCAST_FAMILIES];
    TAILQ_ENTRY(mcast_group) link;
};

/* The membership of one QP in a group. */
struct membership {
    struct mcast_group *group;
    LIST_ENTRY(membership) link;
};

struct control_reply;
struct session;
/* Control operations ATTACH_MCAST and DETACH_MCAST. Return 0, or -errno with the reason in *rp. */
int mcast_group_attach(struct session *s, const void *rq, struct control_reply *rp);
int mcast_group_detach(struct session *s, const void *rq, struct control_reply *rp);

/* True if the kernel returned a packet that this device sent itself. The members on this device have got it already. */
bool mcast_group_is_echo(const struct device *d, const uint8_t src_gid[16]);

/* The GID table has changed: the groups get sockets in a family that the device now has, and lose those of a family
 * that it no longer has. */
void mcast_groups_follow(struct device *d);

/* To be called for a QP that is destroyed. The engine forgets the QP by itself. */
void mcast_group_leave_all(struct membership_list *memberships);

#endif
