// SPDX-License-Identifier: BSD-2-Clause
/* Ends the sessions whose memory did not answer in time (client_mem/copier.h). */
#ifndef PUMICE_DAEMON_SESSION_STUCK_MEMORY_H
#define PUMICE_DAEMON_SESSION_STUCK_MEMORY_H

#include "daemon/device/device.h"

struct ucred;

/* To be called when the memory of a client is stuck: its user gets less time from now on. Logs and counts it. comm: the
 * name of its program. */
void stuck_memory_strike(struct device *d, const struct ucred *cred, const char *comm);
/* Disconnects all sessions whose memory is stuck. Each ends when the loop looks at its connection. */
void stuck_memory_end_sessions(struct device *d);

/* The loop calls this after each pass. */
static inline void stuck_memory_check(struct device *d)
{
    if (d->copier.lost != d->copies_lost)
        stuck_memory_end_sessions(d);
}

#endif
