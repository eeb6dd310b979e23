// SPDX-License-Identifier: BSD-2-Clause
/* Reports changes of a device's port to its sessions. */
#ifndef PUMICE_DAEMON_SESSION_PORT_H
#define PUMICE_DAEMON_SESSION_PORT_H

struct device;

/* Re-reads the interface. Sends the sessions an event when the port went up or down, and when the interface lost its
 * address or got it back. */
void port_refresh(struct device *d);

#endif
