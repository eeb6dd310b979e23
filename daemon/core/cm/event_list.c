// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/event_list.h"

void event_list_init(struct event_list *l, struct queued_event *pool, uint32_t size)
{
    l->pool = pool;
    l->size = size;
    l->untouched = size;
    l->used = 0;
    list_init(&l->free);
    list_init(&l->ready);
}

static struct queued_event *take(struct event_list *l)
{
    struct queued_event *e;
    if (!list_empty(&l->free)) {
        e = list_entry(l->free.next, struct queued_event, order);
        list_remove(&e->order);
    } else if (l->untouched) {
        e = &l->pool[l->size - l->untouched--];
        list_init(&e->order);
        list_init(&e->of_id);
    } else {
        return NULL;
    }
    l->used++;
    return e;
}

static void give_back(struct event_list *l, struct queued_event *e)
{
    list_remove(&e->order);
    list_remove(&e->of_id);
    list_prepend(&l->free, &e->order); /* its memory is warm */
    l->used--;
}

bool event_list_add(struct event_list *l, struct list_node *own, bool has_owner, const struct cm_event *ev)
{
    struct queued_event *e = take(l);
    if (!e)
        return false;
    e->ev = *ev;
    list_append(own, &e->of_id);
    if (has_owner)
        list_append(&l->ready, &e->order);
    return true;
}

void event_list_release(struct event_list *l, struct list_node *own)
{
    for (struct list_node *n = own->next; n != own; n = n->next) {
        struct queued_event *e = list_entry(n, struct queued_event, of_id);
        if (list_empty(&e->order))
            list_append(&l->ready, &e->order);
    }
}

bool event_list_pop(struct event_list *l, struct cm_event *out)
{
    if (list_empty(&l->ready))
        return false;
    struct queued_event *e = list_entry(l->ready.next, struct queued_event, order);
    *out = e->ev;
    give_back(l, e);
    return true;
}

bool event_list_drop(struct event_list *l, struct list_node *own, struct cm_event *out)
{
    if (list_empty(own))
        return false;
    struct queued_event *e = list_entry(own->next, struct queued_event, of_id);
    *out = e->ev;
    give_back(l, e);
    return true;
}
