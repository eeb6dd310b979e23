// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/status_thread.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/base/user.h"
#include "daemon/status/object_walk.h"
#include "daemon/threads/memory_trim.h"

/* The next request to answer: the oldest one of another user than the last, or else the oldest one. */
static struct status_request *next(struct status_thread *t)
{
    struct status_request *r;

    TAILQ_FOREACH (r, &t->waiting, link) {
        if (r->uid != t->last)
            return r;
    }
    return TAILQ_FIRST(&t->waiting);
}

static void answer(struct status_thread *t, struct status_request *r)
{
    TAILQ_REMOVE(&t->waiting, r, link);
    pthread_mutex_unlock(&t->lock);
    r->make(r);
    memory_trim_later();
    pthread_mutex_lock(&t->lock);
    TAILQ_INSERT_TAIL(&t->ready, r, link);
    ev_async_send(t->loop, &t->answered);
}

/* In a pause of the request of the user `last`: answers the oldest one of another user. */
static void answer_other(void *arg)
{
    struct status_thread *t = arg;
    struct status_request *r;

    pthread_mutex_lock(&t->lock);
    TAILQ_FOREACH (r, &t->waiting, link) {
        if (r->uid != t->last && !user_of(r->uid).administers)
            break;
    }
    if (r)
        answer(t, r);
    pthread_mutex_unlock(&t->lock);
}

static void *run(void *arg)
{
    struct status_thread *t = arg;

    prctl(PR_SET_NAME, "status");
    object_walk_set_pause(answer_other, t);
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        struct status_request *r = next(t);

        if (!r) {
            pthread_cond_wait(&t->asked, &t->lock);
            continue;
        }
        t->last = r->uid;
        answer(t, r);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Takes the requests of a list, which only the caller uses. */
static void take_all(struct status_requests *list)
{
    struct status_request *r;

    while ((r = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, r, link);
        r->take(r);
    }
}

static void on_answered(struct ev_loop *loop, ev_async *w, int revents)
{
    struct status_thread *t = w->data;
    struct status_requests ready = TAILQ_HEAD_INITIALIZER(ready);

    (void)loop;
    (void)revents;
    pthread_mutex_lock(&t->lock);
    TAILQ_CONCAT(&ready, &t->ready, link);
    pthread_mutex_unlock(&t->lock);
    take_all(&ready);
}

int status_thread_start(struct status_thread *t, struct ev_loop *loop, char why[ERROR_TEXT_MAX])
{
    sigset_t all, old;

    t->loop = loop;
    t->stop = false;
    t->last = (uid_t)-1;
    TAILQ_INIT(&t->waiting);
    TAILQ_INIT(&t->ready);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->asked, NULL);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = -pthread_create(&t->id, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        snprintf(why, ERROR_TEXT_MAX, "cannot start a thread: %s", strerror(-rc));
        return rc;
    }
    ev_async_init(&t->answered, on_answered);
    t->answered.data = t;
    ev_async_start(loop, &t->answered);
    t->running = true;
    return 0;
}

void status_thread_ask(struct status_thread *t, struct status_request *r)
{
    pthread_mutex_lock(&t->lock);
    TAILQ_INSERT_TAIL(&t->waiting, r, link);
    pthread_cond_signal(&t->asked);
    pthread_mutex_unlock(&t->lock);
}

void status_thread_stop(struct status_thread *t)
{
    if (!t->running)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->asked);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->id, NULL);
    ev_async_stop(t->loop, &t->answered);
    take_all(&t->ready);
    take_all(&t->waiting);
    pthread_cond_destroy(&t->asked);
    pthread_mutex_destroy(&t->lock);
    t->running = false;
}
