// SPDX-License-Identifier: BSD-2-Clause
/* Hot: one pass after the other, without a system call that could sleep; between empty passes sched_yield, so that a
 * client on the same processor gets on. After idle-us without work the loop sleeps in epoll: it says so in the session
 * pages, whose clients then ring by eventfd, and looks at the doorbells once more; sooner while somebody hogs the processors
 * (turns.h). */
#include "daemon/loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/loop/pass.h"
#include "daemon/net/netlink.h"
#include "daemon/session/client_wakeup.h"
#include "daemon/session/port.h"
#include "daemon/session/session.h"

#define CONTROL_EVERY 64u /* passes between looks at control connections and other descriptors */
/* Nor for longer than this, when every pass waits for its turn on a crowded processor. */
#define CONTROL_NS (2 * NS_PER_MS)

/* --- watchers ---------------------------------------------------------------------------------- */

static void on_udp(struct ev_loop *loop, ev_io *w, int revents)
{
    struct device *d = w->data;

    (void)loop;
    (void)revents;
    /* Datagrams are received by the next pass. What epoll also calls readable is the error queue, which nothing else
     * empties. */
    udp_drain_errors(&d->udp);
}

static void on_nothing(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
}

static void on_timer(struct ev_loop *loop, ev_io *w, int revents)
{
    uint64_t n;

    (void)loop;
    (void)revents;
    if (read(w->fd, &n, sizeof(n)) < 0) {
        /* It was disarmed meanwhile. */
    }
}

static void on_port(struct ev_loop *loop, ev_io *w, int revents)
{
    struct device *d = w->data;

    (void)loop;
    (void)revents;
    if (netlink_watch_read(w->fd, d->netdev.index))
        port_refresh(d);
}

static void watch(struct device *d, ev_io *w, void (*fn)(struct ev_loop *, ev_io *, int), int fd, int events)
{
    ev_io_init(w, fn, fd, events);
    w->data = d;
}

int loop_init(struct device *d, char why[ERROR_TEXT_MAX])
{
    d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (d->timer_fd < 0) {
        int rc = -errno;

        snprintf(why, ERROR_TEXT_MAX, "can't make a timer: %s", strerror(-rc));
        return rc;
    }
    d->port_fd = netlink_watch_open();
    watch(d, &d->udp_readable, on_udp, d->udp.fd, EV_READ);
    watch(d, &d->udp_writable, on_nothing, d->udp.fd, EV_WRITE);
    watch(d, &d->timer_readable, on_timer, d->timer_fd, EV_READ);
    watch(d, &d->port_changed, on_port, d->port_fd, EV_READ);
    ev_io_start(d->loop, &d->udp_readable);
    ev_io_start(d->loop, &d->timer_readable);
    if (d->port_fd >= 0)
        ev_io_start(d->loop, &d->port_changed);
    return 0;
}

void loop_fini(struct device *d)
{
    if (d->timer_fd < 0)
        return;
    ev_io_stop(d->loop, &d->udp_readable);
    ev_io_stop(d->loop, &d->udp_writable);
    ev_io_stop(d->loop, &d->timer_readable);
    ev_io_stop(d->loop, &d->port_changed);
    close(d->timer_fd);
    if (d->port_fd >= 0)
        close(d->port_fd);
    d->timer_fd = d->port_fd = -1;
}

/* --- sleeping ---------------------------------------------------------------------------------- */

static void set_timer(struct device *d, uint64_t when)
{
    struct itimerspec t = {0};

    if (when != NEVER) {
        t.it_value.tv_sec = (time_t)(when / NS_PER_S);
        t.it_value.tv_nsec = (long)(when % NS_PER_S);
    }
    timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void announce(struct device *d, bool sleeping)
{
    struct session *s;

    TAILQ_FOREACH(s, &d->sessions, link)
    doorbells_set_sleeping(&s->doorbells, sleeping);
}

static bool doorbell_pending(const struct device *d)
{
    const struct session *s;

    TAILQ_FOREACH(s, &d->sessions, link)
    {
        if (doorbells_pending(&s->doorbells))
            return true;
    }
    return false;
}

static void sleep_until_event(struct device *d)
{
    uint64_t when = device_deadline(d);
    bool full = udp_pending(&d->udp);

    if (when <= clock_ns())
        return;
    announce(d, true);
    client_wakeup_all(d);
    if (!doorbell_pending(d)) {
        if (when != NEVER)
            set_timer(d, when);
        if (full)
            ev_io_start(d->loop, &d->udp_writable);
        d->io.sleeps++;
        ev_run(d->loop, EVRUN_ONCE);
        if (full)
            ev_io_stop(d->loop, &d->udp_writable);
        if (when != NEVER)
            set_timer(d, NEVER);
    }
    announce(d, false);
}

/* ----------------------------------------------------------------------------------------------- */

/* While bulk data comes in, the two empty passes are farther apart: each look into the socket takes cache lines away from
 * whoever sends, and, where two processors share a core, its time. It is about what a send of 64 KiB takes; a client's
 * doorbell ends it, and what is due. */
#define BULK_PAUSE_NS (10 * NS_PER_US)

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void pause_in_bulk(struct device *d, uint64_t now)
{
    uint64_t end = now + BULK_PAUSE_NS, due = device_deadline(d);

    if (due < end)
        end = due;
    do {
        for (unsigned i = 0; i < 16; i++)
            relax();
    } while (clock_ns() < end && !doorbell_pending(d));
}

/* Between yields that brought nothing. While the thread waits for the network most of its time goes into yields to clients that
 * wait for it, and so do most packets come in during one; each pass more makes that less likely. */
#define EMPTY_PASSES 2u

static void yield(struct device *d)
{
    d->io.slow_yields += !cpu_yield_now(&d->cpu_yield);
}

void loop_run(struct device *d)
{
    uint64_t idle_ns = d->settings->idle_us * NS_PER_US;
    uint64_t looked = 0;
    unsigned passes = 0, empty = 0; /* empty: since the last yield */

    prctl(PR_SET_NAME, d->name);
    /* The scheduler may otherwise round deadlines up by 50 us. */
    prctl(PR_SET_TIMERSLACK, 1);
    while (!d->stop) {
        uint64_t now = clock_ns();

        client_wakeup_pass(d, now);
        if (++passes % CONTROL_EVERY == 0 || now - looked > CONTROL_NS) {
            ev_run(d->loop, EVRUN_NOWAIT);
            /* Once more: control calls may have sent, and the engine's time never runs backwards. */
            looked = now = clock_ns();
            cpu_yield_check(&d->cpu_yield, now);
        }
        if (device_pass(d, now)) {
            d->last_work = now;
            empty = EMPTY_PASSES; /* whoever was told something is to have the processor now */
            if (d->tx.held)
                yield(d); /* to those who were told */
            continue;
        }
        if (++empty < EMPTY_PASSES) {
            if (now < d->bulk_until)
                pause_in_bulk(d, now);
            continue;
        }
        empty = 0;
        if (now - d->last_work < idle_ns && !cpu_yield_hogged(&d->cpu_yield, now))
            yield(d);
        else if (!d->stop) /* which it may have been told in this very pass: nothing more would wake it */
            sleep_until_event(d);
    }
}
