// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/cm_id.h"

#include <string.h>

#define TWEAK_PSN 0x40000u
#define NS_PER_MS 1000000u

uint64_t cm_time_ns(unsigned n)
{
    return (n > 8 ? 1ull << (n - 8) : 1ull) * NS_PER_MS;
}

/* The sum of two powers of two is rounded to one: the larger, or twice the larger if the smaller is at least half of
 * it. */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life)
{
    unsigned there_and_back = packet_life + 1u, sum;
    if (there_and_back >= ack_delay)
        sum = there_and_back + (ack_delay + 1u >= there_and_back ? 1 : 0);
    else
        sum = ack_delay + (there_and_back + 1u >= ack_delay ? 1u : 0u);
    return (uint8_t)(sum < 31 ? sum : 31);
}

/* --- the pool ------------------------------------------------------------------------------------- */

struct cm_id *cm_id_new(struct cm *cm)
{
    struct cm_id *id;
    if (list_empty(&cm->free) && cm->untouched == 0) {
        if (list_empty(&cm->ending))
            return NULL;
        cm_id_free(list_entry(cm->ending.next, struct cm_id, ending));
    }
    if (!list_empty(&cm->free)) {
        id = list_entry(cm->free.next, struct cm_id, all);
        list_remove(&id->all);
    } else {
        id = &cm->pool[cm->cfg.max_ids - cm->untouched--];
    }
    memset(id, 0, sizeof(*id));
    id->cm = cm;
    list_init(&id->all);
    list_init(&id->ending);
    list_init(&id->children);
    list_init(&id->sibling);
    list_init(&id->events);
    heap_timer_init(&id->timer);
    id->route.device = CM_NO_DEVICE;
    list_append(&cm->ids, &id->all);
    cm->count++;
    return id;
}

void cm_id_free(struct cm_id *id)
{
    struct cm *cm = id->cm;
    struct cm_event ev;
    cm_id_leave_listener(id);
    cm_id_leave_tables(id);
    comm_table_remove(&cm->comm, &id->by_local);
    port_space_release(&id->bind);
    cm_id_set_timer(id, CM_TIMER_NONE, NEVER);
    while (event_list_drop(&cm->events, &id->events, &ev)) {
    }
    list_remove(&id->ending);
    list_remove(&id->all);
    list_prepend(&cm->free, &id->all);
    id->cm = NULL;
    cm->count--;
}

uint32_t cm_id_new_psn(struct cm *cm)
{
    return permute(&cm->cfg.secret, TWEAK_PSN, 24, ++cm->next_psn & 0xffffff);
}

void cm_id_get_comm(struct cm_id *id)
{
    struct comm_key key = {.kind = COMM_LOCAL, .number = comm_table_new_id(&id->cm->comm)};
    id->has_comm = true;
    id->local_comm_id = key.number;
    comm_table_insert(&id->cm->comm, &id->by_local, &key);
    id->tid = (id->cm->cfg.secret.word[0] & 0xffffffff00000000u) | key.number;
}

struct cm_id *cm_id_by_local(const struct cm *cm, uint32_t comm_id)
{
    struct comm_key key = {.kind = COMM_LOCAL, .number = comm_id};
    struct comm_node *n = comm_table_find(&cm->comm, &key);
    return n ? list_entry(n, struct cm_id, by_local) : NULL;
}

struct cm_id *cm_id_of_remote(struct comm_node *n)
{
    return list_entry(n, struct cm_id, by_remote);
}

struct cm_id *cm_id_of_remote_qp(struct comm_node *n)
{
    return list_entry(n, struct cm_id, by_remote_qp);
}

void cm_id_leave_tables(struct cm_id *id)
{
    comm_table_remove(&id->cm->comm, &id->by_remote);
    comm_table_remove(&id->cm->comm, &id->by_remote_qp);
}

void cm_id_leave_listener(struct cm_id *id)
{
    struct cm_id *l = id->listener;
    if (!l)
        return;
    list_remove(&id->sibling);
    l->waiting--;
    if (!id->owner)
        l->unowned--;
    id->listener = NULL;
}

bool cm_id_is_peer(const struct cm_id *id, const struct cm_datagram *d)
{
    return memcmp(id->dst.gid, d->remote_gid, sizeof(id->dst.gid)) == 0 &&
           memcmp(id->bind.addr.gid, d->local_gid, sizeof(d->local_gid)) == 0;
}

/* --- events and timers ------------------------------------------------------------------------------ */

void cm_id_report(struct cm_id *id, const struct cm_event *ev)
{
    if (!id->is_ending)
        event_list_add(&id->cm->events, &id->events, id->owner != NULL, ev);
}

void cm_id_report_status(struct cm_id *id, enum cm_event_type type, int32_t status)
{
    struct cm_event ev = {.id = id, .type = (uint8_t)type, .status = status};
    cm_id_report(id, &ev);
}

void cm_id_set_timer(struct cm_id *id, enum cm_timer_use use, uint64_t when)
{
    id->timer_use = (uint8_t)use;
    timer_heap_set(&id->cm->timers, &id->timer, when);
}
