// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the daemon: CLOCK_MONOTONIC, in nanoseconds. It never steps back, and it does not follow the time of
 * day. */
#ifndef PUMICE_DAEMON_BASE_CLOCK_H
#define PUMICE_DAEMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* The time now. */
static inline uint64_t clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
