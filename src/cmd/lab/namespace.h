// SPDX-License-Identifier: BSD-2-Clause
/* A network namespace with IPv6 addresses for the hosts of a lab. A user without rights can make one within a user
 * namespace, if the system allows that. */
#ifndef PUMICE_SRC_CMD_LAB_NAMESPACE_H
#define PUMICE_SRC_CMD_LAB_NAMESPACE_H

#define NAMESPACE_WHY_MAX 256

/* Moves this process, and so its later children, to a new network namespace. Its only interface is the loopback one. It
 * has the addresses of address_v6 for all devices of the hosts, and carries IPv6 multicast. The user and the group stay the same. The
 * processes don't see the network of the machine, but they see its files and Unix sockets. The process must have a
 * single thread. Returns 0, or -errno with an explanation in `why`. */
int namespace_enter_v6(unsigned hosts, unsigned devices, char why[NAMESPACE_WHY_MAX]);

#endif
