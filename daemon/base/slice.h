// SPDX-License-Identifier: BSD-2-Clause
/* Slices of control work. A device's thread carries packets. Work of another kind whose amount grows with the number of
 * objects (the end of a session, the status) is cut into slices, and packets are carried between two slices. A slice is
 * a time, not a number of objects: objects differ in cost, and machines differ in speed. The work looks at the clock
 * after each object. */
#ifndef PUMICE_DAEMON_BASE_SLICE_H
#define PUMICE_DAEMON_BASE_SLICE_H

#include <stdbool.h>

#include "daemon/base/clock.h"

/* The promise is that control work holds packets for at most a millisecond. The rest of it is for the last object of a
 * slice, and for control work of other kinds in the same turn of the loop. */
#define SLICE_NS (NS_PER_MS / 4)

struct slice {
    uint64_t end; /* clock_ns */
};

static inline struct slice slice_begin(void)
{
    return (struct slice){clock_ns() + SLICE_NS};
}

static inline bool slice_is_over(const struct slice *s)
{
    return clock_ns() >= s->end;
}

#endif
