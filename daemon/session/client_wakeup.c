// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/client_wakeup.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/device/device.h"
#include "daemon/session/session.h"

#define WAIT_MAX_NS (5 * NS_PER_MS) /* the longest wait that a client may ask for */
/* Most threads of a client that are woken at a time. On most machines fewer threads poll at once. With this limit a
 * client with many sleeping threads can't keep the loop busy. Threads that are not woken wake up by themselves, as they
 * do when the daemon dies. */
#define WAKES_MAX 128

/* To be called after a change of `published`. The loads and stores are sequentially consistent, see pm_session_page.
 * This path makes a system call only for a client that says in its page that it sleeps. */
static void wake(struct session *s)
{
    struct pm_session_page *page = s->page;

    s->wait_end = 0;
    if (atomic_load(&page->waiting) == 0)
        return;
    atomic_store_explicit(&page->woken_at, clock_ns(), memory_order_relaxed);
    if (atomic_exchange(&page->waiting, 0) == 0)
        return;
    s->device->io.wakes++;
    syscall(SYS_futex, &page->published, FUTEX_WAKE, WAKES_MAX, NULL, NULL, 0);
}

void client_wakeup_published(struct session *s)
{
    atomic_fetch_add(&s->page->published, PM_PUBLISHED);
    wake(s);
}

static void end_wait(struct session *s)
{
    atomic_fetch_add(&s->page->published, PM_WAKE);
    wake(s);
}

/* Several threads of a client may wait. The thread with the shortest wait decides. */
static void check_wait(struct session *s, uint64_t now)
{
    uint32_t wait_us = atomic_load_explicit(&s->page->waiting, memory_order_relaxed);
    uint64_t wait_ns = wait_us * NS_PER_US;
    uint64_t end = now + (wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS);

    if (wait_us == 0 || wait_us == PM_WAITS_FOR_NEWS)
        s->wait_end = 0;
    else if (s->wait_end == 0 || end < s->wait_end)
        s->wait_end = end;
    else if (s->wait_end <= now)
        end_wait(s);
}

/* A store takes the cache line from the clients that poll it. So it happens only if there is news. */
static void tell(_Atomic uint32_t *what, uint32_t value)
{
    if (atomic_load_explicit(what, memory_order_relaxed) != value)
        atomic_store_explicit(what, value, memory_order_relaxed);
}

void client_wakeup_pass(struct device *d, uint64_t now)
{
    uint32_t cpu = (uint32_t)sched_getcpu();
    struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link) {
        tell(&s->page->cpu, cpu);
        tell(&s->page->apart, d->clients_apart);
        tell(&s->page->beside, d->clients_beside);
        tell(&s->page->many, d->clients_many);
        tell(&s->page->yield_ns, yield_cost_ns(&d->cpu_yield.cost));
        check_wait(s, now);
    }
}

void client_wakeup_all(struct device *d)
{
    struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link) {
        uint32_t wait_us = atomic_load(&s->page->waiting);

        if (wait_us != 0 && wait_us != PM_WAITS_FOR_NEWS)
            end_wait(s);
    }
}
