// SPDX-License-Identifier: BSD-2-Clause
/* pthread_spin_lock yields while another thread has the lock. This program counts the yields: the library calls its
 * sched_yield instead of the C library's. */
#include <pthread.h>
#include <sched.h>

#include "tests/verbs/vt.h"

static pthread_spinlock_t lock;
static int yields;

/* The third yield lets the holder run: it releases the lock. */
int sched_yield(void)
{
    if (++yields == 3)
        pthread_spin_unlock(&lock);
    return 0;
}

int main(void)
{
    VT_OWN("spin locks of the client library");
    struct ibv_context *c = vt_open();
    need(c && pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
    yields = 0;
    ok(pthread_spin_lock(&lock) == 0 && yields == 0, "a free lock is taken without a yield");
    ok(pthread_spin_trylock(&lock) == EBUSY, "it is taken: the C library's own functions see that");
    alarm(20); /* the C library's function would spin for ever */
    ok(pthread_spin_lock(&lock) == 0 && yields == 3, "a thread that waits for a lock yields");
    alarm(0);
    ok(pthread_spin_unlock(&lock) == 0 && pthread_spin_trylock(&lock) == 0, "it is free after one unlock");
    need(ibv_close_device(c) == 0);
    return vt_failed;
}
