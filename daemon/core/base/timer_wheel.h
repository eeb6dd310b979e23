// SPDX-License-Identifier: BSD-2-Clause
/* The timers of one engine: a timer wheel. Setting and stopping a timer costs O(1). A timer that is due later than
 * one lap of the wheel stays in its slot and is skipped until then.
 *
 * A slot covers one tick. Each timer keeps its exact time, so none fires early. */
#ifndef PUMICE_DAEMON_CORE_BASE_TIMER_WHEEL_H
#define PUMICE_DAEMON_CORE_BASE_TIMER_WHEEL_H

#include <stdint.h>

#include "daemon/core/base/list.h"
#include "daemon/core/base/types.h"

#define TIMER_WHEEL_SLOTS 4096u
#define TIMER_WHEEL_TICK_SHIFT 14 /* a tick (slot) is 16.4 us wide; a lap takes 67 ms */

/* The owner of the timer. The wheel does not use it. */
enum timer_kind {
    TIMER_QP,
    TIMER_PEER, /* peer_window.flow */
    TIMER_PATH, /* peer_window.congestion */
};
struct timer {
    struct list_node link; /* in its slot */
    uint64_t when; /* due time, ns; NEVER: not set */
    uint8_t kind; /* enum timer_kind */
};
struct timer_wheel {
    struct list_node slot[TIMER_WHEEL_SLOTS];
    uint64_t occupied[TIMER_WHEEL_SLOTS / 64]; /* bit set: the slot may hold timers */
    uint64_t earliest; /* lower bound of all due times; NEVER if there are no timers */
    uint64_t tick; /* slots before this tick have been visited */
    uint32_t timers;
};

void timer_wheel_init(struct timer_wheel *w);
void timer_init(struct timer *t); /* its kind is TIMER_QP */
/* Sets t to fire at `when`, also if it is set already. NEVER stops it. */
void timer_wheel_set(struct timer_wheel *w, struct timer *t, uint64_t when);
/* Removes and returns one timer that is due. NULL: none is due. Call it until it returns NULL. */
struct timer *timer_wheel_pop(struct timer_wheel *w, uint64_t now);
/* A lower bound of all due times; NEVER if there are no timers. */
uint64_t timer_wheel_earliest(const struct timer_wheel *w);

#endif
