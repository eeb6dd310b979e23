// SPDX-License-Identifier: BSD-2-Clause
/* The events of a channel: programs take them, and may add some of their own. */
#include "daemon/cm/host/ucma_event.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/core/cm/cm.h"

/* Old programs know neither of the two last members. */
#define RESP_MIN (offsetof(struct rdma_ucm_event_resp, reserved))

int command_get_event(struct command *c)
{
    if (c->out_max < RESP_MIN)
        return -ENOSPC;
    struct cm_note *n = cm_channel_next(c->channel);
    if (!n)
        return -ENODATA;
    n->id->reported++;
    if (n->join)
        n->join->reported++;
    if (n->child)
        n->id->requests--;
    command_result(c, &n->resp, sizeof(n->resp));
    free(n);
    return 0;
}

int command_write_event(struct command *c)
{
    const struct ucma_write_cm_event *in = &c->in.write_cm_event;
    struct rdma_ucm_event_resp resp = {.event = in->event, .status = in->status};
    struct ucma_id *id;

    int rc = command_id(c, in->id, &id);
    if (rc)
        return rc;
    if (in->event != UCMA_EVENT_USER && in->event != UCMA_EVENT_INTERNAL)
        return -EINVAL;
    _Static_assert(sizeof(resp.param) >= sizeof(in->param.arg), "param");
    memcpy(&resp.param, &in->param.arg, sizeof(in->param.arg));
    rc = ucma_event_add(id, NULL, &resp);
    return rc ? -ENOMEM : 0;
}
