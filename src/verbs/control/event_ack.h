// SPDX-License-Identifier: BSD-2-Clause
/* Acknowledged events. An object can be destroyed only after the program has acknowledged all of its events that were
 * delivered. mutex, cond and the count of acknowledged events are those of struct ibv_cq, ibv_qp or ibv_srq. */
#ifndef PUMICE_SRC_VERBS_CONTROL_EVENT_ACK_H
#define PUMICE_SRC_VERBS_CONTROL_EVENT_ACK_H

#include <pthread.h>
#include <stdint.h>

/* Counts num more events as acknowledged, and wakes the thread that waits to destroy the object. */
static inline void vb_event_ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *acknowledged, uint32_t num)
{
    pthread_mutex_lock(mutex);
    *acknowledged += num;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

/* Waits until all delivered events are acknowledged. No more events may be delivered. */
static inline void vb_event_await_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
                                       uint32_t delivered)
{
    pthread_mutex_lock(mutex);
    while (*acknowledged != delivered)
        pthread_cond_wait(cond, mutex);
    pthread_mutex_unlock(mutex);
}

#endif
