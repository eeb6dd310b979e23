// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/port_change.h"

#include "daemon/device/device.h"
#include "daemon/monitor/sysfs.h"
#include "daemon/net/netlink.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/session/port.h"

void port_change(struct device *d)
{
    if (!port_refresh(d))
        return;
    mcast_groups_follow(d);
    sysfs_update_gids(d);
}

void port_change_poll(struct device *d)
{
    if (d->port_fd < 0 || netlink_watch_read(d->port_fd, d->netdev.index))
        port_change(d);
}
