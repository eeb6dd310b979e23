// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/async_events.h"

#include <stddef.h>

#define EVENTS 256u /* further ones are not checked */

static struct taken {
    enum ibv_event_type type;
    const void *object; /* NULL: of the port or the device */
    const struct trace *where;
} taken[EVENTS];
static unsigned count;

/* The object of an event. Events of ports and devices have none. */
static const void *object_of(const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        return e->element.cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return e->element.qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return e->element.srq;
    default:
        return NULL;
    }
}

void async_events_taken(const struct ibv_async_event *event, const struct trace *where)
{
    if (count < EVENTS)
        taken[count++] = (struct taken){event->event_type, object_of(event), where};
}

void async_events_acknowledged(const struct ibv_async_event *event)
{
    for (unsigned i = 0; i < count; i++) {
        if (taken[i].type == event->event_type && taken[i].object == object_of(event)) {
            taken[i] = taken[--count];
            return;
        }
    }
}

unsigned async_events_open(const void *object, const struct trace **where)
{
    unsigned n = 0;

    for (unsigned i = 0; i < count; i++) {
        if ((!object || taken[i].object == object) && n++ == 0)
            *where = taken[i].where;
    }
    return n;
}

void async_events_forked(void)
{
    count = 0;
}
