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

bool port_is_up(const struct device *d)
{
    return d->netdev.up && !d->link_down;
}

/* was_up: before a change of netdev.up or link_down. */
static void tell_change(struct device *d, bool was_up)
{
    bool up = port_is_up(d);

    if (up == was_up)
        return;
    d->io.link_downed += was_up;
    send_all(d, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void port_set_link(struct device *d, bool down)
{
    bool was_up = port_is_up(d);

    if (down == d->link_down)
        return;
    d->link_down = down;
    log_warn("device %s: the link is %s, because the injected faults say so", d->name, down ? "down" : "up again");
    tell_change(d, was_up);
}

bool port_refresh(struct device *d)
{
    bool interface_up = d->netdev.up, was_up = port_is_up(d);

    if (d->netdev.index == 0)
        return false; /* tests without a network */
    netdev_refresh(&d->netdev);
    uint8_t fits = netdev_path_mtu(d->netdev.mtu, d->addr.sa.sa_family == AF_INET6);
    if (d->settings->mtu == 0 && fits)
        d->active_mtu = fits;
    if (d->netdev.up != interface_up)
        log_warn("device %s: %s is %s", d->name, d->netdev.name, d->netdev.up ? "up again" : "down");
    tell_change(d, was_up);
    gid_follow_describe(d);
    if (!gid_follow_refresh(d))
        return false;
    send_all(d, IBV_EVENT_GID_CHANGE);
    return true;
}
