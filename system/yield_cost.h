// SPDX-License-Identifier: BSD-2-Clause
/* Measures the cost of a yield on this machine while nothing else runs: the shortest of the yields of a thread. It is
 * usually less than a microsecond. Where processors are emulated, it is ten times as long.
 *
 * Times that tell a crowded machine from a calm one follow it. Otherwise a slow machine would be taken for a crowded
 * one. The daemon measures, because it also runs while the machine is calm, and tells its clients. */
#ifndef PUMICE_SYSTEM_YIELD_COST_H
#define PUMICE_SYSTEM_YIELD_COST_H

#include <stdint.h>

/* Up to this cost, machines count as equally fast. */
#define YIELD_COST_USUAL_NS UINT64_C(1000)
/* A yield that takes longer shows that other threads run, and says nothing about the machine. */
#define YIELD_COST_LIMIT_NS UINT64_C(1000000)
/* The cheapest of so many yields counts. The first ones may all have waited for other threads. */
#define YIELD_COST_ENOUGH 64u

/* Initially zero. */
struct yield_cost {
    uint32_t yields; /* so far; stops at YIELD_COST_ENOUGH */
    uint32_t cheapest_ns;
};

/* A yield took so long. */
static inline void yield_cost_note(struct yield_cost *c, uint64_t took_ns)
{
    if (took_ns > YIELD_COST_LIMIT_NS)
        return;
    if (c->yields == 0 || took_ns < c->cheapest_ns)
        c->cheapest_ns = (uint32_t)took_ns;
    c->yields += c->yields < YIELD_COST_ENOUGH;
}

/* Returns the cost in ns, or 0 if it is not known yet. */
static inline uint32_t yield_cost_ns(const struct yield_cost *c)
{
    return c->yields < YIELD_COST_ENOUGH ? 0 : c->cheapest_ns;
}

/* Returns a threshold for a machine where a yield costs cost_ns. ns: the threshold where yields cost what is usual; most:
 * the largest that makes sense, because time slices are the same on all machines. */
static inline uint64_t yield_cost_scaled(uint32_t cost_ns, uint64_t ns, uint64_t most)
{
    if (cost_ns <= YIELD_COST_USUAL_NS)
        return ns;
    uint64_t scaled = ns * cost_ns / YIELD_COST_USUAL_NS;
    return scaled < most ? scaled : most;
}

#endif
