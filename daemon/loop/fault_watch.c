// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/fault_watch.h"

#include <signal.h>

#include "daemon/base/log.h"
#include "daemon/session/port.h"

void fault_watch_daemon(const struct device *d)
{
    if (__builtin_expect(!fault_daemon_ends(&d->fault), 1))
        return;
    log_warn("the daemon dies, because the injected faults say so");
    raise(SIGKILL);
}

void fault_watch(struct device *d, uint64_t now)
{
    if (fault_deadline(&d->fault) <= now)
        fault_advance(&d->fault, now);
    fault_watch_daemon(d);
    port_set_link(d, fault_link_down(&d->fault));
}
