// SPDX-License-Identifier: BSD-2-Clause
/* Watches a network interface and its addresses by rtnetlink, so that IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE and
 * IBV_EVENT_GID_CHANGE can be told. */
#ifndef PUMICE_DAEMON_PORTWATCH_H
#define PUMICE_DAEMON_PORTWATCH_H

#include <stdbool.h>

/* A non-blocking socket that becomes readable when an interface or an address changes, or -errno (then the port's state is only read
 * when asked for). The caller closes it. */
int netlink_watch_open(void);

/* Reads what there is. True if one of the messages was about interface `ifindex`, or if messages were lost. */
bool netlink_watch_read(int fd, unsigned ifindex);

#endif
