// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/reorder.h"

#include <string.h>

size_t reorder_slot_size(uint32_t payload)
{
    return (sizeof(struct held_packet) + payload + 63) & ~(size_t)63;
}

void reorder_pool_init(struct reorder_pool *pool, uint8_t *mem, uint32_t slots, uint32_t payload)
{
    *pool = (struct reorder_pool){.mem = mem, .payload = payload, .slots = slots, .free = slots};
    list_init(&pool->unused);
    list_init(&pool->spent);
}

void reorder_reuse(struct reorder_pool *pool)
{
    while (!list_empty(&pool->spent)) {
        struct list_node *l = pool->spent.next;
        list_remove(l);
        list_prepend(&pool->unused, l);
        pool->free++;
    }
}

static struct held_packet *take_slot(struct reorder_pool *pool)
{
    struct held_packet *h;
    pool->free--;
    if (list_empty(&pool->unused)) {
        h = (struct held_packet *)(void *)(pool->mem + pool->untouched++ * reorder_slot_size(pool->payload));
        list_init(&h->link);
        return h;
    }
    h = list_entry(pool->unused.next, struct held_packet, link);
    list_remove(&h->link);
    return h;
}

/* The packet that a packet with this PSN comes behind; the list's head if there is none. Most packets are the newest. */
static struct list_node *place_of(struct reorder_queue *q, uint32_t psn)
{
    struct list_node *l = q->packets.prev;
    while (l != &q->packets && psn_diff(list_entry(l, struct held_packet, link)->p.psn, psn) > 0)
        l = l->prev;
    return l;
}

enum reorder_result reorder_hold(struct reorder_pool *pool, struct reorder_queue *q, const struct pkt *p, uint32_t psns,
                                 uint32_t expected)
{
    struct list_node *place = place_of(q, p->psn);
    uint32_t before = expected;
    if (place != &q->packets) {
        const struct held_packet *h = list_entry(place, struct held_packet, link);
        before = h->end;
        if (psn_diff(p->psn, before) < 0)
            return REORDER_TWICE;
    }
    if (p->payload_len > pool->payload || q->count >= pool->free)
        return REORDER_NO_ROOM;
    struct held_packet *h = take_slot(pool);
    h->p = *p;
    h->p.payload = (const uint8_t *)(h + 1);
    h->end = psn_add(p->psn, psns);
    if (p->payload_len)
        memcpy(h + 1, p->payload, p->payload_len);
    bool newest = place->next == &q->packets;
    list_prepend(place, &h->link);
    q->count++;
    return newest && psn_diff(p->psn, before) > 0 ? REORDER_GAP : REORDER_HELD;
}

void reorder_drop_first(struct reorder_pool *pool, struct reorder_queue *q)
{
    struct list_node *l = q->packets.next;
    list_remove(l);
    list_append(&pool->spent, l);
    q->count--;
}

void reorder_discard_newest(struct reorder_pool *pool, struct reorder_queue *q)
{
    struct list_node *l = q->packets.prev;
    list_remove(l);
    list_prepend(&pool->unused, l);
    pool->free++;
    q->count--;
}

void reorder_clear(struct reorder_pool *pool, struct reorder_queue *q)
{
    while (q->count)
        reorder_drop_first(pool, q);
}
