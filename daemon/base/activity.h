// SPDX-License-Identifier: BSD-2-Clause
/* The present work of a thread, and the time when it began. The thread writes it, and other threads read it at any time:
 * the watchdog (server/watchdog.h) and the status. Each write is a plain store into the thread's own cache line, so the
 * data path can afford one in each turn of its loop.
 *
 * While all threads wait for events, the watchdog need not look at them. The first thread that goes on wakes it
 * (activity_wake). */
#ifndef PUMICE_DAEMON_BASE_ACTIVITY_H
#define PUMICE_DAEMON_BASE_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the watchdog looks at the activities. */
enum activity_watched {
    ACTIVITY_WATCHED, /* the watchdog looks once a second */
    ACTIVITY_QUIET, /* at its last look, all threads waited; it rests if none has gone on until the next look */
    ACTIVITY_UNWATCHED, /* the watchdog rests, until a thread wakes it */
};

/* Common to all threads that one watchdog looks at. */
struct activity_watch {
    _Alignas(64) _Atomic enum activity_watched state;
    int fd; /* an eventfd that wakes the watchdog */
};

struct activity {
    /* When the current turn of the loop began (clock_ns). 0: the thread waits for events, or has not begun. */
    _Alignas(64) _Atomic uint64_t since;
    /* The work of the thread in this turn, a text that stays: "REG_MR". NULL: its usual work. */
    _Atomic(const char *) what;
    /* The client that it does this for. 0: none. */
    _Atomic uint32_t session;
    _Atomic int32_t pid;
    /* Until when the turn may last, because its wait has a limit of its own (clock_ns). Another thread writes it. */
    _Atomic uint64_t may_last_until;
    /* The watch to wake. NULL: no watchdog looks at this thread, or not yet. */
    _Atomic(struct activity_watch *) watch;
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

/* A thread goes on while nobody looks at the activities. Any thread may call it, at any time. */
void activity_watch_wake(struct activity_watch *w);

/* The thread has waited for events, and a turn begins. No fence is needed. The watchdog rests at the look after the one
 * that wrote ACTIVITY_QUIET, a second later. A thread that did not see ACTIVITY_QUIET stored `since` before that look, so
 * the look sees its turn. */
static inline void activity_wake(struct activity *a, uint64_t now)
{
    activity_turn(a, now);
    struct activity_watch *w = atomic_load_explicit(&a->watch, memory_order_acquire);
    if (w && atomic_load_explicit(&w->state, memory_order_relaxed) != ACTIVITY_WATCHED)
        activity_watch_wake(w);
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

/* The turn may last until then, because its wait ends by itself. The watchdog writes to the log that the thread is stuck,
 * but the service manager has no reason to end the daemon. Any thread may call it. */
static inline void activity_may_last(struct activity *a, uint64_t until)
{
    atomic_store_explicit(&a->may_last_until, until, memory_order_relaxed);
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
