// SPDX-License-Identifier: BSD-2-Clause
/* Addresses of network interfaces, as getifaddrs lists them. libfabric connects devices only at addresses that are in this
 * list, and passes over those of the loopback interface. The devices of a lab have such addresses, and the list does not
 * even have all of them. So the list gets an entry for each address of a device on the loopback interface. The name of
 * its interface is that of the device. IFF_LOOPBACK is set, so that programs for other networks ignore it. */
#ifndef PUMICE_SRC_VERBS_SHIM_INTERFACE_ADDRESSES_H
#define PUMICE_SRC_VERBS_SHIM_INTERFACE_ADDRESSES_H

#include <ifaddrs.h>

#endif
