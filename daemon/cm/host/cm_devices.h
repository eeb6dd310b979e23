// SPDX-License-Identifier: BSD-2-Clause
/* The devices of the daemon, as connection management knows them: a copy of each device's addresses
 * (device/mad_box.h), and the search for an address. */
#ifndef PUMICE_DAEMON_CM_HOST_CM_DEVICES_H
#define PUMICE_DAEMON_CM_HOST_CM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/mad_box.h"
#include "pumice/abi.h"

struct cm_devices {
    unsigned n;
    struct mad_box *box[PM_DEVICES_MAX];
    struct mad_device info[PM_DEVICES_MAX];
};

/* Copies the addresses of all devices. */
void cm_devices_refresh(struct cm_devices *d);

/* Finds the device of an address. scope: the interface of a link-local address; 0: any. True: *route has the device, the
 * index of the address, and the properties of paths from there. */
bool cm_devices_find(const struct cm_devices *d, const uint8_t gid[16], uint32_t scope, struct cm_route *route);

/* Which devices cm_devices_source may choose. */
struct cm_device_choice {
    uint32_t ifindex; /* of the interface; 0: any */
    bool link_local; /* the source must be a link-local address */
};
/* Finds the best source address for packets to dst: one of the same family, with the longest common prefix. Writes it to
 * gid. False: no device has one. */
bool cm_devices_source(const struct cm_devices *d, const uint8_t dst[16], const struct cm_device_choice *choice,
                       uint8_t gid[16], struct cm_route *route);

/* Is this a link-local IPv6 address (RFC 4291 2.5.6)? */
bool cm_is_link_local(const uint8_t gid[16]);

#endif
