// SPDX-License-Identifier: BSD-2-Clause
/* The present work of a thread, and the time when it began. The thread writes it, and other threads read it at any time: the watchdog
 * (server/watchdog.h) and the status. Each write is a plain store into the thread's own cache line, so the data path
 * can afford one in each turn of its loop. */
#ifndef PUMICE_DAEMON_BASE_ACTIVITY_H
#define PUMICE_DAEMON_BASE_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct activity {
    /* When the current turn of the loop began (clock_ns). 0: the thread waits for events, or has not begun. */
    _Alignas(64) _Atomic uint64_t since;
    /* The work of the thread in this turn, a text that stays: "REG_MR". NULL: its usual work. */
    _Atomic(const char *) what;
    /* The client that it does this for. 0: none. */
    _Atomic uint32_t session;
    _Atomic int32_t pid;
};

/* A copy of an activity. Its parts may be of two neighbouring moments, because nothing locks them. */
struct activity_view {
    uint64_t since;
    const char *what; /* never NULL */
    uint32_t session;
    int32_t pid;
};

/* A turn of the loop begins. */
static inline void activity_turn(struct activity *a, uint64_t now)
{
    atomic_store_explicit(&a->since, now, memory_order_relaxed);
}

/* The thread waits for events from now on. */
static inline void activity_rest(struct activity *a)
{
    atomic_store_explicit(&a->since, 0, memory_order_relaxed);
}

/* The thread begins, within its turn, work that other programs asked for. activity_done ends it. */
static inline void activity_begin(struct activity *a, const char *what, uint32_t session, int32_t pid)
{
    atomic_store_explicit(&a->what, what, memory_order_relaxed);
    atomic_store_explicit(&a->session, session, memory_order_relaxed);
    atomic_store_explicit(&a->pid, pid, memory_order_relaxed);
}

static inline void activity_done(struct activity *a)
{
    activity_begin(a, NULL, 0, 0);
}

static inline struct activity_view activity_read(const struct activity *a)
{
    const char *what = atomic_load_explicit(&a->what, memory_order_relaxed);

    return (struct activity_view){
        .since = atomic_load_explicit(&a->since, memory_order_relaxed),
        .what = what ? what : "its loop",
        .session = atomic_load_explicit(&a->session, memory_order_relaxed),
        .pid = atomic_load_explicit(&a->pid, memory_order_relaxed),
    };
}

#endif
