// SPDX-License-Identifier: BSD-2-Clause
/* Wakes clients that sleep in an empty poll (see pm_session_page). */
#ifndef PUMICE_DAEMON_SESSION_CLIENT_WAKEUP_H
#define PUMICE_DAEMON_SESSION_CLIENT_WAKEUP_H

#include <stdint.h>

struct device;
struct session;

/* To be called after completions of the session were published: wakes the client if it waits. */
void client_wakeup_published(struct session *s);

/* To be called in every pass. Tells the clients on which processor this thread runs, and whether they should be there
 * (daemon/loop/cpu_advice.h). Wakes the clients whose requested wait is over. The clients set no timer, because a timer costs
 * more than such a short wait. This loop reads the clock anyway. */
void client_wakeup_pass(struct device *d, uint64_t now);

/* To be called after the loop has announced in the session pages that it will sleep. Wakes the clients
 * that wait, but not those that wait for completions only. */
void client_wakeup_all(struct device *d);

#endif
