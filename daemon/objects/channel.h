// SPDX-License-Identifier: BSD-2-Clause
/* Completion channels: creates and destroys the pipes through which a client receives the events of its CQs. */
#ifndef PUMICE_DAEMON_OBJECTS_CHANNEL_H
#define PUMICE_DAEMON_OBJECTS_CHANNEL_H

#include <stdint.h>

#include "daemon/session/event_pipe.h"

struct session;
struct control_reply;

struct channel { /* completion channel */
    struct session *session;
    uint32_t handle;
    unsigned users; /* CQs that use it */
    struct event_pipe pipe;
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int channel_create(struct session *s, const void *rq, struct control_reply *rp);
int channel_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a channel that no CQ uses. */
void channel_free(struct channel *ch);

#endif
