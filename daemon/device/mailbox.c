// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/mailbox.h"

#include <stddef.h>

struct mailbox_call {
    void (*fn)(void *arg);
    void *arg;
    bool done;
};

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
    struct mailbox *m = w->data;

    (void)loop;
    (void)revents;
    pthread_mutex_lock(&m->lock);
    struct mailbox_call *call = m->call;
    pthread_mutex_unlock(&m->lock);
    if (!call)
        return;
    call->fn(call->arg);
    pthread_mutex_lock(&m->lock);
    m->call = NULL;
    call->done = true;
    pthread_cond_signal(&m->done);
    pthread_mutex_unlock(&m->lock);
}

void mailbox_init(struct mailbox *m, struct ev_loop *loop)
{
    m->loop = loop;
    m->call = NULL;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->done, NULL);
    ev_async_init(&m->wake, on_wake);
    m->wake.data = m;
    ev_async_start(loop, &m->wake);
}

void mailbox_fini(struct mailbox *m)
{
    ev_async_stop(m->loop, &m->wake);
    pthread_cond_destroy(&m->done);
    pthread_mutex_destroy(&m->lock);
}

void mailbox_do(struct mailbox *m, void (*fn)(void *arg), void *arg)
{
    struct mailbox_call call = {fn, arg, false};

    pthread_mutex_lock(&m->lock);
    m->call = &call;
    ev_async_send(m->loop, &m->wake);
    while (!call.done)
        pthread_cond_wait(&m->done, &m->lock);
    pthread_mutex_unlock(&m->lock);
}
