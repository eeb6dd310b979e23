// SPDX-License-Identifier: BSD-2-Clause
/* Fills in the GID table of a device (gid_table.h), opens a socket for each entry, and follows the addresses of the
 * interface. */
#ifndef PUMICE_DAEMON_DEVICE_GID_FOLLOW_H
#define PUMICE_DAEMON_DEVICE_GID_FOLLOW_H

#include "daemon/base/error_text.h"
#include "daemon/device/device.h"

/* Fills in the configured addresses. They count as present. */
void gid_follow_init(struct device *d);
/* Opens the sockets of all configured addresses but the first. Adds the other addresses of the interface. Returns 0, or
 * -errno with why. */
int gid_follow_open(struct device *d, char why[ERROR_TEXT_MAX]);
/* Compares the table with the addresses of the interface. Returns true if it has changed. */
bool gid_follow_refresh(struct device *d);
/* Describes the device for connection management (mad_box.h), which must not look into it. Called after each change of
 * its addresses or MTU. */
void gid_follow_describe(struct device *d);
/* Ends the watching of the sockets. */
void gid_follow_close(struct device *d);

#endif
