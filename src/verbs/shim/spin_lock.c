// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/spin_lock.h"

#include <pthread.h>
#include <sched.h>

#include "src/verbs/base/api.h"

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The format of a lock belongs to the C library. So this function takes the lock by the C library's own attempt. */
VB_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    for (;;) {
        for (unsigned i = 0; i < VB_SPIN_ATTEMPTS; i++) {
            if (pthread_spin_trylock(lock) == 0)
                return 0;
            pause_briefly();
        }
        sched_yield();
    }
}
