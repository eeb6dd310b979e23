// SPDX-License-Identifier: BSD-2-Clause
/* Completion channels and their events: ibv_create_comp_channel, ibv_get_cq_event, ibv_ack_cq_events,
 * ibv_destroy_comp_channel. The descriptor that the application sees is the read end of a pipe. The daemon writes
 * records to the other end. */
#ifndef PUMICE_SRC_VERBS_CONTROL_COMP_CHANNEL_H
#define PUMICE_SRC_VERBS_CONTROL_COMP_CHANNEL_H

#include "src/verbs/objects/cq.h"

struct vb_channel {
    struct ibv_comp_channel channel;
    uint32_t handle;
};

static inline struct vb_channel *vb_channel(struct ibv_comp_channel *c)
{
    return VB_OF(struct vb_channel, channel, c);
}

#endif
