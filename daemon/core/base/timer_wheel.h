// SPDX-License-Identifier: BSD-2-Clause
/* Timers of one engine: a wheel of rooms, as the usnic transport's "hotel". Checking in and out costs O(1); whoever
 * stays longer than one lap of the wheel keeps its room and is passed over until its time has come.
 *
 * Rooms are keyed by time of departure; the exact time is kept, so nobody leaves early. */
#ifndef PUMICE_CORE_HOTEL_H
#define PUMICE_CORE_HOTEL_H

#include <stdint.h>

#include "daemon/core/base/list.h"
#include "daemon/core/base/types.h"

#define HOTEL_ROOMS 4096u
#define HOTEL_TICK_SHIFT 14 /* a room is 16.4 us wide, a lap takes 67 ms */

enum guest_kind { /* whose timer it is: the porter doesn't care */
                  GUEST_QP,
                  GUEST_PEER,
};
struct guest {
    struct link link; /* in its room */
    uint64_t when; /* time of departure, ns; NEVER: not checked in */
    uint8_t kind; /* enum guest_kind */
};
struct hotel {
    struct link room[HOTEL_ROOMS];
    uint64_t occupied[HOTEL_ROOMS / 64]; /* bit set: the room may have guests */
    uint64_t earliest; /* lower bound of all departures; NEVER if there is nobody */
    uint64_t tick; /* rooms before this tick have been visited */
    uint32_t guests;
};

void hotel_init(struct hotel *h);
void guest_init(struct guest *g); /* a GUEST_QP */
/* Checks g in to leave at `when` (moving it if it is in already). NEVER checks it out. */
void hotel_check_in(struct hotel *h, struct guest *g, uint64_t when);
/* Removes and returns one guest whose time has come, NULL if there is none. Call until NULL. */
struct guest *hotel_check_out(struct hotel *h, uint64_t now);
/* A time not after the next departure; NEVER if nobody is in. */
uint64_t hotel_earliest(const struct hotel *h);

#endif
