// SPDX-License-Identifier: BSD-2-Clause
/* Carries out what librdmacm writes to a channel: a header (struct rdma_ucm_cmd_hdr) and a struct for the command. The
 * daemon does most of it. The library waits for events on its own, adds what the daemon can't see (options, the channel
 * of a descriptor), and answers for a daemon that has died. */
#ifndef PUMICE_SRC_VERBS_CM_CM_COMMAND_H
#define PUMICE_SRC_VERBS_CM_CM_COMMAND_H

#include <sys/types.h>

#include "src/verbs/cm/cm_channel.h"

/* Does what write(2) of the kernel's device does: returns len, or -errno. fd: the descriptor of ch. The caller has a
 * reference to ch, and gives it back when the thread is cancelled, too: waiting for an event is a cancellation point. */
ssize_t vb_cm_write(int fd, struct vb_cm_channel *ch, const void *buf, size_t len);

#endif
