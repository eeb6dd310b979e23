// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/loop_activity.h"

#include "daemon/base/clock.h"

static void on_rest(struct ev_loop *loop, ev_prepare *w, int revents)
{
    (void)loop;
    (void)revents;
    activity_rest(w->data);
}

static void on_wake(struct ev_loop *loop, ev_check *w, int revents)
{
    (void)loop;
    (void)revents;
    activity_wake(w->data, clock_ns());
}

void loop_activity_start(struct loop_activity *l, struct ev_loop *loop, struct activity *a)
{
    ev_prepare_init(&l->rests, on_rest);
    ev_check_init(&l->wakes, on_wake);
    ev_set_priority(&l->rests, EV_MINPRI); /* after other work of the turn */
    ev_set_priority(&l->wakes, EV_MAXPRI); /* before the callbacks, which may be what gets stuck */
    l->rests.data = l->wakes.data = a;
    ev_prepare_start(loop, &l->rests);
    ev_check_start(loop, &l->wakes);
}

void loop_activity_stop(struct loop_activity *l, struct ev_loop *loop)
{
    ev_prepare_stop(loop, &l->rests);
    ev_check_stop(loop, &l->wakes);
    activity_rest(l->rests.data);
}
