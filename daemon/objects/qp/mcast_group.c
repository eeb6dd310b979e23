// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/mcast_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "wire/gid.h"

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct mcast_group *g = w->data;

    (void)loop;
    (void)revents;
    g->hot_until = clock_ns() + MCAST_GROUP_HOT_NS; /* the next pass receives from the socket */
}

bool mcast_group_is_echo(const struct mcast_group *g, const uint8_t src_gid[16])
{
    const struct device *d = g->device;

    return device_keeps_inside(d, src_gid);
}

static struct mcast_group *find(const struct device *d, const uint8_t gid[16])
{
    struct mcast_group *g;

    TAILQ_FOREACH (g, &d->groups, link) {
        if (memcmp(g->gid, gid, sizeof(g->gid)) == 0)
            return g;
    }
    return NULL;
}

static int join(struct device *d, const uint8_t gid[16], struct mcast_group **out)
{
    struct mcast_group *g = calloc(1, sizeof(*g));
    union addr addr;

    if (!g)
        return -ENOMEM;
    g->device = d;
    g->fd = -1;
    memcpy(g->gid, gid, sizeof(g->gid));
    if (d->udp.fd >= 0) {
        g->fd = udp_join(&d->udp, gid, &addr);
        if (g->fd < 0) {
            int rc = g->fd;

            free(g);
            return rc;
        }
        peers_init(&g->peers, &addr, true);
        ev_io_init(&g->readable, on_readable, g->fd, EV_READ);
        g->readable.data = g;
        ev_io_start(d->loop, &g->readable);
    }
    TAILQ_INSERT_TAIL(&d->groups, g, link);
    d->num_groups++;
    *out = g;
    return 0;
}

static void leave_if_empty(struct mcast_group *g)
{
    if (g->members)
        return;
    if (g->fd >= 0) {
        ev_io_stop(g->device->loop, &g->readable);
        close(g->fd);
    }
    TAILQ_REMOVE(&g->device->groups, g, link);
    g->device->num_groups--;
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
    if (find_membership(q, r->gid))
        return 0;
    struct mcast_group *g = find(d, r->gid);
    if (!g && d->num_groups >= DEVICE_MAX_MCAST_GRP)
        return control_fail(rp, -ENOMEM, "no more than %u multicast groups on a device", DEVICE_MAX_MCAST_GRP);
    if (g && g->members >= DEVICE_MAX_MCAST_QP)
        return control_fail(rp, -ENOMEM, "no more than %u queue pairs in a multicast group", DEVICE_MAX_MCAST_QP);
    rc = g ? 0 : join(d, r->gid, &g);
    if (rc)
        return control_fail(rp, rc, "can't join multicast group %s on %s: %s", gid_text(r->gid, text), d->netdev.name,
                            strerror(-rc));
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
