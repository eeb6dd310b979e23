// SPDX-License-Identifier: BSD-2-Clause
/* Carries out the injected faults of the device as a whole: its link goes down and up, its daemon dies. While faults are off,
 * this costs one comparison for each pass. */
#ifndef PUMICE_DAEMON_LOOP_FAULT_WATCH_H
#define PUMICE_DAEMON_LOOP_FAULT_WATCH_H

#include "daemon/device/device.h"

/* Is there something to do for fault_watch? */
static inline bool fault_watch_due(const struct device *d, uint64_t now)
{
    return __builtin_expect(fault_on(&d->fault) || d->link_down, 0) &&
           (fault_deadline(&d->fault) <= now || fault_link_down(&d->fault) != d->link_down ||
            fault_daemon_ends(&d->fault));
}
/* Follows the faults up to this time, and tells the programs of changes. It may not return. */
void fault_watch(struct device *d, uint64_t now);

/* Ends the daemon as SIGKILL does if the faults say so. Else returns. */
void fault_watch_daemon(const struct device *d);

#endif
