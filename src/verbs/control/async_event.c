// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events: ibv_get_async_event and ibv_ack_async_event. The daemon writes records into a pipe. The end of
 * the pipe means that the daemon is gone. */
#include <infiniband/verbs.h>

#include <errno.h>

#include "src/verbs/base/event_fd.h"
#include "src/verbs/control/event_ack.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/context.h"

/* The handle of a QP that gets the next event. An XRC target may have several handles in this process. The daemon sends
 * a record for each, so that each handle gets every event. The handle that had the fewest events is next. */
static struct vb_qp *handle_for_event(struct vb_qp *first)
{
    struct vb_qp *best = first;
    for (struct vb_qp *q = first; q; q = q->next_handle)
        if ((int32_t)(q->events_before + q->async_events - (best->events_before + best->async_events)) < 0)
            best = q;
    return best;
}

/* The kind of object that an event is about. */
enum event_object {
    EVENT_UNKNOWN,
    EVENT_OF_CQ,
    EVENT_OF_QP,
    EVENT_OF_SRQ,
    EVENT_OF_PORT, /* or of the device, which has one port */
};

static enum event_object object_of(uint32_t type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return EVENT_OF_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return EVENT_OF_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return EVENT_OF_SRQ;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return EVENT_OF_PORT;
    default:
        return EVENT_UNKNOWN;
    }
}

/* Fills event with the object of the record, and counts one more event as delivered. The count keeps the object alive
 * until the application acknowledges the event. The caller holds the lock of the context. Returns false if the object is
 * gone meanwhile, or if the type of the event is unknown. */
static bool find_object(struct vb_context *c, const struct pm_async_event *rec, struct ibv_async_event *event)
{
    switch (object_of(rec->type)) {
    case EVENT_OF_CQ: {
        struct vb_cq *cq = vb_table_get(&c->cqs, rec->handle);
        if (!cq)
            return false;
        cq->async_events++;
        event->element.cq = &cq->cq;
        return true;
    }
    case EVENT_OF_QP: {
        struct vb_qp *qp = handle_for_event(vb_table_get(&c->qps, rec->handle));
        if (!qp)
            return false;
        qp->async_events++;
        event->element.qp = &qp->qp;
        return true;
    }
    case EVENT_OF_SRQ: {
        struct vb_srq *srq = vb_table_get(&c->srqs, rec->handle);
        if (!srq)
            return false;
        srq->async_events++;
        event->element.srq = &srq->srq;
        return true;
    }
    case EVENT_OF_PORT:
        event->element.port_num = (int)rec->handle;
        return true;
    case EVENT_UNKNOWN:
        break;
    }
    return false;
}

static bool deliver(struct vb_context *c, const struct pm_async_event *rec, struct ibv_async_event *event)
{
    event->event_type = (enum ibv_event_type)rec->type;
    pthread_mutex_lock(&c->lock);
    bool found = find_object(c, rec, event);
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* The daemon is gone: the first caller gets IBV_EVENT_DEVICE_FATAL. After it, the descriptor is never readable again.
 * Otherwise a program that polls it would loop on the end of the pipe. */
static int deliver_fatal(struct vb_context *c, struct ibv_async_event *event)
{
    pthread_mutex_lock(&c->lock);
    bool first = !c->fatal_reported;
    c->fatal_reported = true;
    if (first)
        vb_event_fd_silence(c->vctx.context.async_fd, c->async_pipe);
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->gone, true);
    if (!first)
        return vb_err(-EIO), -1;
    event->event_type = IBV_EVENT_DEVICE_FATAL;
    event->element.port_num = 1;
    return 0;
}

VB_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct vb_context *c = vb_ctx(context);
    for (;;) {
        struct pm_async_event rec;
        if (!vb_owned(c))
            return vb_err(-EIO), -1;
        if (c->fatal_reported) /* as in Linux, no event follows */
            return vb_event_fd_wait(context->async_fd);
        ssize_t n = vb_event_fd_read(context->async_fd, c->async_pipe, &rec, sizeof(rec));
        if (n < 0)
            return -1;
        if (n != (ssize_t)sizeof(rec))
            return deliver_fatal(c, event);
        if (deliver(c, &rec, event))
            return 0;
    }
}

VB_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    switch (object_of(event->event_type)) {
    case EVENT_OF_CQ: {
        struct ibv_cq *cq = event->element.cq;
        vb_event_ack(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
        break;
    }
    case EVENT_OF_QP: {
        struct ibv_qp *qp = event->element.qp;
        vb_event_ack(&qp->mutex, &qp->cond, &qp->events_completed, 1);
        break;
    }
    case EVENT_OF_SRQ: {
        struct ibv_srq *srq = event->element.srq;
        vb_event_ack(&srq->mutex, &srq->cond, &srq->events_completed, 1);
        break;
    }
    case EVENT_OF_PORT:
    case EVENT_UNKNOWN:
        break;
    }
}
