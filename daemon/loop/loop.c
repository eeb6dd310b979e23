// SPDX-License-Identifier: BSD-2-Clause
/* While there is work, the loop runs one pass after the other, without a system call that could sleep. Between empty
 * passes it calls sched_yield, so that a client on the same processor can run.
 *
 * After idle_us without work the loop sleeps in epoll. While a hog is on the processor (cpu_yield.h), it sleeps
 * earlier. Before it sleeps, it sets `sleeping` in the session pages, so that clients ring by eventfd. Then it looks at
 * the doorbells once more. */
#include "daemon/loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/loop/cpu_advice.h"
#include "daemon/loop/pass.h"
#include "daemon/loop/port_change.h"
#include "daemon/net/netlink.h"
#include "daemon/session/client_wakeup.h"
#include "daemon/session/session.h"
#include "daemon/session/stuck_memory.h"

/* After this many passes the loop looks at control connections and other descriptors. */
#define CONTROL_EVERY 64u
/* It also looks after this time, because each pass waits for its turn on a crowded processor. */
#define CONTROL_NS (2 * NS_PER_MS)

/* --- watchers ---------------------------------------------------------------------------------- */

static void on_udp(struct ev_loop *loop, ev_io *w, int revents)
{
    struct device *d = w->data;

    event_loop_rewatch(loop, w, revents);
    /* The next pass receives the datagrams. epoll also reports the socket as readable if only its error queue holds
     * something, and no other code empties that queue. */
    udp_drain_errors(&d->udp, w->fd);
}

/* If the kernel refuses to watch the socket, the pass after this sleep (wait_limit) sends again, and begins the next
 * watch. */
static void on_nothing(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
}

static void on_timer(struct ev_loop *loop, ev_io *w, int revents)
{
    uint64_t n;

    event_loop_rewatch(loop, w, revents);
    if (read(w->fd, &n, sizeof(n)) < 0) {
        /* The timer was disarmed meanwhile. */
    }
}

static void on_port(struct ev_loop *loop, ev_io *w, int revents)
{
    struct device *d = w->data;

    event_loop_rewatch(loop, w, revents);
    if (netlink_watch_read(w->fd, d->netdev.index))
        port_change(d);
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
    watch(d, &d->udp_readable, on_udp, d->udp.first.fd, EV_READ);
    watch(d, &d->udp_writable, on_nothing, d->udp.first.fd, EV_WRITE);
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

    TAILQ_FOREACH (s, &d->sessions, link)
        doorbells_set_sleeping(&s->doorbells, sleeping);
}

static bool doorbell_pending(const struct device *d)
{
    const struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link) {
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
        if (full) {
            ev_io_set(&d->udp_writable, udp_full_fd(&d->udp), EV_WRITE);
            ev_io_start(d->loop, &d->udp_writable);
        }
        d->io.sleeps++;
        ev_run(d->loop, EVRUN_ONCE);
        if (full)
            ev_io_stop(d->loop, &d->udp_writable);
        if (when != NEVER)
            set_timer(d, NEVER);
    }
    announce(d, false);
}

/* --- the loop ---------------------------------------------------------------------------------- */

/* While bulk data comes in, the loop pauses between its two empty passes. Each receive call on the socket takes cache
 * lines away from the sending thread. It also takes processor time from that thread if both run on one core
 * (hyper-threads). The pause is about as long as a send of 64 KiB. A client's doorbell or a deadline ends the pause. */
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

/* Empty passes between two yields. While the thread waits for the network, it should spend most of its time in yields.
 * Then clients that also wait can run, and most packets arrive during a yield. Each additional pass makes that less
 * likely. */
#define EMPTY_PASSES 2u

static void yield(struct device *d)
{
    d->io.slow_yields += !cpu_yield_now(&d->cpu_yield);
}

static void advise_clients(struct device *d, struct cpu_advice_traffic *last, unsigned processors)
{
    const struct io_counters *io = &d->io;
    struct cpu_advice_traffic now = {.inside = io->loopback_packets,
                                     .outside = io->tx_packets + io->rx_packets,
                                     .datagrams = io->tx_datagrams + io->rx_datagrams,
                                     .bytes_out = io->tx_bytes,
                                     .bytes_in = io->rx_bytes};

    enum cpu_advice advice = cpu_advice_look(last, &now, d->num_sessions, processors);

    d->clients_apart = advice == CPU_ADVICE_APART ? PM_APART : advice == CPU_ADVICE_AWAY ? PM_AWAY : 0;
    d->clients_beside = advice == CPU_ADVICE_BESIDE           ? PM_BESIDE
                        : advice == CPU_ADVICE_BESIDE_CROWDED ? PM_BESIDE_CROWDED
                                                              : 0;
    d->clients_many = cpu_advice_many(d->num_sessions, processors);
}

void loop_run(struct device *d)
{
    uint64_t idle_ns = d->settings->idle_us * NS_PER_US;
    uint64_t looked = 0;
    struct cpu_advice_traffic traffic = {0};
    unsigned processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    unsigned passes = 0, empty = 0; /* empty passes since the last yield */

    loop_activity_start(&d->loop_activity, d->loop, &d->activity);
    wait_limit_start(&d->wait_limit, d->loop);
    while (!d->stop) {
        uint64_t now = clock_ns();

        activity_turn(&d->activity, now);
        client_wakeup_pass(d, now);
        if (++passes % CONTROL_EVERY == 0 || now - looked > CONTROL_NS) {
            ev_run(d->loop, EVRUN_NOWAIT);
            /* Read the clock again: control calls may have sent packets, and the engine's time must never run
             * backwards. */
            looked = now = clock_ns();
            cpu_yield_check(&d->cpu_yield, now);
            advise_clients(d, &traffic, processors);
        }
        bool worked = device_pass(d, now);
        stuck_memory_check(d);
        if (worked) {
            d->last_work = now;
            wait_limit_worked(&d->wait_limit);
            /* Yield after the next empty pass, so that the clients that were just notified can run. */
            empty = EMPTY_PASSES;
            /* At once: one or two messages were delivered, and the program waits for them, or the held ACKs wait for its
             * answers. But if a client spins without a call of the library, a yield takes its whole time slice. Then its
             * next request wakes this thread from its sleep. */
            if ((d->tx.held || d->delivered_few) && !cpu_yield_hogged(&d->cpu_yield, now))
                yield(d);
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
        /* The calls above may have set d->stop. Then nothing would end the sleep. */
        else if (!d->stop)
            sleep_until_event(d);
    }
    loop_activity_stop(&d->loop_activity, d->loop);
    wait_limit_stop(&d->wait_limit, d->loop);
}
