// SPDX-License-Identifier: BSD-2-Clause
/* Asks the kernel for the route to an address, by rtnetlink. */
#ifndef PUMICE_DAEMON_CM_HOST_ROUTE_H
#define PUMICE_DAEMON_CM_HOST_ROUTE_H

#include <stdbool.h>

#include "daemon/net/address.h"

struct route_info {
    unsigned ifindex; /* the interface that packets leave by */
    bool is_local; /* the destination is an address of this machine */
    bool has_source;
    union addr source; /* the address that the kernel would send from; port 0 */
};

/* ifindex: the interface that packets must leave by; 0: any. Returns 0 or -errno: -ENETUNREACH, -EHOSTUNREACH, … */
int route_lookup(const union addr *dst, unsigned ifindex, struct route_info *out);

#endif
