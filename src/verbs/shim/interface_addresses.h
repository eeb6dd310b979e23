// SPDX-License-Identifier: BSD-2-Clause
/* Addresses of network interfaces, as getifaddrs lists them. libfabric connects devices only at addresses that are in this
 * list, and passes over those of the loopback interface: by the name "lo", or by the flag IFF_LOOPBACK (1.17). The devices
 * of a lab have such addresses, and the list does not even have all of them. So the list gets an entry for each address of
 * a device on the loopback interface, without the flag. The name of its interface is that of the device. The entries are
 * the last ones, so that programs which take the first address for other networks do not take these. */
#ifndef PUMICE_SRC_VERBS_SHIM_INTERFACE_ADDRESSES_H
#define PUMICE_SRC_VERBS_SHIM_INTERFACE_ADDRESSES_H

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>

/* The first IPv4 address that a device has on the loopback interface. False if there is none. */
bool vb_loopback_device_address(struct in_addr *address);

#endif
