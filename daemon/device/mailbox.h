// SPDX-License-Identifier: BSD-2-Clause
/* Calls a function in the thread of a loop, and waits until it has returned. */
#ifndef PUMICE_DAEMON_DEVICE_MAILBOX_H
#define PUMICE_DAEMON_DEVICE_MAILBOX_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>

struct mailbox_call;
struct mailbox {
    struct ev_loop *loop;
    ev_async wake;
    pthread_mutex_t lock;
    pthread_cond_t done;
    /* Protected by lock. NULL: none. There is one call at a time, because only the main thread calls. */
    struct mailbox_call *call;
};

void mailbox_init(struct mailbox *m, struct ev_loop *loop);
void mailbox_fini(struct mailbox *m);

/* Runs fn(arg) in the thread that runs the mailbox's loop. Returns when fn has returned. */
void mailbox_do(struct mailbox *m, void (*fn)(void *arg), void *arg);

#endif
