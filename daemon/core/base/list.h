// SPDX-License-Identifier: BSD-2-Clause
/* Intrusive doubly linked lists with a head node. A node that is on no list points to itself. */
#ifndef PUMICE_DAEMON_CORE_BASE_LIST_H
#define PUMICE_DAEMON_CORE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *prev, *next;
};

#define list_entry(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list_node *l)
{
    l->prev = l->next = l;
}
static inline bool list_empty(const struct list_node *l)
{
    return l->next == l;
}
static inline void list_append(struct list_node *head, struct list_node *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
static inline void list_prepend(struct list_node *head, struct list_node *l)
{
    list_append(head->next, l); /* before the first node, or before the head if the list is empty */
}
static inline void list_remove(struct list_node *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

#endif
