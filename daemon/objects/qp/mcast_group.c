// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/mcast_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/event_loop.h"
#include "daemon/device/device.h"
#include "daemon/session/charge.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "wire/gid.h"

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct mcast_socket *m = w->data;

    event_loop_rewatch(loop, w, revents);
    m->hot_until = clock_ns() + MCAST_GROUP_HOT_NS; /* the next pass receives from the socket */
}

bool mcast_group_is_echo(const struct device *d, const uint8_t src_gid[16])
{
    return device_keeps_inside(d, src_gid);
}

/* --- sockets ----------------------------------------------------------------------------------- */

static const struct gid_entry *address_of(const struct device *d, unsigned family)
{
    static const int families[MCAST_FAMILIES] = {AF_INET, AF_INET6};

    return gid_table_of_family(&d->gids, families[family]);
}

static int open_socket(struct mcast_group *g, unsigned family, const union addr *own)
{
    struct device *d = g->device;
    struct mcast_socket *m = calloc(1, sizeof(*m));
    union addr addr;

    if (!m)
        return -ENOMEM;
    m->fd = udp_join(&d->udp, own, g->gid, &addr);
    if (m->fd < 0) {
        int rc = m->fd;

        free(m);
        return rc;
    }
    peers_init(&m->peers, &addr, true);
    ev_io_init(&m->readable, on_readable, m->fd, EV_READ);
    m->readable.data = m;
    ev_io_start(d->loop, &m->readable);
    g->socket[family] = m;
    return 0;
}

static void close_socket(struct mcast_group *g, unsigned family)
{
    struct mcast_socket *m = g->socket[family];

    if (!m)
        return;
    ev_io_stop(g->device->loop, &m->readable);
    close(m->fd);
    free(m);
    g->socket[family] = NULL;
}

/* Opens a socket in each family of the device that has none yet. One socket is enough for success: an interface may
 * have no multicast in one of the families. Returns 0 or -errno. */
static int open_sockets(struct mcast_group *g)
{
    unsigned open = 0;
    int rc = 0;

    if (!udp_is_open(&g->device->udp))
        return 0; /* tests without a network */
    for (unsigned i = 0; i < MCAST_FAMILIES; i++) {
        const struct gid_entry *own = address_of(g->device, i);
        int err = own && !g->socket[i] ? open_socket(g, i, &own->addr) : 0;

        rc = err ? err : rc;
        open += g->socket[i] != NULL;
    }
    return open ? 0 : rc;
}

void mcast_groups_follow(struct device *d)
{
    struct mcast_group *g;

    TAILQ_FOREACH (g, &d->groups, link) {
        for (unsigned i = 0; i < MCAST_FAMILIES; i++) {
            if (!address_of(d, i))
                close_socket(g, i);
        }
        open_sockets(g);
    }
}

/* --- groups and members ------------------------------------------------------------------------ */

static struct mcast_group *find(const struct device *d, const uint8_t gid[16])
{
    struct mcast_group *g;

    TAILQ_FOREACH (g, &d->groups, link) {
        if (memcmp(g->gid, gid, sizeof(g->gid)) == 0)
            return g;
    }
    return NULL;
}

static int join(struct session *s, const uint8_t gid[16], struct control_reply *rp, struct mcast_group **out)
{
    struct device *d = s->device;
    int rc = charge_object(&s->owner, QUOTA_GROUPS, rp);

    if (rc)
        return rc;
    struct mcast_group *g = calloc(1, sizeof(*g));
    if (g) {
        g->device = d;
        g->owner = s->owner;
        memcpy(g->gid, gid, sizeof(g->gid));
    }
    rc = g ? open_sockets(g) : -ENOMEM;
    if (rc) {
        free(g);
        quota_release(&s->owner, QUOTA_GROUPS);
        return rc;
    }
    g->number = ++d->next_group;
    TAILQ_INSERT_TAIL(&d->groups, g, link);
    d->num_groups++;
    *out = g;
    return 0;
}

static void leave_if_empty(struct mcast_group *g)
{
    if (g->members)
        return;
    for (unsigned i = 0; i < MCAST_FAMILIES; i++)
        close_socket(g, i);
    TAILQ_REMOVE(&g->device->groups, g, link);
    g->device->num_groups--;
    quota_release(&g->owner, QUOTA_GROUPS);
    free(g);
}

static struct membership *find_membership(const struct client_qp *q, const uint8_t gid[16])
{
    struct membership *m;

    LIST_FOREACH (m, &q->memberships, link) {
        if (memcmp(m->group->gid, gid, sizeof(m->group->gid)) == 0)
            return m;
    }
    return NULL;
}

static void leave(struct membership *m)
{
    struct mcast_group *g = m->group;

    LIST_REMOVE(m, link);
    free(m);
    g->members--;
    leave_if_empty(g);
}

void mcast_group_leave_all(struct membership_list *memberships)
{
    while (!LIST_EMPTY(memberships))
        leave(LIST_FIRST(memberships));
}

/* --- control operations ------------------------------------------------------------------------ */

static int check(struct session *s, const struct pm_mcast_req *r, struct control_reply *rp, struct client_qp **q)
{
    char gid[ADDR_TEXT_MAX];

    *q = handles_get(&s->qps, r->qpn);
    if (!*q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", r->qpn);
    if ((*q)->type != QPT_UD)
        return control_fail(rp, -EINVAL, "queue pair 0x%06x is not of type UD", r->qpn);
    if (!gid_is_multicast(r->gid))
        return control_fail(rp, -EINVAL, "%s is not a multicast group", gid_text(r->gid, gid));
    return 0;
}

static int attach(struct client_qp *q, struct mcast_group *g)
{
    struct membership *m = malloc(sizeof(*m));
    int rc = m ? mcast_attach(q->qp, g->gid) : -ENOMEM;

    if (rc) {
        free(m);
        return rc;
    }
    m->group = g;
    g->members++;
    LIST_INSERT_HEAD(&q->memberships, m, link);
    return 0;
}

int mcast_group_attach(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_mcast_req *r = rq;
    struct device *d = s->device;
    char text[ADDR_TEXT_MAX];
    struct client_qp *q;
    int rc = check(s, r, rp, &q);

    if (rc)
        return rc;
    if (d->limits.max_mcast_grp == 0)
        return control_fail(rp, -EOPNOTSUPP, "the device has no multicast groups");
    if (find_membership(q, r->gid))
        return 0;
    struct mcast_group *g = find(d, r->gid);
    if (!g && d->num_groups >= d->limits.max_mcast_grp)
        return control_fail(rp, -ENOMEM, "no more than %u multicast groups on a device", d->limits.max_mcast_grp);
    if (g && g->members >= d->limits.max_mcast_qp)
        return control_fail(rp, -ENOMEM, "no more than %u queue pairs in a multicast group", d->limits.max_mcast_qp);
    rc = g ? 0 : join(s, r->gid, rp, &g);
    if (rc)
        return control_explain(rp, rc, "can't join multicast group %s on %s: %s", gid_text(r->gid, text),
                               d->netdev.name, strerror(-rc));
    rc = attach(q, g);
    if (rc) {
        leave_if_empty(g);
        return control_fail(rp, rc, "the device has no room for another member");
    }
    return 0;
}

int mcast_group_detach(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_mcast_req *r = rq;
    struct client_qp *q;
    int rc = check(s, r, rp, &q);

    if (rc)
        return rc;
    struct membership *m = find_membership(q, r->gid);
    if (!m)
        return control_fail(rp, -EINVAL, "queue pair 0x%06x is not in that group", r->qpn);
    mcast_detach(q->qp, r->gid);
    leave(m);
    return 0;
}
