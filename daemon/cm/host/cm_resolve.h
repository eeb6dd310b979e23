// SPDX-License-Identifier: BSD-2-Clause
/* Finds the local address and the device for packets to an address, and the device of a local address. */
#ifndef PUMICE_DAEMON_CM_HOST_CM_RESOLVE_H
#define PUMICE_DAEMON_CM_HOST_CM_RESOLVE_H

#include "daemon/cm/host/cm_devices.h"
#include "daemon/core/cm/cm_types.h"

/* Finds the device of a local address that a program binds to. -ENODEV: an address of this machine, but of no device of
 * the daemon. -EADDRNOTAVAIL: not an address of this machine. */
int cm_resolve_local(const struct cm_devices *d, const struct cm_addr *addr, uint32_t scope, struct cm_route *route);

/* Finds the source address for packets to *dst, which has the interface `scope` if it is link-local. src: the local
 * address of the program, or a wildcard, which is replaced; the port stays. A wildcard in *dst means this host, and
 * is replaced by an own address. So is an address of 127.0.0.0/8 or ::1, if no device is on the loopback interface. The
 * rules, in this order:
 * 1. the address that the program chose
 * 2. an own address of the daemon is reached from itself
 * 3. the kernel's route: the device that has the source address of the route, or a device on its interface
 * 4. a destination on this machine, and a multicast group: the device with the most similar address
 * Returns 0, -ENETUNREACH or another error of the kernel's route, or -ENODEV: no device of the daemon is on the route. */
int cm_resolve_route_to(const struct cm_devices *d, struct cm_addr *dst, uint32_t scope, struct cm_addr *src,
                        struct cm_route *route);

#endif
