// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t owner; /* the process that called vb_cm_prepare, or its child by fork */

void vb_cm_lock(void)
{
    pthread_mutex_lock(&lock);
}

void vb_cm_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    atomic_store(&owner, getpid());
    pthread_mutex_init(&lock, NULL);
}

static void prepare(void)
{
    atomic_store(&owner, getpid());
    pthread_atfork(vb_cm_lock, vb_cm_unlock, in_child);
}

void vb_cm_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
}

bool vb_cm_is_owner(void)
{
    return atomic_load(&owner) == getpid();
}
