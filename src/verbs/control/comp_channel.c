// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/comp_channel.h"
#include "src/verbs/control/event_ack.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/verbs/base/cancel.h"
#include "src/verbs/datapath/cq_notify.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"

VB_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct pm_handle rep = {0};
    int fd;
    struct vb_call call = {.op = PM_OP_CREATE_CHANNEL, .rep = &rep, .rep_len = sizeof(rep), .fds = &fd, .num_fds = 1};
    struct vb_channel *ch = calloc(1, sizeof(*ch));
    if (!ch)
        return NULL;
    int rc = vb_call(vb_ctx(context), &call);
    if (rc) {
        if (rep.handle) /* the daemon made it, but its descriptor did not fit into this process */
            vb_drop(context, PM_OP_DESTROY_CHANNEL, rep.handle);
        free(ch);
        return vb_null(rc);
    }
    ch->channel.context = context;
    ch->channel.fd = fd;
    ch->handle = rep.handle;
    return &ch->channel;
}

VB_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct vb_context *c = vb_ctx(channel->context);
    struct vb_channel *ch = vb_channel(channel);
    struct pm_handle req = {ch->handle};
    if (vb_owned_quiet(c)) {
        pthread_mutex_lock(&c->lock);
        int busy = channel->refcnt;
        pthread_mutex_unlock(&c->lock);
        int rc = busy ? -EBUSY : vb_call_simple(c, PM_OP_DESTROY_CHANNEL, &req, sizeof(req), NULL, 0);
        if (rc && rc != -EIO)
            return vb_err(rc);
    }
    vb_close(channel->fd);
    free(ch);
    return 0;
}

/* Returns the CQ with this handle, and counts one more event as delivered. The count keeps the CQ alive until the
 * application acknowledges the event. Returns NULL if the CQ is gone meanwhile. */
static struct vb_cq *deliver(struct vb_context *c, uint32_t handle)
{
    pthread_mutex_lock(&c->lock);
    struct vb_cq *cq = vb_table_get(&c->cqs, handle);
    if (cq) {
        cq->comp_events++;
        vb_cq_notify_fetched(cq);
    }
    pthread_mutex_unlock(&c->lock);
    return cq;
}

/* After the death of the daemon, the library flushes all requests. So this delivers an event to a CQ of the channel for
 * which the program requested one. Returns NULL if there is no such CQ. */
static struct vb_cq *deliver_last(struct vb_context *c, struct ibv_comp_channel *channel)
{
    struct vb_cq *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < VB_TABLE_SIZE && !found; i++) {
        for (uint32_t j = 0; atomic_load(&c->cqs.root[i]) && j < VB_TABLE_SIZE && !found; j++) {
            struct vb_cq *cq = vb_table_get(&c->cqs, i << VB_TABLE_BITS | j);
            if (cq && cq->cq.channel == channel && atomic_exchange(&cq->page->arm, PM_ARM_NONE) != PM_ARM_NONE)
                found = cq;
        }
    }
    if (found)
        found->comp_events++;
    pthread_mutex_unlock(&c->lock);
    return found;
}

VB_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ibcq, void **cq_context)
{
    struct vb_context *c = vb_ctx(channel->context);
    struct vb_cq *cq = NULL;
    while (!cq) {
        struct pm_comp_event ev;
        if (!vb_owned(c))
            return vb_err(-EIO), -1;
        /* The pipe never splits a record, because a record is shorter than PIPE_BUF. */
        ssize_t n = read(channel->fd, &ev, sizeof(ev));
        if (n < 0)
            return -1;
        if (n == (ssize_t)sizeof(ev)) {
            cq = deliver(c, ev.cq);
            continue;
        }
        vb_context_check(c);
        cq = deliver_last(c, channel);
        if (!cq)
            return vb_err(-EIO), -1;
    }
    *ibcq = &cq->cq;
    *cq_context = cq->cq.cq_context;
    return 0;
}

VB_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int num)
{
    vb_event_ack(&cq->mutex, &cq->cond, &cq->comp_events_completed, num);
}
