// SPDX-License-Identifier: BSD-2-Clause
/* Makes a directory tree beside the control socket. Its files are those that the kernel has for an RDMA device in
 * /sys/class/infiniband and /sys/class/infiniband_verbs, and for connection management in /sys/class/misc. Programs read these files by name (UCX, Open MPI, rdma-core's
 * scripts), and the client library redirects them here. The tree holds the GID table, and values that do not change
 * while the daemon runs. The client library asks the daemon for other values. */
#ifndef PUMICE_DAEMON_MONITOR_SYSFS_H
#define PUMICE_DAEMON_MONITOR_SYSFS_H

#include "daemon/device/device.h"

/* Makes the tree for these devices beside the socket. Replaces the tree of a dead daemon. An error is only logged as
 * a warning, because most programs do not need the tree. socket_path must stay valid as long as the devices. */
void sysfs_create(const char *socket_path, struct device *const *device, unsigned devices);
/* Writes the files of the GID table again. It writes files in the device's thread, but only when an address of the
 * interface changes. */
void sysfs_update_gids(struct device *d);
/* Removes the tree. */
void sysfs_remove(const char *socket_path);

#endif
