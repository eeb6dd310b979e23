// SPDX-License-Identifier: BSD-2-Clause
/* Completion channels: the pipes by which a client gets the events of its completion queues. */
#ifndef PUMICE_DAEMON_OBJECTS_CHANNEL_H
#define PUMICE_DAEMON_OBJECTS_CHANNEL_H

#include <stdint.h>

#include "daemon/session/event_pipe.h"

struct session;
struct control_reply;

struct channel { /* completion channel */
    struct session *session;
    uint32_t handle;
    unsigned users;
    struct event_pipe pipe;
};

/* Control operations: each takes the payload that pumice/abi.h has for it. 0, or -errno with the reason in *rp. */
int channel_create(struct session *s, const void *rq, struct control_reply *rp);
int channel_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a channel that no completion queue uses. */
void channel_free(struct channel *ch);

#endif
