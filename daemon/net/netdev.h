// SPDX-License-Identifier: BSD-2-Clause
/* The network interface of a device: finds the interface that has an address, reads its MTU and state, and makes the
 * device's GUID from its MAC and its address. */
#ifndef PUMICE_DAEMON_NET_NETDEV_H
#define PUMICE_DAEMON_NET_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/address.h"

struct netdev {
    char name[IF_NAMESIZE];
    unsigned index; /* 0: unknown */
    unsigned mtu; /* bytes of an IP packet */
    bool up; /* administratively up, and running */
    bool loopback;
    uint8_t mac[6]; /* all 0 on loopback */
};

/* Finds the interface that has the address. All of 127.0.0.0/8 belongs to the loopback interface. Returns 0 or
 * -EADDRNOTAVAIL. */
int netdev_find(const union addr *addr, struct netdev *nd);

/* Reads mtu, up and mac again, by nd->name. Returns 0 or -errno. On -errno the interface is gone, and `up` is false. */
int netdev_refresh(struct netdev *nd);

/* Finds the first address of an interface that is up and is not the loopback; IPv4 goes before global IPv6. Without
 * such an address: 127.0.0.1. */
void netdev_default_address(union addr *addr);

/* Returns the largest path MTU (enum ibv_mtu, 1 … 5) for an interface with an MTU of `mtu` bytes. The longest RoCEv2
 * headers and the ICRC must fit, too. 0: not even 256 bytes of payload fit. */
uint8_t netdev_path_mtu(unsigned mtu, bool is_v6);

/* Makes a node GUID from the MAC, if there is one, and the address. The same interface and address always give the
 * same GUID. The GUID is locally administered, so no real adapter has it. */
uint64_t netdev_guid(const struct netdev *nd, const union addr *addr);

#endif
