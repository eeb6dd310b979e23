// SPDX-License-Identifier: BSD-2-Clause
/* The activity of a thread with an event loop: none while the loop waits, a turn while it works. The first turn after a
 * wait wakes a watchdog that rests. */
#include <criterion/criterion.h>
#include <ev.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/threads/loop_activity.h"

static struct ev_loop *loop;
static struct activity activity;
static struct activity_watch watch;
static struct loop_activity turns;
static ev_io readable; /* of `go`, which ends a wait of the loop */
static int go;
static uint64_t since; /* of the turn, as the callback saw it */
static enum activity_watched state;

static void on_readable(struct ev_loop *l, ev_io *w, int revents)
{
    eventfd_t count;

    (void)l;
    (void)revents;
    eventfd_read(w->fd, &count);
    since = activity_read(&activity).since;
    state = atomic_load(&watch.state);
}

static void begin(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    go = eventfd(0, EFD_NONBLOCK);
    watch.fd = eventfd(0, EFD_NONBLOCK);
    atomic_store(&activity.watch, &watch);
    loop_activity_start(&turns, loop, &activity);
    ev_io_init(&readable, on_readable, go, EV_READ);
    ev_set_priority(&readable, EV_MAXPRI - 1);
    ev_io_start(loop, &readable);
}

static void end(void)
{
    ev_io_stop(loop, &readable);
    loop_activity_stop(&turns, loop);
    ev_loop_destroy(loop);
    close(go);
    close(watch.fd);
}

TestSuite(loop_activity, .init = begin, .fini = end, .timeout = 60);

static void *wait_once(void *arg)
{
    ev_run(loop, EVRUN_ONCE);
    return arg;
}

Test(loop_activity, a_loop_that_waits_has_no_turn)
{
    pthread_t thread;

    activity_turn(&activity, 7);
    pthread_create(&thread, NULL, wait_once, NULL);
    while (activity_read(&activity).since != 0)
        usleep(1000);
    eventfd_write(go, 1);
    pthread_join(thread, NULL);
    cr_expect_gt(since, 7, "the turn begins before the work");
}

Test(loop_activity, a_turn_wakes_the_watchdog)
{
    eventfd_t count;

    atomic_store(&watch.state, ACTIVITY_UNWATCHED);
    eventfd_write(go, 1);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_eq(state, ACTIVITY_WATCHED, "before the work");
    cr_expect_eq(eventfd_read(watch.fd, &count), 0);
}

Test(loop_activity, a_watchdog_that_looks_is_left_alone)
{
    eventfd_t count;

    eventfd_write(go, 1);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_neq(since, 0);
    cr_expect_neq(eventfd_read(watch.fd, &count), 0);
}

Test(loop_activity, the_end)
{
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_neq(activity_read(&activity).since, 0);
    loop_activity_stop(&turns, loop);
    cr_expect_eq(activity_read(&activity).since, 0);
    activity_turn(&activity, 7);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_eq(activity_read(&activity).since, 7, "nobody writes it any more");
}
