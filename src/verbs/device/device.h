// SPDX-License-Identifier: BSD-2-Clause
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include "src/verbs/base/objects.h"

/* Takes and gives back a reference: a device lives as long as a list or a context holds it. */
void vb_device_hold(struct vb_device *d);
void vb_device_drop(struct vb_device *d);

#endif
