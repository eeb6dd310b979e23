// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/memory_trim.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>

#define HELD_MOST_S 60 /* a hold longer than this counts no more */

static atomic_flag pending = ATOMIC_FLAG_INIT;
static _Atomic unsigned holds;

static void *run(void *arg)
{
    unsigned s = 0;

    (void)arg;
    prctl(PR_SET_NAME, "memory-trim");
    do
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    while (atomic_load(&holds) && ++s < HELD_MOST_S);
    atomic_flag_clear(&pending);
    malloc_trim(0);
    return NULL;
}

void memory_trim_later(void)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;

    if (atomic_flag_test_and_set(&pending))
        return;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, &attr, run, NULL) != 0)
        atomic_flag_clear(&pending);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

void memory_trim_hold(bool hold)
{
    atomic_fetch_add(&holds, hold ? 1u : -1u);
}
