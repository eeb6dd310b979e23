// SPDX-License-Identifier: BSD-2-Clause
/* Timers of one engine: a wheel of rooms, as the usnic transport's "hotel". Checking in and out costs O(1); whoever
 * stays longer than one lap of the wheel keeps its room and is passed over until its time has come.
 *
 * Rooms are keyed by time of departure; the exact time is kept, so nobody leaves early. */
#ifndef PUMICE_CORE_TIMER_WHEEL_H
#define PUMICE_CORE_TIMER_WHEEL_H

#include <stdint.h>

#include "daemon/core/base/list.h"
#include "daemon/core/base/types.h"

#define TIMER_WHEEL_SLOTS 4096u
#define TIMER_WHEEL_TICK_SHIFT 14 /* a room is 16.4 us wide, a lap takes 67 ms */

enum timer_kind { /* whose timer it is: the porter doesn't care */
                  TIMER_QP,
                  TIMER_PEER,
};
struct timer {
    struct list_node link; /* in its room */
    uint64_t when; /* time of departure, ns; NEVER: not checked in */
    uint8_t kind; /* enum timer_kind */
};
struct timer_wheel {
    struct list_node room[TIMER_WHEEL_SLOTS];
    uint64_t occupied[TIMER_WHEEL_SLOTS / 64]; /* bit set: the room may have guests */
    uint64_t earliest; /* lower bound of all departures; NEVER if there is nobody */
    uint64_t tick; /* rooms before this tick have been visited */
    uint32_t timers;
};

void timer_wheel_init(struct timer_wheel *h);
void timer_init(struct timer *g); /* a TIMER_QP */
/* Checks g in to leave at `when` (moving it if it is in already). NEVER checks it out. */
void timer_wheel_set(struct timer_wheel *h, struct timer *g, uint64_t when);
/* Removes and returns one guest whose time has come, NULL if there is none. Call until NULL. */
struct timer *timer_wheel_pop(struct timer_wheel *h, uint64_t now);
/* A time not after the next departure; NEVER if nobody is in. */
uint64_t timer_wheel_earliest(const struct timer_wheel *h);

#endif
