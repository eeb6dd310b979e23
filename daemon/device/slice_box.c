// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/slice_box.h"

#include <stddef.h>
#include <time.h>

#include "daemon/base/clock.h"

/* The box has no job any more. */
static void empty(struct slice_box *b)
{
    b->job = NULL;
    pthread_cond_broadcast(&b->changed);
}

static void run_slice(void *arg)
{
    struct slice_box *b = arg;

    pthread_mutex_lock(&b->lock);
    struct slice_job *job = b->job;
    bool given_up = job && job->given_up;
    pthread_mutex_unlock(&b->lock);
    if (!job)
        return;
    if (!given_up)
        job->run(job);
    pthread_mutex_lock(&b->lock);
    job->done = true;
    given_up = job->given_up;
    empty(b);
    pthread_mutex_unlock(&b->lock);
    if (given_up)
        job->drop(job);
}

int slice_box_init(struct slice_box *b, struct ev_loop *loop)
{
    pthread_condattr_t attr;
    int rc = loop_wake_start(&b->wake, loop, run_slice, b);

    if (rc)
        return rc;
    b->job = NULL;
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

void slice_box_fini(struct slice_box *b)
{
    if (!b->wake.loop)
        return;
    loop_wake_stop(&b->wake);
    if (b->job)
        b->job->drop(b->job);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

/* Waits for a change. False: the time is over. */
static bool wait_until(struct slice_box *b, uint64_t end)
{
    struct timespec t = {(time_t)(end / NS_PER_S), (long)(end % NS_PER_S)};

    return pthread_cond_timedwait(&b->changed, &b->lock, &t) == 0;
}

bool slice_box_run(struct slice_box *b, struct slice_job *job, uint64_t wait_ns)
{
    uint64_t end = clock_ns() + wait_ns;
    bool in_time = true;

    job->done = job->given_up = false;
    pthread_mutex_lock(&b->lock);
    while (b->job && in_time)
        in_time = wait_until(b, end);
    if (b->job) {
        pthread_mutex_unlock(&b->lock);
        job->drop(job);
        return false;
    }
    b->job = job;
    loop_wake_send(&b->wake);
    in_time = true;
    while (!job->done && in_time)
        in_time = wait_until(b, end);
    bool done = job->done;
    job->given_up = !done;
    pthread_mutex_unlock(&b->lock);
    return done;
}
