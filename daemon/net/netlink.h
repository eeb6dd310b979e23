// SPDX-License-Identifier: BSD-2-Clause
/* Watches a network interface and reads its addresses by rtnetlink. The daemon uses it for the GID table, and to raise
 * IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE and IBV_EVENT_GID_CHANGE. */
#ifndef PUMICE_DAEMON_NET_NETLINK_H
#define PUMICE_DAEMON_NET_NETLINK_H

#include <stdbool.h>

#include "daemon/net/address.h"

/* Opens a non-blocking socket that becomes readable when an interface or an address changes. -errno: without the
 * socket the port's state is read only when a client asks for it. The caller closes the socket. */
int netlink_watch_open(void);

/* Reads all waiting messages. True: one of them was about interface `ifindex`, or messages were lost. */
bool netlink_watch_read(int fd, unsigned ifindex);

/* Reads the IPv4 and IPv6 addresses that interface `ifindex` has, without those that are still being checked for
 * duplicates. IPv6 link-local addresses have the interface as their scope. Returns their number, at most max, or
 * -errno. */
int netlink_addresses(unsigned ifindex, union addr *out, unsigned max);

#endif
