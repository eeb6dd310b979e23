// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/timer_wheel.h"

static uint32_t room_of(uint64_t tick)
{
    return (uint32_t)(tick & (HOTEL_ROOMS - 1));
}

void hotel_init(struct hotel *h)
{
    for (uint32_t i = 0; i < HOTEL_ROOMS; i++)
        link_init(&h->room[i]);
    for (uint32_t i = 0; i < HOTEL_ROOMS / 64; i++)
        h->occupied[i] = 0;
    h->earliest = NEVER;
    h->tick = 0;
    h->guests = 0;
}

void guest_init(struct guest *g)
{
    link_init(&g->link);
    g->when = NEVER;
    g->kind = GUEST_QP;
}

void hotel_check_in(struct hotel *h, struct guest *g, uint64_t when)
{
    if (g->when == when)
        return;
    if (g->when != NEVER) {
        link_remove(&g->link);
        h->guests--;
    }
    g->when = when;
    if (when == NEVER) {
        if (h->guests == 0)
            h->earliest = NEVER;
        return;
    }
    uint64_t tick = when >> HOTEL_TICK_SHIFT;
    /* Rooms behind the porter would be visited a lap late: whoever is due already waits where he passes next. */
    uint32_t room = room_of(tick < h->tick ? h->tick : tick);
    link_append(&h->room[room], &g->link);
    h->occupied[room / 64] |= 1ull << (room % 64);
    h->guests++;
    if (when < h->earliest)
        h->earliest = when;
}

/* Next room that may have guests, in the order of the wheel from tick `from` on, at most one lap; returns its tick,
 * NEVER if none. */
static uint64_t next_occupied(const struct hotel *h, uint64_t from)
{
    for (uint32_t step = 0; step < HOTEL_ROOMS;) {
        uint32_t room = room_of(from + step);
        uint64_t bits = h->occupied[room / 64] >> (room % 64);
        if (bits) {
            step += (uint32_t)__builtin_ctzll(bits);
            return step < HOTEL_ROOMS ? from + step : NEVER;
        }
        step += 64 - room % 64;
    }
    return NEVER;
}

/* Earliest departure in the room of `tick` that is not in a later lap. */
static uint64_t room_earliest(const struct hotel *h, uint64_t tick)
{
    uint64_t best = NEVER;
    const struct link *head = &h->room[room_of(tick)];
    for (const struct link *l = head->next; l != head; l = l->next) {
        uint64_t when = link_owner(l, const struct guest, link)->when;
        if (when >> HOTEL_TICK_SHIFT <= tick && when < best)
            best = when;
    }
    return best;
}

static void find_earliest(struct hotel *h)
{
    h->earliest = NEVER;
    if (h->guests == 0)
        return;
    uint64_t lap_end = h->tick + HOTEL_ROOMS;
    for (uint64_t tick = h->tick; tick < lap_end; tick++) {
        tick = next_occupied(h, tick);
        if (tick >= lap_end)
            break;
        h->earliest = room_earliest(h, tick);
        if (h->earliest != NEVER)
            return;
    }
    h->earliest = lap_end << HOTEL_TICK_SHIFT; /* all stay longer than a lap: look again then */
}

/* A guest of the room of h->tick who is due. */
static struct guest *due_in_room(struct hotel *h, uint64_t now)
{
    uint32_t room = room_of(h->tick);
    struct link *head = &h->room[room];
    for (struct link *l = head->next; l != head; l = l->next) {
        struct guest *g = link_owner(l, struct guest, link);
        if (g->when > now)
            continue;
        link_remove(l);
        g->when = NEVER;
        h->guests--;
        return g;
    }
    if (link_alone(head))
        h->occupied[room / 64] &= ~(1ull << (room % 64));
    return NULL;
}

struct guest *hotel_check_out(struct hotel *h, uint64_t now)
{
    if (now < h->earliest)
        return NULL;
    uint64_t last = now >> HOTEL_TICK_SHIFT;
    if (h->guests == 0) {
        h->tick = last;
        h->earliest = NEVER;
        return NULL;
    }
    if (last >= HOTEL_ROOMS && h->tick < last - HOTEL_ROOMS + 1)
        h->tick = last - HOTEL_ROOMS + 1; /* a whole lap visits every room */
    while (h->tick <= last) {
        uint64_t tick = next_occupied(h, h->tick);
        if (tick > last)
            break;
        h->tick = tick;
        struct guest *g = due_in_room(h, now);
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

uint64_t hotel_earliest(const struct hotel *h)
{
    return h->earliest;
}
