// SPDX-License-Identifier: BSD-2-Clause
/* Lets another thread have a function called in a loop's thread, and waits until it is done. */
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
    struct mailbox_call *call; /* under lock; NULL: none. One at a time: only the main thread calls */
};

void mailbox_init(struct mailbox *m, struct ev_loop *loop);
void mailbox_fini(struct mailbox *m);

/* Runs fn(arg) in the thread that runs the mailbox's loop, and returns when it has returned. */
void mailbox_do(struct mailbox *m, void (*fn)(void *arg), void *arg);

#endif
