// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/tm/match_list.h"

/* Entries that never match are searched only for explanations. At most this many are searched. */
#define NEVER_LOOKED_AT 16u

static struct list_node *bucket(const struct tm_list *l, uint64_t tag, uint64_t mask)
{
    uint64_t x = tag + mask * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return &l->buckets[(x ^ (x >> 32)) & l->bucket_mask];
}

void tm_list_init(struct tm_list *l, struct list_node *buckets, uint32_t num_buckets, struct mask_class *classes,
                  uint32_t n)
{
    list_init(&l->order);
    list_init(&l->never);
    list_init(&l->classes);
    list_init(&l->free_classes);
    for (uint32_t i = 0; i < n; i++)
        list_append(&l->free_classes, &classes[i].link);
    l->buckets = buckets;
    l->bucket_mask = num_buckets - 1;
    for (uint32_t i = 0; i < num_buckets; i++)
        list_init(&buckets[i]);
    l->num_classes = 0;
    l->next_seq = l->active_end = 0;
    l->active = l->pending = 0;
}

/* There is one free class for each entry, so a class is always available. */
static struct mask_class *class_get(struct tm_list *l, uint64_t mask)
{
    for (struct list_node *at = l->classes.next; at != &l->classes; at = at->next) {
        struct mask_class *c = list_entry(at, struct mask_class, link);
        if (c->mask == mask) {
            c->count++;
            return c;
        }
    }
    struct mask_class *c = list_entry(l->free_classes.next, struct mask_class, link);
    list_remove(&c->link);
    list_append(&l->classes, &c->link);
    c->mask = mask;
    c->count = 1;
    l->num_classes++;
    return c;
}

static void class_put(struct tm_list *l, struct mask_class *c)
{
    if (--c->count)
        return;
    list_remove(&c->link);
    list_append(&l->free_classes, &c->link);
    l->num_classes--;
}

bool tm_list_active(const struct tm_list *l, const struct tm_entry *e)
{
    return e->seq < l->active_end;
}

void tm_list_append(struct tm_list *l, struct tm_entry *e, bool active)
{
    e->seq = l->next_seq++;
    list_append(&l->order, &e->order);
    if (e->tag & ~e->mask) {
        e->class = NULL;
        list_append(&l->never, &e->chain);
    } else {
        e->class = class_get(l, e->mask);
        list_append(bucket(l, e->tag, e->mask), &e->chain);
    }
    l->pending++;
    if (active)
        tm_list_activate(l);
}

void tm_list_remove(struct tm_list *l, struct tm_entry *e)
{
    list_remove(&e->order);
    list_remove(&e->chain);
    if (e->class)
        class_put(l, e->class);
    e->class = NULL;
    if (tm_list_active(l, e))
        l->active--;
    else
        l->pending--;
}

uint32_t tm_list_activate(struct tm_list *l)
{
    uint32_t n = l->pending;
    l->active_end = l->next_seq;
    l->active += n;
    l->pending = 0;
    return n;
}

/* Returns the first matching entry with this mask. A chain is in the order of posting, so this is the first match in
 * the chain. */
static struct tm_entry *find_in_class(const struct tm_list *l, const struct mask_class *c, uint64_t tag,
                                      uint32_t *depth)
{
    const struct list_node *head = bucket(l, tag & c->mask, c->mask);
    for (const struct list_node *at = head->next; at != head; at = at->next) {
        const struct tm_entry *e = list_entry(at, const struct tm_entry, chain);
        ++*depth;
        if (e->mask == c->mask && e->tag == (tag & c->mask))
            return list_entry(at, struct tm_entry, chain);
    }
    return NULL;
}

struct tm_entry *tm_list_find(const struct tm_list *l, uint64_t tag, uint32_t *depth)
{
    struct tm_entry *first = NULL;
    for (const struct list_node *at = l->classes.next; at != &l->classes; at = at->next) {
        struct tm_entry *e = find_in_class(l, list_entry(at, const struct mask_class, link), tag, depth);
        ++*depth;
        if (e && (!first || e->seq < first->seq))
            first = e;
    }
    return first;
}

struct tm_entry *tm_list_find_never(const struct tm_list *l, uint64_t tag)
{
    uint32_t n = 0;
    for (const struct list_node *at = l->never.next; at != &l->never && n < NEVER_LOOKED_AT; at = at->next, n++) {
        struct tm_entry *e = list_entry(at, struct tm_entry, chain);
        if (((tag ^ e->tag) & e->mask) == 0)
            return e;
    }
    return NULL;
}
