// SPDX-License-Identifier: BSD-2-Clause
/* An event channel of connection management: what the program gets when it opens /dev/infiniband/rdma_cm. The program
 * has descriptors of it (cm_descriptor.h, base/event_fd.h), through which it polls the channel's pipe.
 *
 * A channel is dead when its daemon has died. It stays dead, even if the daemon is started again. */
#ifndef PUMICE_SRC_VERBS_CM_CM_CHANNEL_H
#define PUMICE_SRC_VERBS_CM_CM_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/verbs/cm/cm_connection.h"
#include "src/verbs/cm/cm_ids.h"

struct vb_cm_channel {
    uint64_t number; /* of the daemon */
    int pipe; /* read end; under the lock. -1: closed */
    dev_t dev; /* of the pipe */
    ino_t ino;
    _Atomic uint64_t connection; /* serial number of the connection that uses the channel */
    atomic_bool dead;
    /* These are under the lock. */
    unsigned refs; /* descriptors, and calls that use the channel */
    unsigned descriptors; /* in this process */
    struct vb_cm_ids ids;
};

/* Makes a channel, with a reference for the caller. fd: a descriptor of the channel, which the caller owns. It is closed
 * on exec. Errors are those of vb_cm_connect, or of the daemon. */
int vb_cm_channel_create(struct vb_cm_channel **channel, int *fd, struct vb_cm_refusal *refusal);
/* Gives a reference back. The last one frees the channel. */
void vb_cm_channel_release(struct vb_cm_channel *ch);
/* Has this process closed all its descriptors of the channel? */
bool vb_cm_channel_is_closed(struct vb_cm_channel *ch);
/* This process has no descriptor of the channel any more: closes the pipe, and tells the daemon. A call that still uses
 * the channel keeps the pipe open, as the kernel keeps a file until the last call for it returns. */
void vb_cm_channel_drop(struct vb_cm_channel *ch);

/* Sees to it that the connection of this process uses the channel. Returns 0 or -errno. -ENODEV: the channel is dead. */
int vb_cm_channel_use(struct vb_cm_channel *ch);
/* Makes a request about the channel, as vb_session_call. -ENODEV: the channel is dead. */
int vb_cm_channel_call(struct vb_cm_channel *ch, const struct vb_call *call);

#endif
