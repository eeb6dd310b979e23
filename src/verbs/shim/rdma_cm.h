// SPDX-License-Identifier: BSD-2-Clause
/* The device of connection management, /dev/infiniband/rdma_cm. librdmacm opens it, writes commands to it and polls it.
 * The descriptor that it gets is the read end of a pipe of the daemon (cm/cm_channel.h). Thus poll, select and epoll
 * work without help. For the rest, this module exports write, close, dup, fcntl, fstat and their variants.
 *
 * While the process has no channel, each of these functions costs one load and one comparison more. They are
 * async-signal-safe for descriptors that are no channel. Between vfork and exec, a program may also close or replace
 * descriptors that are channels of its parent. A child after fork may use the channels of its parent, as it may in the
 * kernel. A channel is no longer one after exec, and in another process that got the descriptor by a message. */
#ifndef PUMICE_SRC_VERBS_SHIM_RDMA_CM_H
#define PUMICE_SRC_VERBS_SHIM_RDMA_CM_H

#include <sys/stat.h>

/* Opens a channel as open does. -1 with errno ENOENT: there is no daemon, or it does not offer connection management.
 * In the second case a line on stderr says why, once in a process. */
int vb_rdma_cm_open(int flags);
/* Makes *st the state of a character device if it is that of a channel. fd: its descriptor. errno is kept. */
void vb_rdma_cm_statx(int fd, struct statx *st);

/* Programs that were linked before glibc 2.33 call these. No header declares them. */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

#endif
