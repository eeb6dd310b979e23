// SPDX-License-Identifier: BSD-2-Clause
/* Intrusive doubly linked lists with a head node. A node that is on no list points at itself. */
#ifndef PUMICE_CORE_LINK_H
#define PUMICE_CORE_LINK_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *prev, *next;
};

#define link_owner(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}
static inline bool link_alone(const struct link *l)
{
    return l->next == l;
}
static inline void link_append(struct link *head, struct link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
static inline void link_prepend(struct link *head, struct link *l)
{
    link_append(head->next, l); /* before the first, or before the head itself */
}
static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

#endif
