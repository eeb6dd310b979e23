// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/file_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

struct call {
    void (*fn)(void *arg);
    void *arg;
    bool done;
};

static struct {
    pthread_t thread;
    pthread_mutex_t turn; /* one caller at a time */
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t changed;
    struct call *call; /* NULL: none */
    bool running, stop;
} files = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *run(void *arg)
{
    void (*const *enter)(void) = arg;

    prctl(PR_SET_NAME, "pumice-files");
    (*enter)();
    pthread_mutex_lock(&files.lock);
    files.running = true;
    pthread_cond_broadcast(&files.changed);
    while (!files.stop) {
        struct call *c = files.call;

        if (!c) {
            pthread_cond_wait(&files.changed, &files.lock);
            continue;
        }
        pthread_mutex_unlock(&files.lock);
        c->fn(c->arg);
        pthread_mutex_lock(&files.lock);
        files.call = NULL;
        c->done = true;
        pthread_cond_broadcast(&files.changed);
    }
    files.running = false;
    pthread_mutex_unlock(&files.lock);
    return NULL;
}

int file_thread_start(void (*enter)(void))
{
    sigset_t all, old;

    files.stop = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = -pthread_create(&files.thread, NULL, run, &enter);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return rc;
    pthread_mutex_lock(&files.lock);
    while (!files.running)
        pthread_cond_wait(&files.changed, &files.lock);
    pthread_mutex_unlock(&files.lock);
    return 0;
}

void file_thread_stop(void)
{
    pthread_mutex_lock(&files.lock);
    bool was = files.running;
    files.stop = true;
    pthread_cond_broadcast(&files.changed);
    pthread_mutex_unlock(&files.lock);
    if (was)
        pthread_join(files.thread, NULL);
}

void file_thread_do(void (*fn)(void *arg), void *arg)
{
    struct call call = {fn, arg, false};

    pthread_mutex_lock(&files.turn);
    pthread_mutex_lock(&files.lock);
    bool running = files.running && !files.stop;
    if (running) {
        files.call = &call;
        pthread_cond_broadcast(&files.changed);
        while (!call.done)
            pthread_cond_wait(&files.changed, &files.lock);
    }
    pthread_mutex_unlock(&files.lock);
    if (!running)
        fn(arg);
    pthread_mutex_unlock(&files.turn);
}
