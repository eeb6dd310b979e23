// SPDX-License-Identifier: BSD-2-Clause
/* Keeps the activity of a thread that runs an event loop: a turn begins when the loop has waited for events, and ends
 * when it waits again. */
#ifndef PUMICE_DAEMON_THREADS_LOOP_ACTIVITY_H
#define PUMICE_DAEMON_THREADS_LOOP_ACTIVITY_H

#include <ev.h>

#include "daemon/base/activity.h"

struct loop_activity {
    ev_prepare rests; /* called before the loop waits */
    ev_check wakes; /* called after that */
};

/* Until loop_activity_stop, the activity must live, and *l must not move. */
void loop_activity_start(struct loop_activity *l, struct ev_loop *loop, struct activity *a);
void loop_activity_stop(struct loop_activity *l, struct ev_loop *loop);

#endif
