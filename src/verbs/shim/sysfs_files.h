// SPDX-License-Identifier: BSD-2-Clause
/* Makes the files of RDMA devices appear, which the system does not have. Programs look for devices in the file system,
 * too: UCX wants a character device /dev/infiniband/DEV_NAME and reads files below /sys/class/infiniband/DEVICE by
 * name. A user without root can't create these files. So this module exports functions of the C library that take a
 * path, and redirects exactly these two trees. The device file becomes /dev/null. The attributes are read from the
 * directory that the daemon keeps beside its control socket. All other paths go to the kernel unchanged. Programs still
 * find a real device of this machine, because the module redirects only names that the daemon has. The directory has
 * only the names of counters, since their values change: see counter_files.h.
 *
 * The library is preloaded into every shell and launcher. These functions may run in constructors, in signal handlers,
 * between fork and exec, and behind filters of system calls. So for other paths they only make a few comparisons. Then
 * they call the next function of their name (libc_next.h), or a function of the C library that makes the same system
 * call. They allocate nothing and look up nothing. */
#ifndef PUMICE_SRC_VERBS_SHIM_SYSFS_FILES_H
#define PUMICE_SRC_VERBS_SHIM_SYSFS_FILES_H

#include <sys/stat.h>

/* Programs that were linked before glibc 2.33 call these. The headers of the C library no longer declare them, but
 * declare all other functions of this module. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);

#endif
