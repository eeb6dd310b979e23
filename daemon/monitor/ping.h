// SPDX-License-Identifier: BSD-2-Clause
/* Connectivity checks of a device (PM_OP_CHECK, `pumice ping`): probes that its engine sends, and what becomes of each: an
 * answer, an ICMP message, an error of the kernel, or nothing. */
#ifndef PUMICE_DAEMON_PING_H
#define PUMICE_DAEMON_PING_H

#include "daemon/device/device.h"
#include "daemon/session/control.h"

/* Carries out one request, in the device's thread. 0 or -errno told in *rp. */
int ping_request(struct device *d, const struct pm_check_req *r, struct control_reply *rp);
/* Takes what the engine has seen of checks. Cheap if there is nothing. */
void ping_take(struct device *d, uint64_t now);
/* Something sent to `to` did not get there: err as errno, mtu if it was too long (0: not known), offender: who said so by
 * ICMP (NULL: the own kernel). The udp_trouble of the device's socket. */
void ping_trouble(void *device, const union addr *to, int err, uint32_t mtu, const union addr *offender);
void ping_fini(struct device *d);

#endif
