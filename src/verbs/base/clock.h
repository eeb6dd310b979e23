// SPDX-License-Identifier: BSD-2-Clause
/* The clocks of the system, in nanoseconds. */
#ifndef PUMICE_SRC_VERBS_BASE_CLOCK_H
#define PUMICE_SRC_VERBS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time in ns of a clock: CLOCK_MONOTONIC or CLOCK_REALTIME. */
static inline uint64_t vb_clock(int clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
