// SPDX-License-Identifier: BSD-2-Clause
/* The devices of the daemon: ibv_get_device_list and the names in it. A device has the same struct ibv_device in every
 * list, as long as a list or a context holds it. */
#ifndef PUMICE_SRC_VERBS_DEVICE_DEVICE_H
#define PUMICE_SRC_VERBS_DEVICE_DEVICE_H

#include <infiniband/verbs.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"

/* A device as the daemon listed it. The code of other providers (mlx5dv, efadv) looks just behind struct ibv_device to
 * find out whether a device is theirs. It finds the zeros of slack there, and so sees that the device is not its
 * own. */
struct vb_device {
    struct ibv_device dev;
    uint8_t slack[4096];
    struct vb_device *next; /* in the list of devices of the process */
    unsigned refs; /* lists and contexts that hold it; under the lock of that list */
    char socket[108]; /* path of the control socket of the daemon */
    uint32_t index; /* in the list of the daemon */
    struct pm_device_desc desc;
};

static inline struct vb_device *vb_dev(struct ibv_device *d)
{
    return VB_OF(struct vb_device, dev, d);
}

/* Takes a reference. */
void vb_device_hold(struct vb_device *d);
/* Gives a reference back. The last one frees the device. */
void vb_device_drop(struct vb_device *d);

#endif
