// SPDX-License-Identifier: BSD-2-Clause
/* Memory whose pages come from a server: mapped files of FUSE, NFS and other file systems that no block device holds. A
 * client may control such a server, and a dead one never answers. So a copy of such memory gets less time than a copy of
 * memory that was swapped out, or is to be read from a disk. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_SERVED_MEMORY_H
#define PUMICE_DAEMON_CLIENT_MEM_SERVED_MEMORY_H

#include <stdbool.h>
#include <sys/uio.h>

/* Does any of these addresses belong to such a file? maps_fd: of /proc/PID/maps of their process. It is also true if the
 * descriptor can't be read, because a client may have reasons to hide its mappings. Reads files of /proc, and can wait
 * for the process: not for a thread that serves others. */
bool memory_is_served(int maps_fd, const struct iovec *v, unsigned n);

/* Do the pages of a file come from a server? mountinfo: the text of /proc/PID/mountinfo of the calling process. A file
 * system with an unnamed device (major number 0) that is not in the text, such as one in a container, counts as served. */
bool device_is_served(const char *mountinfo, unsigned major, unsigned minor);

#endif
