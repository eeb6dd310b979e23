// SPDX-License-Identifier: BSD-2-Clause
/* Helpers that keep cancellation points (pthread_cancel) out of the library: a close() that is none, and turning
 * cancellation off.
 *
 * In rdma-core, posting, polling and control calls store to memory or call ioctl, which are no cancellation points. In
 * this library they make system calls that POSIX counts among its cancellation points. A thread that ended in one of
 * them would leave a lock held, a request without a doorbell, or an unread reply. So the library makes these calls
 * through syscall() of the C library, which is no cancellation point, or with cancellation off. Two calls stay
 * cancellation points, as in rdma-core. One is the read that waits for an event, under no lock. The other is the wait
 * for acknowledgements when an object is destroyed. */
#ifndef PUMICE_SRC_VERBS_BASE_CANCEL_H
#define PUMICE_SRC_VERBS_BASE_CANCEL_H

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* close(), but no cancellation point. */
static inline void vb_close(int fd)
{
    syscall(SYS_close, fd);
}

/* Turns cancellation off. Returns the old state, for vb_cancel_restore. The calls may be nested. */
static inline int vb_cancel_off(void)
{
    int was;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    return was;
}
static inline void vb_cancel_restore(int was)
{
    pthread_setcancelstate(was, &was);
}

#endif
