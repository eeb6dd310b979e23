// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/mailbox.h"

#include <stddef.h>
#include <time.h>

#include "daemon/base/clock.h"

/* Takes the next call. NULL: none waits. */
static struct mailbox_call *begin(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    struct mailbox_call *call = STAILQ_FIRST(&m->calls);
    m->late = false;
    if (call) {
        STAILQ_REMOVE_HEAD(&m->calls, next);
        call->state = MAILBOX_BEGUN;
    }
    pthread_mutex_unlock(&m->lock);
    return call;
}

static void run_all(void *arg)
{
    struct mailbox *m = arg;
    struct mailbox_call *call;

    while ((call = begin(m)) != NULL) {
        call->run(call);
        pthread_mutex_lock(&m->lock);
        bool dropped = call->dropped;
        call->state = MAILBOX_ENDED;
        pthread_cond_signal(&m->ended);
        pthread_mutex_unlock(&m->lock);
        if (dropped)
            call->drop(call);
    }
}

int mailbox_init(struct mailbox *m, struct ev_loop *loop)
{
    pthread_condattr_t attr;
    int rc = loop_wake_start(&m->wake, loop, run_all, m);

    if (rc)
        return rc;
    m->late = false;
    STAILQ_INIT(&m->calls);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->ended, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

void mailbox_fini(struct mailbox *m)
{
    struct mailbox_call *call;

    if (!m->wake.loop)
        return;
    loop_wake_stop(&m->wake);
    while ((call = STAILQ_FIRST(&m->calls)) != NULL) {
        STAILQ_REMOVE_HEAD(&m->calls, next);
        call->drop(call);
    }
    pthread_cond_destroy(&m->ended);
    pthread_mutex_destroy(&m->lock);
}

static void enqueue(struct mailbox *m, struct mailbox_call *call, bool dropped)
{
    call->state = MAILBOX_QUEUED;
    call->dropped = dropped;
    STAILQ_INSERT_TAIL(&m->calls, call, next);
    loop_wake_send(&m->wake);
}

/* Waits until the call has ended, or until its time is over. */
static void wait_for(struct mailbox *m, const struct mailbox_call *call)
{
    uint64_t end = clock_ns() + MAILBOX_WAIT_NS;
    struct timespec t = {(time_t)(end / NS_PER_S), (long)(end % NS_PER_S)};

    while (call->state != MAILBOX_ENDED && pthread_cond_timedwait(&m->ended, &m->lock, &t) == 0)
        continue;
}

enum mailbox_result mailbox_do(struct mailbox *m, struct mailbox_call *call)
{
    enum mailbox_result result = MAILBOX_DONE;

    pthread_mutex_lock(&m->lock);
    if (m->late) {
        pthread_mutex_unlock(&m->lock);
        return MAILBOX_LATE;
    }
    enqueue(m, call, false);
    wait_for(m, call);
    m->late = call->state != MAILBOX_ENDED;
    if (call->state == MAILBOX_QUEUED) {
        STAILQ_REMOVE(&m->calls, call, mailbox_call, next);
        result = MAILBOX_LATE;
    } else if (call->state == MAILBOX_BEGUN) {
        call->dropped = true;
        result = MAILBOX_GIVEN_UP;
    }
    pthread_mutex_unlock(&m->lock);
    return result;
}

void mailbox_post(struct mailbox *m, struct mailbox_call *call)
{
    pthread_mutex_lock(&m->lock);
    enqueue(m, call, true);
    pthread_mutex_unlock(&m->lock);
}
