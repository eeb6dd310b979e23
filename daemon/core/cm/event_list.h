// SPDX-License-Identifier: BSD-2-Clause
/* Events that wait for their programs. An event of an ID that nobody owns yet waits in the ID's own list only. Once the
 * ID has an owner, its events are in the list of all, in the order in which they happened. */
#ifndef PUMICE_DAEMON_CORE_CM_EVENT_LIST_H
#define PUMICE_DAEMON_CORE_CM_EVENT_LIST_H

#include "daemon/core/base/list.h"
#include "daemon/core/cm/cm_types.h"

struct queued_event {
    struct list_node order; /* in event_list.ready, or free */
    struct list_node of_id; /* in the list of the ID that the event is for */
    struct cm_event ev;
};
struct event_list {
    struct queued_event *pool;
    uint32_t size, untouched; /* entries; those that were never used */
    uint32_t used;
    struct list_node free;
    struct list_node ready;
};

void event_list_init(struct event_list *l, struct queued_event *pool, uint32_t size);
/* Appends a copy to the ID's list `own`, and to the ready ones if the ID has an owner. False: no room. */
bool event_list_add(struct event_list *l, struct list_node *own, bool has_owner, const struct cm_event *ev);
/* The ID has an owner from now on. */
void event_list_release(struct event_list *l, struct list_node *own);
/* The oldest event that is ready. False: there is none. */
bool event_list_pop(struct event_list *l, struct cm_event *out);
/* Removes the oldest event of an ID. False: there is none. */
bool event_list_drop(struct event_list *l, struct list_node *own, struct cm_event *out);

#endif
