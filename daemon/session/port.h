// SPDX-License-Identifier: BSD-2-Clause
/* Follows the state of a device's network interface, and of its link if faults take that down, and reports changes to the
 * sessions as port events. */
#ifndef PUMICE_DAEMON_SESSION_PORT_H
#define PUMICE_DAEMON_SESSION_PORT_H

#include <stdbool.h>

struct device;

/* Reads the interface again, and adapts the active MTU if the settings leave it open. Sends the sessions an event when
 * the port went up or down, and when the GID table has changed. Returns true if the GID table has changed; then the
 * caller is port_change, see loop/port_change.h. */
bool port_refresh(struct device *d);

/* A fault takes the link down, or gives it back. Sends the sessions an event if the state of the port changes. */
void port_set_link(struct device *d, bool down);
/* The interface is up, and no fault has taken the link down. */
bool port_is_up(const struct device *d);

#endif
