// SPDX-License-Identifier: BSD-2-Clause
/* One thread wakes the loop of another, also after the kernel refused to watch the descriptor. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/event_loop.h"
#include "daemon/base/loop_wake.h"

#define SENDS 20000u

static struct ev_loop *loop;
static struct loop_wake wake;
static unsigned woken, posted, seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* libev calls this one. */
static bool refuses;

int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    if (refuses && op != EPOLL_CTL_DEL) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, ep, op, fd, e);
}

static void on_wake(void *arg)
{
    cr_assert_eq(arg, &wake);
    woken++;
    pthread_mutex_lock(&lock);
    seen = posted;
    pthread_mutex_unlock(&lock);
}

static void setup(void)
{
    event_loop_guard();
    loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert(loop);
    cr_assert_eq(loop_wake_start(&wake, loop, on_wake, &wake), 0);
}
static void teardown(void)
{
    loop_wake_stop(&wake);
    loop_wake_stop(&wake); /* does nothing */
    ev_loop_destroy(loop);
}
TestSuite(loop_wake, .init = setup, .fini = teardown, .timeout = 60);

Test(loop_wake, several_sends_wake_once)
{
    loop_wake_send(&wake);
    loop_wake_send(&wake);
    ev_run(loop, EVRUN_ONCE); /* would sleep */
    cr_expect_eq(woken, 1);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_eq(woken, 1);
    loop_wake_send(&wake);
    ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(woken, 2);
}

/* libev closes its epoll set and makes it anew. The watcher of a descriptor that the new set refuses is stopped. */
Test(loop_wake, a_refused_descriptor_is_watched_again)
{
    ev_run(loop, EVRUN_NOWAIT);
    ev_loop_fork(loop);
    refuses = true;
    loop_wake_send(&wake);
    ev_run(loop, EVRUN_NOWAIT);
    refuses = false;
    cr_expect_eq(woken, 1, "what was sent meanwhile is not lost");
    loop_wake_send(&wake);
    ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(woken, 2);
}

static void *post_all(void *arg)
{
    for (unsigned i = 0; i < SENDS; i++) {
        pthread_mutex_lock(&lock);
        posted++;
        pthread_mutex_unlock(&lock);
        loop_wake_send(&wake);
    }
    return arg;
}

Test(loop_wake, nothing_that_was_sent_is_missed)
{
    pthread_t thread;

    pthread_create(&thread, NULL, post_all, NULL);
    while (seen < SENDS)
        ev_run(loop, EVRUN_ONCE);
    pthread_join(thread, NULL);
}
