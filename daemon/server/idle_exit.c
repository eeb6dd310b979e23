// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/idle_exit.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

static void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct idle_exit *x = w->data;
    uint64_t now = clock_ns();

    (void)revents;
    if (quota_total(x->quota, QUOTA_SESSIONS) || quota_total(x->quota, QUOTA_CONNECTIONS) ||
        quota_total(x->quota, QUOTA_CM_CONNECTIONS) || quota_total(x->quota, QUOTA_CM_CHANNELS))
        x->used_at = now;
    if (now - x->used_at < x->limit_ns)
        return;
    log_info("no program for %u s (idle-exit): ending", (unsigned)(x->limit_ns / NS_PER_S));
    ev_break(loop, EVBREAK_ALL);
}

void idle_exit_start(struct idle_exit *x, struct ev_loop *loop, struct quota *quota, uint32_t seconds)
{
    x->quota = quota;
    x->limit_ns = seconds * NS_PER_S;
    x->used_at = clock_ns();
    ev_timer_init(&x->timer, on_tick, 0.5, 0.5);
    x->timer.data = x;
    if (seconds)
        ev_timer_start(loop, &x->timer);
}

void idle_exit_used(struct idle_exit *x)
{
    x->used_at = clock_ns();
}
