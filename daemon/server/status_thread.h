// SPDX-License-Identifier: BSD-2-Clause
/* A thread that answers PM_OP_STATUS, PM_OP_TM and PM_OP_LAYOUT. The status of a device with 16,384 queue pairs is 14 MB of JSON, which takes about a
 * second. The main thread must not spend that time, because it also accepts connections and opens sessions.
 *
 * There is one such thread, so that status requests take one processor at most. Users take turns: a user with many
 * requests does not hold up another user for longer than one request takes. Between two slices of a long request, the
 * thread answers one of another user, unless one of the two administers the daemon (status/object_walk.h). */
#ifndef PUMICE_DAEMON_SERVER_STATUS_THREAD_H
#define PUMICE_DAEMON_SERVER_STATUS_THREAD_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/base/error_text.h"
#include "daemon/session/control_msg.h"

/* One request, usually the first member of a struct. */
struct status_request {
    TAILQ_ENTRY(status_request) link;
    uid_t uid; /* the user who asks */
    /* Makes the answer. Called in the status thread. */
    void (*make)(struct status_request *r);
    /* Takes the answer. Called in the thread of the loop. */
    void (*take)(struct status_request *r);
};
TAILQ_HEAD(status_requests, status_request);

struct status_thread {
    struct ev_loop *loop;
    ev_async answered;
    pthread_t id;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    /* Protected by lock. */
    struct status_requests waiting, ready;
    uid_t last; /* user of the latest request that was begun, but not in a pause */
    bool stop;
};

/* Starts the thread. Its answers arrive in the loop. 0, or -errno with why. */
int status_thread_start(struct status_thread *t, struct ev_loop *loop, char why[ERROR_TEXT_MAX]);
/* Asks. The request must live until `take` is called. */
void status_thread_ask(struct status_thread *t, struct status_request *r);
/* Ends the thread after the request that it is answering. Calls `take` for all requests, also for those that were not
 * begun. Does nothing if the thread was not started. */
void status_thread_stop(struct status_thread *t);

#endif
