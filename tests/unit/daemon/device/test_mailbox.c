// SPDX-License-Identifier: BSD-2-Clause
/* Calls in another thread: they return in time, whatever that thread does. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/device/mailbox.h"

struct counted {
    struct mailbox_call call; /* first */
    atomic_uint ran, dropped;
};

static struct ev_loop *loop;
static ev_async stop;
static struct mailbox box;
static pthread_t thread;
static sem_t begun, go_on;

static void *run_loop(void *arg)
{
    ev_run(loop, 0);
    return arg;
}

static void on_stop(struct ev_loop *l, ev_async *w, int revents)
{
    (void)w;
    (void)revents;
    ev_break(l, EVBREAK_ALL);
}

static void start(void)
{
    sem_init(&begun, 0, 0);
    sem_init(&go_on, 0, 0);
    loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert_eq(mailbox_init(&box, loop), 0);
    ev_async_init(&stop, on_stop);
    ev_async_start(loop, &stop);
    pthread_create(&thread, NULL, run_loop, NULL);
}

static void end(void)
{
    ev_async_send(loop, &stop);
    pthread_join(thread, NULL);
    mailbox_fini(&box);
    ev_async_stop(loop, &stop);
    ev_loop_destroy(loop);
}

static void count(struct mailbox_call *call)
{
    ((struct counted *)(void *)call)->ran++;
}

static void hang(struct mailbox_call *call)
{
    count(call);
    sem_post(&begun);
    sem_wait(&go_on);
}

static void drop(struct mailbox_call *call)
{
    ((struct counted *)(void *)call)->dropped++;
}

#define COUNTED(fn)                                                                                                    \
    {                                                                                                                  \
        .call = {.run = (fn), .drop = drop }                                                                           \
    }

/* Waits until the thread answers again. */
static void recover(void)
{
    struct counted again = COUNTED(count);

    sem_post(&go_on);
    for (unsigned i = 0; i < 3000 && mailbox_do(&box, &again.call) != MAILBOX_DONE; i++)
        usleep(10000);
    cr_assert_gt(again.ran, 0);
}

Test(mailbox, a_call_runs, .timeout = 60)
{
    struct counted c = COUNTED(count);

    start();
    cr_expect_eq(mailbox_do(&box, &c.call), MAILBOX_DONE);
    cr_expect_eq(c.ran, 1);
    cr_expect_eq(c.dropped, 0, "it is the caller's");
    end();
}

Test(mailbox, a_call_that_hangs_is_given_up, .timeout = 60)
{
    struct counted c = COUNTED(hang), later = COUNTED(count);

    start();
    cr_expect_eq(mailbox_do(&box, &c.call), MAILBOX_GIVEN_UP);
    cr_expect_eq(mailbox_do(&box, &later.call), MAILBOX_LATE, "further calls fail at once");
    recover();
    cr_expect_eq(c.ran, 1);
    cr_expect_eq(c.dropped, 1);
    cr_expect_eq(later.ran, 0, "a late call never runs");
    cr_expect_eq(later.dropped, 0, "it is the caller's");
    end();
}

Test(mailbox, a_call_behind_a_thread_that_hangs_is_late, .timeout = 60)
{
    struct counted c = COUNTED(hang), late = COUNTED(count);

    start();
    mailbox_post(&box, &c.call);
    sem_wait(&begun);
    cr_expect_eq(mailbox_do(&box, &late.call), MAILBOX_LATE);
    recover();
    cr_expect_eq(late.ran, 0);
    end();
}

Test(mailbox, a_posted_call_runs_later, .timeout = 60)
{
    struct counted c = COUNTED(hang), posted = COUNTED(count);

    start();
    mailbox_post(&box, &c.call);
    sem_wait(&begun);
    mailbox_post(&box, &posted.call);
    cr_expect_eq(posted.ran, 0);
    recover();
    cr_expect_eq(posted.ran, 1);
    cr_expect_eq(posted.dropped, 1);
    end();
}

Test(mailbox, calls_that_did_not_run_are_dropped_at_the_end, .timeout = 60)
{
    struct counted c = COUNTED(count);

    loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert_eq(mailbox_init(&box, loop), 0);
    mailbox_post(&box, &c.call);
    mailbox_fini(&box);
    cr_expect_eq(c.ran, 0);
    cr_expect_eq(c.dropped, 1);
    ev_loop_destroy(loop);
}
