// SPDX-License-Identifier: BSD-2-Clause
/* Ends a daemon that nobody has used for some time (option idle-exit). The client library starts such daemons, where no
 * service manager does (PUMICE_AUTOSTART). */
#ifndef PUMICE_DAEMON_SERVER_IDLE_EXIT_H
#define PUMICE_DAEMON_SERVER_IDLE_EXIT_H

#include <ev.h>
#include <stdint.h>

#include "daemon/base/quota.h"

struct idle_exit {
    ev_timer timer;
    struct quota *quota;
    uint64_t limit_ns;
    uint64_t used_at; /* clock_ns */
};

/* Breaks the loop when no program has had a session or a connection for this time. seconds 0: never. Main thread. */
void idle_exit_start(struct idle_exit *x, struct ev_loop *loop, struct quota *quota, uint32_t seconds);
/* To be called when somebody has connected, however shortly. */
void idle_exit_used(struct idle_exit *x);

#endif
