// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/timer_heap.h"

#include <stddef.h>

#include "daemon/core/base/types.h"

void heap_timer_init(struct heap_timer *t)
{
    t->when = NEVER;
    t->place = 0;
}

static void put(struct timer_heap *h, struct heap_timer *t, uint32_t place)
{
    h->timer[place] = t;
    t->place = place;
}

static void move_up(struct timer_heap *h, struct heap_timer *t)
{
    uint32_t at = t->place;
    while (at > 0 && h->timer[(at - 1) / 2]->when > t->when) {
        put(h, h->timer[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    put(h, t, at);
}

static void move_down(struct timer_heap *h, struct heap_timer *t)
{
    uint32_t at = t->place, child;
    while ((child = 2 * at + 1) < h->count) {
        if (child + 1 < h->count && h->timer[child + 1]->when < h->timer[child]->when)
            child++;
        if (h->timer[child]->when >= t->when)
            break;
        put(h, h->timer[child], at);
        at = child;
    }
    put(h, t, at);
}

static void take_out(struct timer_heap *h, struct heap_timer *t)
{
    struct heap_timer *last = h->timer[--h->count];
    if (last != t) {
        put(h, last, t->place);
        move_up(h, last);
        move_down(h, last);
    }
    t->when = NEVER;
}

void timer_heap_set(struct timer_heap *h, struct heap_timer *t, uint64_t when)
{
    if (t->when != NEVER)
        take_out(h, t);
    if (when == NEVER)
        return;
    t->when = when;
    put(h, t, h->count++);
    move_up(h, t);
}

uint64_t timer_heap_earliest(const struct timer_heap *h)
{
    return h->count ? h->timer[0]->when : NEVER;
}

struct heap_timer *timer_heap_pop(struct timer_heap *h, uint64_t now)
{
    if (h->count == 0 || h->timer[0]->when > now)
        return NULL;
    struct heap_timer *t = h->timer[0];
    take_out(h, t);
    return t;
}
