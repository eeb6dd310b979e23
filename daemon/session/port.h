// SPDX-License-Identifier: BSD-2-Clause
/* Follows the state of a device's network interface, and reports changes to the sessions as port events. */
#ifndef PUMICE_DAEMON_SESSION_PORT_H
#define PUMICE_DAEMON_SESSION_PORT_H

#include <stdbool.h>

struct device;

/* Reads the interface again, and adapts the active MTU if the settings leave it open. Sends the sessions an event when
 * the port went up or down, and when the GID table has changed. Returns true if the GID table has changed; then the
 * caller is port_change, see loop/port_change.h. */
bool port_refresh(struct device *d);

#endif
