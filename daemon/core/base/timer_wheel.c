// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/timer_wheel.h"

static uint32_t slot_of(uint64_t tick)
{
    return (uint32_t)(tick & (TIMER_WHEEL_SLOTS - 1));
}

void timer_wheel_init(struct timer_wheel *h)
{
    for (uint32_t i = 0; i < TIMER_WHEEL_SLOTS; i++)
        list_init(&h->slot[i]);
    for (uint32_t i = 0; i < TIMER_WHEEL_SLOTS / 64; i++)
        h->occupied[i] = 0;
    h->earliest = NEVER;
    h->tick = 0;
    h->timers = 0;
}

void timer_init(struct timer *g)
{
    list_init(&g->link);
    g->when = NEVER;
    g->kind = TIMER_QP;
}

void timer_wheel_set(struct timer_wheel *h, struct timer *g, uint64_t when)
{
    if (g->when == when)
        return;
    if (g->when != NEVER) {
        list_remove(&g->link);
        h->timers--;
    }
    g->when = when;
    if (when == NEVER) {
        if (h->timers == 0)
            h->earliest = NEVER;
        return;
    }
    uint64_t tick = when >> TIMER_WHEEL_TICK_SHIFT;
    /* A timer that is already due goes into the current slot. A slot before it would be visited one lap late. */
    uint32_t slot = slot_of(tick < h->tick ? h->tick : tick);
    list_append(&h->slot[slot], &g->link);
    h->occupied[slot / 64] |= 1ull << (slot % 64);
    h->timers++;
    if (when < h->earliest)
        h->earliest = when;
}

/* Finds the next slot that may hold timers, at most one lap from tick `from` on. Returns its tick; NEVER: there is
 * none. */
static uint64_t next_occupied(const struct timer_wheel *h, uint64_t from)
{
    for (uint32_t step = 0; step < TIMER_WHEEL_SLOTS;) {
        uint32_t slot = slot_of(from + step);
        uint64_t bits = h->occupied[slot / 64] >> (slot % 64);
        if (bits) {
            step += (uint32_t)__builtin_ctzll(bits);
            return step < TIMER_WHEEL_SLOTS ? from + step : NEVER;
        }
        step += 64 - slot % 64;
    }
    return NEVER;
}

/* The earliest due time in the slot of `tick`, without timers of later laps. */
static uint64_t slot_earliest(const struct timer_wheel *h, uint64_t tick)
{
    uint64_t best = NEVER;
    const struct list_node *head = &h->slot[slot_of(tick)];
    for (const struct list_node *l = head->next; l != head; l = l->next) {
        uint64_t when = list_entry(l, const struct timer, link)->when;
        if (when >> TIMER_WHEEL_TICK_SHIFT <= tick && when < best)
            best = when;
    }
    return best;
}

static void find_earliest(struct timer_wheel *h)
{
    h->earliest = NEVER;
    if (h->timers == 0)
        return;
    uint64_t lap_end = h->tick + TIMER_WHEEL_SLOTS;
    for (uint64_t tick = h->tick; tick < lap_end; tick++) {
        tick = next_occupied(h, tick);
        if (tick >= lap_end)
            break;
        h->earliest = slot_earliest(h, tick);
        if (h->earliest != NEVER)
            return;
    }
    h->earliest = lap_end << TIMER_WHEEL_TICK_SHIFT; /* all timers are due later than a lap: look again then */
}

/* Removes and returns a due timer in the slot of h->tick. */
static struct timer *due_in_slot(struct timer_wheel *h, uint64_t now)
{
    uint32_t slot = slot_of(h->tick);
    struct list_node *head = &h->slot[slot];
    for (struct list_node *l = head->next; l != head; l = l->next) {
        struct timer *g = list_entry(l, struct timer, link);
        if (g->when > now)
            continue;
        list_remove(l);
        g->when = NEVER;
        h->timers--;
        return g;
    }
    if (list_empty(head))
        h->occupied[slot / 64] &= ~(1ull << (slot % 64));
    return NULL;
}

struct timer *timer_wheel_pop(struct timer_wheel *h, uint64_t now)
{
    if (now < h->earliest)
        return NULL;
    uint64_t last = now >> TIMER_WHEEL_TICK_SHIFT;
    if (h->timers == 0) {
        h->tick = last;
        h->earliest = NEVER;
        return NULL;
    }
    if (last >= TIMER_WHEEL_SLOTS && h->tick < last - TIMER_WHEEL_SLOTS + 1)
        h->tick = last - TIMER_WHEEL_SLOTS + 1; /* a whole lap visits every slot */
    while (h->tick <= last) {
        uint64_t tick = next_occupied(h, h->tick);
        if (tick > last)
            break;
        h->tick = tick;
        struct timer *g = due_in_slot(h, now);
        if (g)
            return g;
        if (tick == last)
            break;
        h->tick = tick + 1;
    }
    h->tick = last;
    find_earliest(h);
    return NULL;
}

uint64_t timer_wheel_earliest(const struct timer_wheel *h)
{
    return h->earliest;
}
