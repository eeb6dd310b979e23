// SPDX-License-Identifier: BSD-2-Clause
/* How a device's thread shares its processor. Between empty passes it yields, so that a client on the same processor gets
 * on. That is quick while the others poll and yield, too, as the ranks of an MPI job do. It is slow beside whoever computes, a
 * hog: a yield then costs a time slice. So after a slow yield the thread had better sleep than yield, because the scheduler
 * prefers those that slept; and after several in a row it asks for a short time slice, which gets it back sooner (EEVDF,
 * since Linux 6.12). While nobody hogs the processors such a slice would be a loss: it gets the thread back after each turn of a client,
 * before there is much to do. */
#ifndef PUMICE_DAEMON_DEVICE_CPU_YIELD_H
#define PUMICE_DAEMON_DEVICE_CPU_YIELD_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_yield {
    uint64_t hog_until; /* sleep rather than yield until then */
    uint64_t hog_ns; /* how long the last such time was; 0: there was none */
    bool brief; /* the thread has a short time slice */
    uint64_t brief_until;
    uint64_t usual; /* ns: its time slice otherwise */
};

/* Lets others run. False: that took long. Of the calling thread, and always the same one. */
bool cpu_yield_now(struct cpu_yield *t);

/* Now and then between yields: ends the short slice of a thread that has no time to yield. */
void cpu_yield_check(struct cpu_yield *t, uint64_t now);

/* For a yield that took from before to after, ns (the part of cpu_yield_now that needs no clock and no scheduler). Returns whether
 * the thread is to have a short slice. */
bool cpu_yield_took(struct cpu_yield *t, uint64_t before, uint64_t after);

/* Whether somebody hogs the processors at this time, as far as is known. */
static inline bool cpu_yield_hogged(const struct cpu_yield *t, uint64_t now)
{
    return now < t->hog_until;
}

#endif
