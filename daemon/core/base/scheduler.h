// SPDX-License-Identifier: BSD-2-Clause
/* The ready list of an engine: QPs that may have something to send or to complete, in the order in which they became
 * ready. A QP may also wait for something outside itself, such as room in a peer's window. It is then on a list there,
 * and becomes ready when that changes.
 *
 * The entities are embedded in QPs. This module does not know QPs. */
#ifndef PUMICE_DAEMON_CORE_BASE_SCHEDULER_H
#define PUMICE_DAEMON_CORE_BASE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/list.h"

struct scheduler {
    struct list_node ready; /* of sched_entity.ready */
    uint32_t count; /* entities in it */
};
struct sched_entity {
    struct scheduler *scheduler;
    struct list_node ready; /* in scheduler.ready */
    struct list_node waiting; /* in a list of entities that wait for the same thing */
};

static inline void scheduler_init(struct scheduler *s)
{
    list_init(&s->ready);
    s->count = 0;
}
static inline void sched_entity_init(struct sched_entity *e, struct scheduler *s)
{
    e->scheduler = s;
    list_init(&e->ready);
    list_init(&e->waiting);
}
static inline bool scheduler_is_idle(const struct scheduler *s)
{
    return list_empty(&s->ready);
}

/* Puts the entity at the end of the ready list, unless it is there already. */
static inline void sched_make_ready(struct sched_entity *e)
{
    if (!list_empty(&e->ready))
        return;
    list_append(&e->scheduler->ready, &e->ready);
    e->scheduler->count++;
}
/* Puts the entity at the start of the ready list, unless it is there already. */
static inline void sched_make_ready_first(struct sched_entity *e)
{
    if (!list_empty(&e->ready))
        return;
    list_prepend(&e->scheduler->ready, &e->ready);
    e->scheduler->count++;
}
/* Takes the entity off the ready list. */
static inline void sched_make_unready(struct sched_entity *e)
{
    if (list_empty(&e->ready))
        return;
    list_remove(&e->ready);
    e->scheduler->count--;
}
/* Removes and returns the first ready entity. The list must not be empty. */
static inline struct sched_entity *scheduler_take(struct scheduler *s)
{
    struct sched_entity *e = list_entry(s->ready.next, struct sched_entity, ready);
    sched_make_unready(e);
    return e;
}

/* Payload that an entity may send in its turn. It is unlimited while no other entity is ready, because one long copy out
 * of client memory costs less than several short ones. more: the entity has other packets to send in this turn, too. */
static inline uint32_t sched_turn_bytes(const struct sched_entity *e, uint32_t burst_bytes, bool more)
{
    return !more && scheduler_is_idle(e->scheduler) ? UINT32_MAX : burst_bytes;
}

static inline bool sched_is_waiting(const struct sched_entity *e)
{
    return !list_empty(&e->waiting);
}
/* Puts the entity at the end of a list of waiting ones. False: the entity already waits, on this list or another
 * one. */
static inline bool sched_wait(struct sched_entity *e, struct list_node *list)
{
    if (sched_is_waiting(e))
        return false;
    list_append(list, &e->waiting);
    return true;
}
static inline void sched_stop_waiting(struct sched_entity *e)
{
    list_remove(&e->waiting);
}
/* Makes all entities of a list of waiting ones ready, and empties the list. */
static inline void sched_wake_all(struct list_node *list)
{
    while (!list_empty(list)) {
        struct sched_entity *e = list_entry(list->next, struct sched_entity, waiting);
        list_remove(&e->waiting);
        sched_make_ready(e);
    }
}

#endif
