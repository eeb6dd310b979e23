// SPDX-License-Identifier: BSD-2-Clause
/* The network interface under a device: which one has the address, its MTU, its state, and a GUID made of them. */
#ifndef PUMICE_DAEMON_NETDEV_H
#define PUMICE_DAEMON_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/address.h"

struct netdev {
    char name[IF_NAMESIZE];
    unsigned index; /* 0: unknown */
    unsigned mtu; /* bytes of an IP packet */
    bool up; /* administratively up and running */
    uint8_t mac[6]; /* all 0 on loopback */
};

/* The interface that has the address. All of 127.0.0.0/8 belongs to the loopback interface. 0, or -EADDRNOTAVAIL. */
int netdev_find(const union addr *addr, struct netdev *nd);

/* Reads mtu, up and mac again, by nd->name. 0 or -errno (the interface is gone: then up is false). */
int netdev_refresh(struct netdev *nd);

/* Has the interface the address (still)? If that can't be found out: yes. */
bool netdev_has(const struct netdev *nd, const union addr *addr);

/* The first address of an interface that is up and not the loopback, IPv4 before global IPv6; else 127.0.0.1. */
void netdev_default_address(union addr *addr);

/* The largest path MTU (enum ibv_mtu, 1 ... 5) whose packets fit into an IP packet of mtu bytes, with the longest
 * headers that can stand before payload and the ICRC behind it; 0 if not even 256 bytes fit. */
uint8_t netdev_path_mtu(unsigned mtu, bool is_v6);

/* A node GUID that stays the same for the same interface and address: of the MAC, if there is one, and the address.
 * Locally administered, so it never is one of a real adapter. */
uint64_t netdev_guid(const struct netdev *nd, const union addr *addr);

#endif
