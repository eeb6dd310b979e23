// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's way to use libev where memory or kernel resources are short. By itself libev ends the process if it gets
 * no memory or if epoll_wait fails. If the kernel refuses to watch a descriptor, libev stops the watcher and reports
 * EV_ERROR. */
#ifndef PUMICE_DAEMON_BASE_EVENT_LOOP_H
#define PUMICE_DAEMON_BASE_EVENT_LOOP_H

#include <ev.h>
#include <stdbool.h>

/* From now on, libev takes memory from a reserve of EVENT_LOOP_RESERVE bytes when malloc has none, and a failed wait is
 * logged and repeated. A failure to make the pipe of a loop still ends the process: that happens at the start only. To
 * be called before the first loop is made. */
#define EVENT_LOOP_RESERVE (4u << 20)
void event_loop_guard(void);

/* To be called first by the callback of a watcher that must never stop. If the kernel refused to watch the descriptor,
 * it starts the watcher again and returns true; the loop then tries again in its next turn. */
bool event_loop_rewatch(struct ev_loop *loop, ev_io *w, int revents);

/* libev asks the kernel to watch descriptors before a wait, and calls the callbacks of refused watchers after the wait,
 * which may take a minute. So a wait that comes after work, which may have started watchers, takes WAIT_LIMIT_S at most
 * here. A second wait in a row has no limit. */
#define WAIT_LIMIT_S 0.1
struct wait_limit {
    ev_timer timer;
    ev_prepare waits;
    ev_check waited;
    bool idle; /* nothing has happened since the last limit ended a wait */
};
void wait_limit_start(struct wait_limit *l, struct ev_loop *loop);
void wait_limit_stop(struct wait_limit *l, struct ev_loop *loop);
/* To be called after work that is not done by callbacks of the loop. */
static inline void wait_limit_worked(struct wait_limit *l)
{
    l->idle = false;
}

#endif
