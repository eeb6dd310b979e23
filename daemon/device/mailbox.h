// SPDX-License-Identifier: BSD-2-Clause
/* Calls functions in the thread of a loop. The caller waits for a bounded time: if the thread hangs, the caller goes on
 * without it. Only one thread (the main thread) calls. */
#ifndef PUMICE_DAEMON_DEVICE_MAILBOX_H
#define PUMICE_DAEMON_DEVICE_MAILBOX_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/loop_wake.h"

/* How long a call may take. A thread that serves clients begins with a call within milliseconds, even on a busy
 * machine. */
#define MAILBOX_WAIT_NS (1000ull * 1000000ull)

/* A call: the first member of a struct with its arguments and results. */
struct mailbox_call {
    /* Runs in the thread of the loop. */
    void (*run)(struct mailbox_call *call);
    /* Frees a call that belongs to the mailbox. Runs in the thread of the loop, after `run`, or in mailbox_fini without
     * it. */
    void (*drop)(struct mailbox_call *call);
    enum mailbox_state { MAILBOX_QUEUED, MAILBOX_BEGUN, MAILBOX_ENDED } state; /* the mailbox's own */
    bool dropped; /* the mailbox's own: nobody waits for it */
    STAILQ_ENTRY(mailbox_call) next;
};

struct mailbox {
    struct loop_wake wake; /* not started: mailbox_init has failed */
    pthread_mutex_t lock;
    pthread_cond_t ended; /* monotonic clock */
    /* Protected by lock, as state and dropped of the calls are. */
    STAILQ_HEAD(, mailbox_call) calls; /* those that have not begun */
    bool late; /* a call was not answered in time, and the thread has begun no call since */
};

/* Returns 0, or -errno; mailbox_fini may be called also then. */
int mailbox_init(struct mailbox *m, struct ev_loop *loop);
/* The thread of the loop has ended. Drops the calls that it did not run. */
void mailbox_fini(struct mailbox *m);

enum mailbox_result {
    MAILBOX_DONE, /* it has run; the call is the caller's again */
    MAILBOX_LATE, /* it did not run, and never will; the call is the caller's again */
    MAILBOX_GIVEN_UP, /* it runs now, for long; the call belongs to the mailbox, which drops it */
};
/* Runs a call in the thread that runs the mailbox's loop, and waits for it, at most MAILBOX_WAIT_NS. After a call that
 * came late, further calls are late at once, until the thread answers again. */
enum mailbox_result mailbox_do(struct mailbox *m, struct mailbox_call *call);
/* Lets the thread run a call, and does not wait for it. The call belongs to the mailbox, which drops it. */
void mailbox_post(struct mailbox *m, struct mailbox_call *call);

#endif
