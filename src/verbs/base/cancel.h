// SPDX-License-Identifier: BSD-2-Clause
/* Threads that are cancelled. In rdma-core, posting, polling and control calls store to memory or call ioctl, and a thread is not
 * cancelled in them. Here they are system calls that POSIX has among its cancellation points: a thread that ended in one would leave
 * locks held, a request without its doorbell, a reply for the next to read. So these calls are made so that they are none (libc's
 * syscall() is none), or with cancellation off. What stays one, as there, is the read that waits for an event, under no lock, and
 * the wait for acknowledgements of those who destroy. */
#ifndef PUMICE_SRC_VERBS_BASE_CANCEL_H
#define PUMICE_SRC_VERBS_BASE_CANCEL_H

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void vb_close(int fd)
{
    syscall(SYS_close, fd);
}

/* Returns what vb_cancel_restore takes. They may be nested. */
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
