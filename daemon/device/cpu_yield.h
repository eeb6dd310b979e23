// SPDX-License-Identifier: BSD-2-Clause
/* Shares the processor of a device's thread with other threads, by yields and time slices.
 *
 * Between empty passes the thread yields, so that a client on the same processor can run. A yield returns soon while
 * the other threads poll and yield too, as the ranks of an MPI job do. It takes a whole time slice while another thread
 * only computes: such a thread is called a hog here. So after a slow yield the thread sleeps instead of yielding,
 * because the scheduler prefers threads that have slept. After several slow yields in a row it asks for a short time
 * slice, so that it runs again sooner (EEVDF, since Linux 6.12). Without a hog a short slice does harm: the thread then
 * runs again after each turn of a client, before there is much to do. */
#ifndef PUMICE_DAEMON_DEVICE_CPU_YIELD_H
#define PUMICE_DAEMON_DEVICE_CPU_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "system/time_slice.h"
#include "system/yield_cost.h"

struct cpu_yield {
    uint64_t hog_until; /* until then, the thread sleeps instead of yielding */
    uint64_t hog_ns; /* length of the latest such time; 0: there was none */
    struct time_slice slice; /* of the thread */
    uint64_t brief_until; /* until then, it should be short */
    struct yield_cost cost; /* says from when on a yield is slow */
};

/* Lets other threads run. Returns false if that took long. It acts on the calling thread, which must always be the
 * same one. */
bool cpu_yield_now(struct cpu_yield *y);

/* To be called now and then: takes the short slice away when its time is over, even if the thread has no time to
 * yield. */
void cpu_yield_check(struct cpu_yield *y, uint64_t now);

/* The part of cpu_yield_now that needs no clock and no scheduler: a yield took from before to after, in ns. Returns
 * whether the thread should have a short slice. */
bool cpu_yield_took(struct cpu_yield *y, uint64_t before, uint64_t after);

/* True if a hog is assumed to be on the processor now. */
static inline bool cpu_yield_hogged(const struct cpu_yield *y, uint64_t now)
{
    return now < y->hog_until;
}

#endif
