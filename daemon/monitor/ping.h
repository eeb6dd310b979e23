// SPDX-License-Identifier: BSD-2-Clause
/* Connectivity checks of a device (PM_OP_CHECK, `pumice ping`): its engine sends probes, and this module records the
 * result of each: an answer, an ICMP message, an error of the kernel, or nothing. */
#ifndef PUMICE_DAEMON_MONITOR_PING_H
#define PUMICE_DAEMON_MONITOR_PING_H

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"

/* Executes one request in the device's thread. Returns 0, or -errno with the reason in *rp. */
int ping_request(struct device *d, const struct pm_check_req *r, struct control_reply *rp);
/* Takes the probes and answers that the engine received. Cheap if there are none. */
void ping_take(struct device *d, uint64_t now);
/* A packet to `to` did not arrive. err is an errno value. mtu: the limit if the packet was too long (0: not known).
 * offender: the host that reported it by ICMP (NULL: our own kernel). It is the `trouble` callback of the device's
 * socket. */
void ping_trouble(void *device, const union addr *to, int err, uint32_t mtu, const union addr *offender);
void ping_fini(struct device *d);

#endif
