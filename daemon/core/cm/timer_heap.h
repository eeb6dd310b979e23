// SPDX-License-Identifier: BSD-2-Clause
/* Timers of connection management, as a binary heap. They are seconds long and mostly stopped before they fire, and an
 * idle host must not wake up for them. A timer wheel with short ticks (core/base/timer_wheel.h) would. */
#ifndef PUMICE_DAEMON_CORE_CM_TIMER_HEAP_H
#define PUMICE_DAEMON_CORE_CM_TIMER_HEAP_H

#include <stdint.h>

struct heap_timer {
    uint64_t when; /* ns; NEVER: not set */
    uint32_t place; /* in the heap; valid while it is set */
};
struct timer_heap {
    struct heap_timer **timer; /* room for all timers; the caller's memory */
    uint32_t count;
};

void heap_timer_init(struct heap_timer *t);
/* Sets t to fire at `when`, also if it is set already. NEVER stops it. */
void timer_heap_set(struct timer_heap *h, struct heap_timer *t, uint64_t when);
/* When the earliest timer is due. NEVER: there is none. */
uint64_t timer_heap_earliest(const struct timer_heap *h);
/* Stops and returns a timer that is due. NULL: none is due. */
struct heap_timer *timer_heap_pop(struct timer_heap *h, uint64_t now);

#endif
