// SPDX-License-Identifier: BSD-2-Clause
/* How much the daemon can have of each kind that has a quota (daemon/base/quota.h). */
#ifndef PUMICE_DAEMON_SERVER_CAPACITY_H
#define PUMICE_DAEMON_SERVER_CAPACITY_H

#include "daemon/base/quota.h"

/* Connections that wait for the answer that they are refused. They are beyond the quotas, so there are few. If there
 * are more, the oldest is closed without an answer. */
#define CAPACITY_REFUSED 64u

/* Reads the limits of this process and of the machine. To be called when the devices are open: what the daemon uses
 * itself until then is not for clients. A reserve stays for its own work. */
void capacity_read(uint64_t capacity[QUOTA_KINDS]);

#endif
