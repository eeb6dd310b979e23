// SPDX-License-Identifier: BSD-2-Clause
/* Clients that sleep in an empty poll, see pm_session_page: the loop wakes them. */
#ifndef PUMICE_DAEMON_SESSION_CLIENT_WAKEUP_H
#define PUMICE_DAEMON_SESSION_CLIENT_WAKEUP_H

#include <stdint.h>

struct device;
struct session;

/* To be called after completions of the session were published: wakes the client if it waits. */
void client_wakeup_published(struct session *s);

/* In every pass: tells clients which processor this thread is on, and wakes those that have waited for as long as they
 * wanted to. (They set no timer, because that costs more than their wait is worth; this loop looks at the clock
 * anyway.) */
void client_wakeup_pass(struct device *d, uint64_t now);

/* Before the loop sleeps, and after it has told so: wakes all that wait. */
void client_wakeup_all(struct device *d);

#endif
