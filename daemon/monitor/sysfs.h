// SPDX-License-Identifier: BSD-2-Clause
/* A directory tree beside the control socket that holds what the kernel shows of an RDMA device in
 * /sys/class/infiniband and /sys/class/infiniband_verbs. Programs read those by name (UCX, Open MPI, rdma-core's
 * scripts); the client library leads them here. Whatever does not change while the daemon runs is there; numbers that
 * do are asked from the daemon. */
#ifndef PUMICE_DAEMON_SYSFS_H
#define PUMICE_DAEMON_SYSFS_H

#include "daemon/device/device.h"

/* Makes the tree for these devices beside the socket, in place of one that a dead daemon left. Trouble is a warning: most
 * programs do without. */
void sysfs_create(const char *socket_path, struct device *const *device, unsigned devices);
/* Takes it away. */
void sysfs_remove(const char *socket_path);

#endif
