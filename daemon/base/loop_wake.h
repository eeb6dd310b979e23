// SPDX-License-Identifier: BSD-2-Clause
/* Wakes the loop of another thread, as ev_async does. ev_async must not be used in a loop that waits with epoll: libev
 * sometimes makes the epoll set anew, and if the kernel refuses to watch the descriptor of ev_async then, libev never
 * tries again. Here the descriptor is an eventfd of the daemon, whose watcher starts again. */
#ifndef PUMICE_DAEMON_BASE_LOOP_WAKE_H
#define PUMICE_DAEMON_BASE_LOOP_WAKE_H

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

struct loop_wake {
    struct ev_loop *loop; /* NULL: not started */
    ev_io readable;
    int fd;
    atomic_bool sent; /* the eventfd was written, and the loop has not seen it */
    void (*woken)(void *arg);
    void *arg;
};

/* From now on, `woken` is called in the thread of the loop after each loop_wake_send. Several calls of that may cause
 * one call of `woken`. Returns 0, or -errno. *w must not move until loop_wake_stop. */
int loop_wake_start(struct loop_wake *w, struct ev_loop *loop, void (*woken)(void *arg), void *arg);
/* No thread calls loop_wake_send meanwhile or later. Does nothing if it was not started. */
void loop_wake_stop(struct loop_wake *w);
/* Any thread may call it. What the caller wrote before is visible to `woken`. */
void loop_wake_send(struct loop_wake *w);

#endif
