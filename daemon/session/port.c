// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/session/port.h"

#include <infiniband/verbs.h>

#include "daemon/base/log.h"
#include "daemon/device/device.h"
#include "daemon/device/gid_follow.h"
#include "daemon/session/session.h"

static void send_all(struct device *d, uint32_t type)
{
    struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link)
        session_event(s, type, 1);
}

bool port_refresh(struct device *d)
{
    bool was_up = d->netdev.up;

    if (d->netdev.index == 0)
        return false; /* tests without a network */
    netdev_refresh(&d->netdev);
    uint8_t fits = netdev_path_mtu(d->netdev.mtu, d->addr.sa.sa_family == AF_INET6);
    if (d->settings->mtu == 0 && fits)
        d->active_mtu = fits;
    if (d->netdev.up != was_up) {
        d->io.link_downed += was_up;
        log_warn("device %s: %s is %s", d->name, d->netdev.name, d->netdev.up ? "up again" : "down");
        send_all(d, d->netdev.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    }
    gid_follow_describe(d);
    if (!gid_follow_refresh(d))
        return false;
    send_all(d, IBV_EVENT_GID_CHANGE);
    return true;
}
