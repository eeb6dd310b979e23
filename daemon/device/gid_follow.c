// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/device/gid_follow.h"

#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/net/netlink.h"

/* More than the table has, so that addresses that other devices own don't push out ours. */
#define ADDRESSES_MAX 256u

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct gid_entry *e = w->data;

    event_loop_rewatch(loop, w, revents);
    e->hot_until = clock_ns() + GID_HOT_NS; /* the next pass receives from the socket */
    udp_drain_errors(&e->device->udp, w->fd);
}

/* --- what others know of the device ------------------------------------------------------------ */

static bool is_link_local(const union addr *a)
{
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr);
}

void gid_follow_describe(struct device *d)
{
    struct mad_device m;

    memset(&m, 0, sizeof(m)); /* with the padding, which is compared */
    m.guid = d->guid;
    m.ifindex = d->netdev.index;
    m.active_mtu = d->active_mtu;
    m.num_gids = (uint8_t)d->gids.n;
    m.gid_v1 = d->limits.gid_v1;
    for (unsigned i = 0; i < d->gids.n; i++) {
        const struct gid_entry *e = gid_table_at(&d->gids, i);

        if (!e)
            continue;
        memcpy(m.gids[i], e->gid, sizeof(m.gids[i]));
        if (is_link_local(&e->addr))
            m.scope[i] = d->netdev.index;
    }
    mad_box_describe(&d->mads, &m);
}

/* Tells the other devices of the daemon, and connection management, which addresses this one has. */
static void publish(struct device *d)
{
    uint8_t gid[ENGINE_MAX_GIDS][16];
    unsigned n = 0;

    for (unsigned i = 0; i < d->gids.n && d->connections; i++) {
        if (d->gids.entry[i].used)
            memcpy(gid[n++], d->gids.entry[i].gid, 16);
    }
    if (d->connections)
        connections_set_addresses(d->connections, d->index, gid, n);
    gid_follow_describe(d);
}

/* --- entries ----------------------------------------------------------------------------------- */

static void set_entry(struct device *d, unsigned index, const union addr *addr, bool configured)
{
    struct gid_entry *e = &d->gids.entry[index];

    *e = (struct gid_entry){.device = d, .used = true, .present = true, .configured = configured, .addr = *addr};
    addr_to_gid(addr, e->gid);
    if (index >= d->gids.n)
        d->gids.n = index + 1;
    if (d->engine)
        engine_set_gid(d->engine, (uint8_t)index, e->gid);
    publish(d);
}

static void unwatch(struct device *d, struct gid_entry *e)
{
    if (e->readable.data)
        ev_io_stop(d->loop, &e->readable);
    e->readable.data = NULL;
}

static void watch(struct device *d, unsigned index)
{
    struct gid_entry *e = &d->gids.entry[index];

    if (index == 0)
        return; /* watched by the loop */
    ev_io_init(&e->readable, on_readable, d->udp.socket[index]->fd, EV_READ);
    e->readable.data = e;
    ev_io_start(d->loop, &e->readable);
}

/* --- following the interface ------------------------------------------------------------------- */

/* The address is configured for another device of this daemon. */
static bool is_of_other_device(const struct device *d, const union addr *addr)
{
    for (unsigned i = 0; i < d->settings->devices; i++) {
        const struct device_address *other = &d->settings->device[i];

        for (unsigned j = 0; j < other->num_addrs && i != d->index; j++) {
            uint8_t gid[16];

            addr_to_gid(&other->addr[j], gid);
            if (addr_has_gid(addr, gid))
                return true;
        }
    }
    return false;
}

static void clear_entry(struct device *d, unsigned index)
{
    if (index >= d->gids.n)
        return;
    d->gids.entry[index] = (struct gid_entry){.device = d};
    if (d->engine)
        engine_set_gid(d->engine, (uint8_t)index, d->gids.entry[index].gid);
    publish(d);
}

static bool add(struct device *d, const union addr *addr)
{
    char text[ADDR_TEXT_MAX], why[ERROR_TEXT_MAX];
    int index = gid_table_free_index(&d->gids);

    if (index < 0) {
        if (!d->gids.full)
            log_warn("device %s: the GID table has no room for %s: it has %u entries", d->name, addr_text(addr, text),
                     ENGINE_MAX_GIDS);
        d->gids.full = true;
        return false;
    }
    if ((unsigned)index < d->gids.n)
        unwatch(d, &d->gids.entry[index]);
    if (udp_add_address(&d->udp, (unsigned)index, addr, UDP_YIELDS, why) != 0) {
        /* Often another daemon has the address. */
        log_info("device %s: %s does not become a GID: %s", d->name, addr_text(addr, text), why);
        clear_entry(d, (unsigned)index);
        return false;
    }
    set_entry(d, (unsigned)index, addr, false);
    watch(d, (unsigned)index);
    log_info("device %s: GID %d is %s", d->name, index, addr_text(addr, text));
    return true;
}

/* Sets whether the interface has the address of each entry. Returns true if one has changed. */
static bool update_present(struct device *d, const union addr *list, unsigned n)
{
    char text[ADDR_TEXT_MAX];
    bool changed = false;

    for (unsigned i = 0; i < d->gids.n; i++) {
        struct gid_entry *e = &d->gids.entry[i];
        /* One address of 127.0.0.0/8 represents the whole block. */
        bool block = e->addr.sa.sa_family == AF_INET && addr_is_loopback(&e->addr), present = false;

        for (unsigned j = 0; j < n && !present; j++)
            present = addr_has_gid(&list[j], e->gid) ||
                      (block && list[j].sa.sa_family == AF_INET && addr_is_loopback(&list[j]));
        if (!e->used || present == e->present)
            continue;
        e->present = present;
        changed = true;
        log_write(LOG_AREA, e->configured ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "device %s: %s has %s its address %s",
                  d->name, d->netdev.name, present ? "got back" : "lost", addr_text(&e->addr, text));
    }
    return changed;
}

bool gid_follow_refresh(struct device *d)
{
    union addr list[ADDRESSES_MAX];
    int n = netlink_addresses(d->netdev.index, list, ADDRESSES_MAX);

    if (n < 0)
        return false; /* the table stays as it is */
    bool changed = update_present(d, list, (unsigned)n);
    for (unsigned i = 0; i < (unsigned)n && !d->netdev.loopback; i++) {
        if (!gid_table_find(&d->gids, &list[i]) && !is_of_other_device(d, &list[i]))
            changed |= add(d, &list[i]);
    }
    if (changed)
        gid_follow_describe(d);
    return changed;
}

/* --- the whole table --------------------------------------------------------------------------- */

void gid_follow_init(struct device *d)
{
    const struct device_address *a = &d->settings->device[d->index];
    char why[ERROR_TEXT_MAX];

    for (unsigned i = 0; i < a->num_addrs; i++) {
        set_entry(d, i, &a->addr[i], true);
        if (i)
            udp_add_address(&d->udp, i, &a->addr[i], UDP_OWNS, why); /* opens it later */
    }
}

int gid_follow_open(struct device *d, char why[ERROR_TEXT_MAX])
{
    for (unsigned i = 0; i < d->gids.n; i++) {
        int rc = i ? udp_add_address(&d->udp, i, &d->gids.entry[i].addr, UDP_OWNS, why) : 0;

        if (rc)
            return rc;
        watch(d, i);
    }
    publish(d); /* gid_follow_init could not do it yet */
    gid_follow_refresh(d);
    return 0;
}

void gid_follow_close(struct device *d)
{
    for (unsigned i = 0; i < d->gids.n; i++)
        unwatch(d, &d->gids.entry[i]);
}
