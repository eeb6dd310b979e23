// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/segment_guard.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>

struct guarded {
    LIST_ENTRY(guarded) link;
    uintptr_t from, to;
    atomic_bool *lost; /* NULL: nobody can handle a loss */
};
static LIST_HEAD(, guarded) all = LIST_HEAD_INITIALIZER(all);
/* Protects `all`. A spinlock, because the handler must not call pthread_mutex_lock. It is held for a few instructions,
 * and in the handler for a search. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static atomic_uint losses;

/* Signals would let the handler run in a thread that holds the lock. SIGBUS can't come then, and the threads of the
 * devices block all others; those of the main thread do not touch segments. */
static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

struct guarded *segment_guard_add(void *p, size_t size)
{
    struct guarded *g = malloc(sizeof(*g));

    if (!g)
        return NULL;
    *g = (struct guarded){.from = (uintptr_t)p, .to = (uintptr_t)p + size};
    lock();
    LIST_INSERT_HEAD(&all, g, link);
    unlock();
    return g;
}

void segment_guard_remove(struct guarded *g)
{
    if (!g)
        return;
    lock();
    LIST_REMOVE(g, link);
    unlock();
    free(g);
}

void segment_guard_owner(struct guarded *g, atomic_bool *lost)
{
    lock();
    g->lost = lost;
    unlock();
}

unsigned segment_guard_losses(void)
{
    return atomic_load_explicit(&losses, memory_order_relaxed);
}

/* Maps zeros in place of the lost pages. A segment that has lost one page is of no use any more, so all its pages are
 * replaced: then there is one signal for each segment. */
static bool replace(const struct guarded *g)
{
    return mmap((void *)g->from, g->to - g->from, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

static bool survive(uintptr_t address)
{
    struct guarded *g;
    bool found = false;

    lock();
    LIST_FOREACH (g, &all, link) {
        if (address < g->from || address >= g->to)
            continue;
        found = g->lost && replace(g);
        if (found) {
            atomic_store(g->lost, true);
            atomic_fetch_add(&losses, 1);
        }
        break;
    }
    unlock();
    return found;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)context;
    if (info->si_code <= 0 || !survive((uintptr_t)info->si_addr)) {
        /* The instruction runs again, and the signal ends the process with its usual core dump. A signal that another
         * process sent does so now. */
        signal(sig, SIG_DFL);
        if (info->si_code <= 0)
            raise(sig);
    }
    errno = saved;
}

void segment_guard_install(void)
{
    struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, NULL);
}
