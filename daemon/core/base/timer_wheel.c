// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/timer_wheel.h"

static uint32_t slot_of(uint64_t tick)
{
    return (uint32_t)(tick & (TIMER_WHEEL_SLOTS - 1));
}

void timer_wheel_init(struct timer_wheel *w)
{
    for (uint32_t i = 0; i < TIMER_WHEEL_SLOTS; i++)
        list_init(&w->slot[i]);
    for (uint32_t i = 0; i < TIMER_WHEEL_SLOTS / 64; i++)
        w->occupied[i] = 0;
    w->earliest = NEVER;
    w->tick = 0;
    w->timers = 0;
}

void timer_init(struct timer *t)
{
    list_init(&t->link);
    t->when = NEVER;
    t->kind = TIMER_QP;
}

void timer_wheel_set(struct timer_wheel *w, struct timer *t, uint64_t when)
{
    if (t->when == when)
        return;
    if (t->when != NEVER) {
        list_remove(&t->link);
        w->timers--;
    }
    t->when = when;
    if (when == NEVER) {
        if (w->timers == 0)
            w->earliest = NEVER;
        return;
    }
    uint64_t tick = when >> TIMER_WHEEL_TICK_SHIFT;
    /* A timer that is already due goes into the current slot. A slot before it would be visited one lap late. */
    uint32_t slot = slot_of(tick < w->tick ? w->tick : tick);
    list_append(&w->slot[slot], &t->link);
    w->occupied[slot / 64] |= 1ull << (slot % 64);
    w->timers++;
    if (when < w->earliest)
        w->earliest = when;
}

/* Finds the next slot that may hold timers, at most one lap from tick `from` on. Returns its tick; NEVER: there is
 * none. */
static uint64_t next_occupied(const struct timer_wheel *w, uint64_t from)
{
    for (uint32_t step = 0; step < TIMER_WHEEL_SLOTS;) {
        uint32_t slot = slot_of(from + step);
        uint64_t bits = w->occupied[slot / 64] >> (slot % 64);
        if (bits) {
            step += (uint32_t)__builtin_ctzll(bits);
            return step < TIMER_WHEEL_SLOTS ? from + step : NEVER;
        }
        step += 64 - slot % 64;
    }
    return NEVER;
}

/* The earliest due time in the slot of `tick`, without timers of later laps. */
static uint64_t slot_earliest(const struct timer_wheel *w, uint64_t tick)
{
    uint64_t best = NEVER;
    const struct list_node *head = &w->slot[slot_of(tick)];
    for (const struct list_node *l = head->next; l != head; l = l->next) {
        uint64_t when = list_entry(l, const struct timer, link)->when;
        if (when >> TIMER_WHEEL_TICK_SHIFT <= tick && when < best)
            best = when;
    }
    return best;
}

static void find_earliest(struct timer_wheel *w)
{
    w->earliest = NEVER;
    if (w->timers == 0)
        return;
    uint64_t lap_end = w->tick + TIMER_WHEEL_SLOTS;
    for (uint64_t tick = w->tick; tick < lap_end; tick++) {
        tick = next_occupied(w, tick);
        if (tick >= lap_end)
            break;
        w->earliest = slot_earliest(w, tick);
        if (w->earliest != NEVER)
            return;
    }
    w->earliest = lap_end << TIMER_WHEEL_TICK_SHIFT; /* all timers are due later than a lap: look again then */
}

/* Removes and returns a due timer in the slot of w->tick. */
static struct timer *due_in_slot(struct timer_wheel *w, uint64_t now)
{
    uint32_t slot = slot_of(w->tick);
    struct list_node *head = &w->slot[slot];
    for (struct list_node *l = head->next; l != head; l = l->next) {
        struct timer *t = list_entry(l, struct timer, link);
        if (t->when > now)
            continue;
        list_remove(l);
        t->when = NEVER;
        w->timers--;
        return t;
    }
    if (list_empty(head))
        w->occupied[slot / 64] &= ~(1ull << (slot % 64));
    return NULL;
}

struct timer *timer_wheel_pop(struct timer_wheel *w, uint64_t now)
{
    if (now < w->earliest)
        return NULL;
    uint64_t last = now >> TIMER_WHEEL_TICK_SHIFT;
    if (w->timers == 0) {
        w->tick = last;
        w->earliest = NEVER;
        return NULL;
    }
    if (last >= TIMER_WHEEL_SLOTS && w->tick < last - TIMER_WHEEL_SLOTS + 1)
        w->tick = last - TIMER_WHEEL_SLOTS + 1; /* a whole lap visits every slot */
    while (w->tick <= last) {
        uint64_t tick = next_occupied(w, w->tick);
        if (tick > last)
            break;
        w->tick = tick;
        struct timer *t = due_in_slot(w, now);
        if (t)
            return t;
        if (tick == last)
            break;
        w->tick = tick + 1;
    }
    w->tick = last;
    find_earliest(w);
    return NULL;
}

uint64_t timer_wheel_earliest(const struct timer_wheel *w)
{
    return w->earliest;
}
