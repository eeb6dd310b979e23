// SPDX-License-Identifier: BSD-2-Clause
/* Follows the interface of a device in all parts of the daemon. */
#ifndef PUMICE_DAEMON_LOOP_PORT_CHANGE_H
#define PUMICE_DAEMON_LOOP_PORT_CHANGE_H

struct device;

/* Reads the interface again (session/port.h). If the GID table has changed, multicast groups and the files of sysfs
 * follow. */
void port_change(struct device *d);
/* Does the same, but only if the kernel has announced a change since then, or announces none: a client may ask for the
 * state of the port at any rate, and reading the interface again takes all its addresses from the kernel. */
void port_change_poll(struct device *d);

#endif
