// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

int channel_create(struct session *s, const void *rq, struct control_reply *rp)
{
    struct channel *ch = calloc(1, sizeof(*ch));
    struct pm_handle *rep;

    (void)rq;
    if (!ch)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    ch->session = s;
    int rc = event_pipe_init(&ch->pipe, s->device->loop, s->client_mem);
    if (rc) {
        free(ch);
        return control_fail(rp, rc, "the daemon can't make a pipe (too many open files?)");
    }
    rc = handles_add(&s->channels, ch, &ch->handle);
    if (rc) {
        event_pipe_fini(&ch->pipe);
        free(ch);
        return control_fail(rp, -ENOMEM, "no more than %u completion channels", DEVICE_MAX_CHANNELS);
    }
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = ch->handle;
    control_attach(rp, event_pipe_take_read_fd(&ch->pipe));
    return 0;
}

void channel_free(struct channel *ch)
{
    handles_remove(&ch->session->channels, ch->handle);
    event_pipe_fini(&ch->pipe);
    quota_release(&ch->session->owner, QUOTA_CHANNELS);
    free(ch);
}

int channel_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct channel *ch = handles_get(&s->channels, h->handle);

    if (!ch)
        return control_fail(rp, -EINVAL, "no completion channel %u", h->handle);
    if (ch->users)
        return control_fail(rp, -EBUSY, "completion channel %u is used by %u completion queues", h->handle, ch->users);
    channel_free(ch);
    return 0;
}
