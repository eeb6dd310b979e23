// SPDX-License-Identifier: BSD-2-Clause
/* Finds out whether other programs compute on the processors, and how long a thread that polls in vain sleeps then. The
 * yields and sleeps of these threads show it. The functions get times. They make no system call.
 *
 * All threads of a context share one state machine (vb_poll_crowd). In CROWDED a thread sleeps instead of yielding,
 * because a process that sleeps gets a processor sooner than a process that yields.
 *
 *             a yield takes more than vb_poll_slow_yield_ns
 *             CALM ------------------------------------> CROWDED
 *                  <------------------------------------
 *                          slow_until has passed
 *
 * A sleep in CROWDED that ends more than LATE_NS late makes that state last SLOW_PERIOD_MAX_NS longer.
 *
 * A thread may sleep until the daemon publishes something (*news*). This sleep has a limit, because the thread may also
 * poll something else. A timer that ends before the next tick of the kernel is expensive, so the limit is longer. After a
 * sleep without news, the limit is short for a time (vb_poll_nap). */
#ifndef PUMICE_SRC_VERBS_BASE_POLL_CROWD_H
#define PUMICE_SRC_VERBS_BASE_POLL_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "system/yield_cost.h"

/* clang-format off */

/* A yield that takes longer shows that other programs compute. The value is less than a time slice, but more than one
 * round of yields among many ranks that poll. Measured: 150 us was less than such a round, and the ranks slept as if
 * other programs computed. */
#define VB_POLL_SLOW_YIELD_NS       UINT64_C(1000000)
/* On a machine where yields cost more than usual it is longer. It is still less than a time slice of a kernel whose ticks
 * are 4 ms apart. */
#define VB_POLL_SLOW_YIELD_MAX_NS   UINT64_C(2500000)
/* How long CROWDED lasts: MIN after the first slow yield, which may be an accident. Each further slow yield doubles it,
 * up to MAX. Chosen, not measured. */
#define VB_POLL_SLOW_PERIOD_MIN_NS  UINT64_C(1000000)
#define VB_POLL_SLOW_PERIOD_MAX_NS  UINT64_C(20000000)
/* The shortest sleep in CROWDED. Measured: with 50 us, 64 ranks on two cores used up the cores with their sleeps. On
 * Linux 6.18, many processes that sleep for less than 100 us starve other processes for seconds. */
#define VB_POLL_BACKOFF_MIN_NS      UINT64_C(100000)
/* The longest sleep in CROWDED. Each sleep is as long as the last one was late. Measured beside 64 ranks on two cores,
 * with sleeps of up to 4 ms: round trips of another program went from 14 ms to about 1.5 ms. */
#define VB_POLL_BACKOFF_MAX_NS      UINT64_C(4000000)
/* A sleep that ends later than asked by this time shows that many threads wait for a processor. Chosen, not
 * measured. On a machine where yields cost more than usual it is longer, up to MAX. */
#define VB_POLL_LATE_NS             UINT64_C(500000)
#define VB_POLL_LATE_MAX_NS         VB_POLL_SLOW_YIELD_MAX_NS

/* The limit of a sleep until news. It is longer than a tick of most kernels (1 or 4 ms). */
#define VB_POLL_NAP_NS              UINT64_C(5000000)
/* If such a sleep reaches its limit, sleeps until news are as short as those above for a time. The time is MIN at first.
 * It doubles each time, up to MAX. So a thread that also polls something else loses little. Chosen, not measured. */
#define VB_POLL_NAP_PAUSE_MIN_NS    UINT64_C(50000000)
#define VB_POLL_NAP_PAUSE_MAX_NS    UINT64_C(1600000000)
/* If news ended so many sleeps in a row, this time is MIN again. Chosen, not measured. */
#define VB_POLL_NAPS_GOOD           256
/* clang-format on */

/* The state of a context, shared by all its threads, initially zero. Times are ns of CLOCK_MONOTONIC, durations ns. */
struct vb_poll_crowd {
    _Atomic uint64_t slow_until; /* end of CROWDED */
    _Atomic uint64_t slow_for; /* how long the last CROWDED was */
    _Atomic uint64_t backoff_ns; /* how long the next sleep is, at least */
    _Atomic uint32_t yield_ns; /* what a yield costs on this machine, as the daemon says; 0: not known */
};

/* A thread keeps this about its sleeps until news. It is initially zero. Times are ns of CLOCK_MONOTONIC. */
struct vb_poll_nap {
    unsigned good; /* sleeps in a row that news ended; stops at VB_POLL_NAPS_GOOD */
    uint64_t pause; /* ns: how long the last time with short sleeps was; 0: there was none */
    uint64_t pause_until; /* end of that time */
};

/* Returns twice the length, but not more than max. */
static inline uint64_t vb_poll_doubled(uint64_t length, uint64_t max)
{
    return length < max / 2 ? 2 * length : max;
}

static inline bool vb_poll_crowded(const struct vb_poll_crowd *crowd, uint64_t now)
{
    return now < atomic_load_explicit(&crowd->slow_until, memory_order_relaxed);
}

/* Returns the length from which a yield is slow on a machine where it costs yield_ns (pm_session_page.yield_ns). */
static inline uint64_t vb_poll_slow_yield_ns(uint32_t yield_ns)
{
    return yield_cost_scaled(yield_ns, VB_POLL_SLOW_YIELD_NS, VB_POLL_SLOW_YIELD_MAX_NS);
}

/* To be called when the daemon tells what a yield costs. Most times that is what it was. */
static inline void vb_poll_crowd_yield_costs(struct vb_poll_crowd *crowd, uint32_t yield_ns)
{
    if (atomic_load_explicit(&crowd->yield_ns, memory_order_relaxed) != yield_ns)
        atomic_store_explicit(&crowd->yield_ns, yield_ns, memory_order_relaxed);
}

/* A yield lasted from before to after. */
void vb_poll_yielded(struct vb_poll_crowd *crowd, uint64_t before, uint64_t after);

/* Returns how long the next sleep is, in ns, if only its timer ends it. */
uint64_t vb_poll_backoff(const struct vb_poll_crowd *crowd);
/* Such a sleep of length ns lasted from before to after. */
void vb_poll_slept(struct vb_poll_crowd *crowd, uint64_t length, uint64_t before, uint64_t after);

/* Returns the limit of a sleep until news that begins now, in ns. */
uint64_t vb_poll_nap_limit(const struct vb_poll_nap *nap, const struct vb_poll_crowd *crowd, uint64_t now);
/* A sleep until news with this limit lasted from before to after. news: the daemon published something. */
void vb_poll_napped(struct vb_poll_nap *nap, struct vb_poll_crowd *crowd, uint64_t limit, uint64_t before,
                    uint64_t after, bool news);

#endif
