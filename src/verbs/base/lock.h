// SPDX-License-Identifier: BSD-2-Clause
/* The locks of the library, and the order in which a thread may take them:
 *
 *   1. the lock of a CQ (of two CQs, the one at the lower address first)
 *   2. the queue locks of a QP, or the lock of an SRQ, or the notify_lock of a CQ
 *   3. the lock of the context
 *   4. the lock of the session
 *   5. the lock of connection management (cm/cm_lock.h)
 *
 * Posting takes the lock of one queue or SRQ. Polling takes the lock of one CQ. For a completion of a request of an
 * SRQ, it also takes the lock of the SRQ. All other uses are on the control path. */
#ifndef PUMICE_SRC_VERBS_BASE_LOCK_H
#define PUMICE_SRC_VERBS_BASE_LOCK_H

#include <pthread.h>

/* Initialises a lock of the data path. It is held for some tens of instructions, so a thread that finds it taken spins
 * for a short time before it sleeps. */
static inline void vb_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &a);
    pthread_mutexattr_destroy(&a);
}

#endif
