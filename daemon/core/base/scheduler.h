// SPDX-License-Identifier: BSD-2-Clause
/* The ready list of an engine: QPs that may have something to send or to complete. A QP may also wait for something
 * outside itself, such as room in a peer's window. It is then on a list there, and becomes ready when that changes.
 *
 * Each QP belongs to a share. The owner gives all QPs of one user one share. The QPs of a share take turns in the order
 * in which they became ready. The next turn belongs to the ready share whose turns have cost least so far. So a user with
 * a thousand busy QPs gets no more than a user with one. A share that becomes ready starts where the others are: it gets
 * nothing for the time in which it had nothing to do.
 *
 * The entities are embedded in QPs. This module does not know QPs. */
#ifndef PUMICE_DAEMON_CORE_BASE_SCHEDULER_H
#define PUMICE_DAEMON_CORE_BASE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/list.h"

/* Cost of a packet beside its payload, in bytes: it takes as long as a copy of so many. */
#define PACKET_COST 2048u

struct scheduler;
struct sched_share {
    struct scheduler *scheduler;
    struct list_node link; /* in scheduler.shares, while it has ready entities */
    struct list_node ready; /* of sched_entity.ready */
    uint64_t cost; /* of its turns, in bytes; see scheduler.cost */
    uint64_t received; /* cost of received packets, which becomes part of `cost` after the next turn */
};
struct scheduler {
    struct list_node shares; /* those with ready entities, the one with the lowest cost first */
    uint32_t count; /* ready entities of all shares */
    uint32_t round; /* changes when a turn made progress; see scheduler_next */
    uint64_t cost; /* of the share that had the latest turn, before that turn */
    struct sched_share common; /* of entities to which the owner gives no share */
};
struct sched_entity {
    struct sched_share *share;
    struct list_node ready; /* in sched_share.ready */
    struct list_node waiting; /* in a list of entities that wait for the same thing */
    uint32_t round; /* in which it had a turn without progress */
};

static inline void sched_share_init(struct sched_share *share, struct scheduler *s)
{
    share->scheduler = s;
    list_init(&share->link);
    list_init(&share->ready);
    share->cost = share->received = 0;
}
static inline void scheduler_init(struct scheduler *s)
{
    list_init(&s->shares);
    s->count = s->round = 0;
    s->cost = 0;
    sched_share_init(&s->common, s);
}
static inline void sched_entity_init(struct sched_entity *e, struct sched_share *share)
{
    e->share = share;
    e->round = share->scheduler->round - 1;
    list_init(&e->ready);
    list_init(&e->waiting);
}
static inline bool scheduler_is_idle(const struct scheduler *s)
{
    return list_empty(&s->shares);
}

static inline uint64_t sched_share_cost(const struct list_node *link)
{
    return list_entry(link, struct sched_share, link)->cost;
}
/* Puts a ready share where it belongs. first: before those that cost the same; otherwise after them. */
static inline void sched_share_insert(struct sched_share *share, bool first)
{
    struct list_node *head = &share->scheduler->shares, *next = first ? head->next : head;
    if (first) {
        while (next != head && sched_share_cost(next) < share->cost)
            next = next->next;
    } else {
        while (next->prev != head && sched_share_cost(next->prev) > share->cost)
            next = next->prev;
    }
    list_append(next, &share->link); /* before next */
}
static inline void sched_share_begin(struct sched_share *share, bool first)
{
    if (share->cost < share->scheduler->cost)
        share->cost = share->scheduler->cost;
    sched_share_insert(share, first);
}

/* Puts the entity at the end of the ready list of its share, unless it is there already. */
static inline void sched_make_ready(struct sched_entity *e)
{
    struct sched_share *share = e->share;
    if (!list_empty(&e->ready))
        return;
    if (list_empty(&share->ready))
        sched_share_begin(share, false);
    list_append(&share->ready, &e->ready);
    share->scheduler->count++;
}
/* Gives the entity the next turn of its share, unless it is ready already. The share comes before those that cost the
 * same. */
static inline void sched_make_ready_first(struct sched_entity *e)
{
    struct sched_share *share = e->share;
    if (!list_empty(&e->ready))
        return;
    list_remove(&share->link);
    sched_share_begin(share, true);
    list_prepend(&share->ready, &e->ready);
    share->scheduler->count++;
}
/* Takes the entity off the ready list. */
static inline void sched_make_unready(struct sched_entity *e)
{
    if (list_empty(&e->ready))
        return;
    list_remove(&e->ready);
    e->share->scheduler->count--;
    if (list_empty(&e->share->ready))
        list_remove(&e->share->link);
}

/* All entities may have a turn again. */
static inline void scheduler_new_round(struct scheduler *s)
{
    s->round++;
}
/* Removes and returns the entity that has the next turn. NULL: no entity is ready, or the first one of each share had a
 * turn without progress in this round. */
static inline struct sched_entity *scheduler_next(struct scheduler *s)
{
    for (struct list_node *l = s->shares.next; l != &s->shares; l = l->next) {
        struct sched_share *share = list_entry(l, struct sched_share, link);
        struct sched_entity *e = list_entry(share->ready.next, struct sched_entity, ready);
        if (e->round == s->round)
            continue;
        s->cost = share->cost;
        sched_make_unready(e);
        return e;
    }
    return NULL;
}
/* Charges the share for packets that came in. So a user pays for both ends of traffic within a device. */
static inline void sched_charge_received(struct sched_entity *e, uint32_t cost)
{
    e->share->received += cost;
}
/* Ends the turn of an entity. cost: of the turn, in bytes. */
static inline void sched_end_turn(struct sched_entity *e, uint32_t cost, bool progress)
{
    struct sched_share *share = e->share;
    share->cost += cost + share->received;
    share->received = 0;
    if (progress)
        share->scheduler->round++;
    else
        e->round = share->scheduler->round;
    if (list_empty(&share->ready))
        return;
    list_remove(&share->link);
    sched_share_insert(share, false);
}

/* Payload that an entity may send in its turn. It is unlimited while no other entity is ready, because one long copy out
 * of client memory costs less than several short ones. more: the entity has other packets to send in this turn, too. */
static inline uint32_t sched_turn_bytes(const struct sched_entity *e, uint32_t burst_bytes, bool more)
{
    return !more && scheduler_is_idle(e->share->scheduler) ? UINT32_MAX : burst_bytes;
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
