// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/status.h"

#include "daemon/base/json.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/path_check.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"
#include "daemon/status/object_status.h"
#include "daemon/status/qp_status.h"
#include "daemon/status/usage_status.h"

static json_t *device_counters(const struct device *d)
{
    json_t *o = json_object();

    counter_add_engine(o, engine_counters(d->engine), true);
#define X(name, text) json_object_set_new(o, #name, json_number(d->io.name));
    IO_COUNTERS(X)
#undef X
#define X(name, text) json_object_set_new(o, #name, json_number(d->fault.counters.name));
    FAULT_COUNTERS(X)
#undef X
    return o;
}

/* The lists that a session's objects are added to. */
struct lists {
    const struct user *user;
    json_t *sessions, *qps, *srqs, *cqs, *comp_cntrs, *mrs, *mws, *xrcds;
};

static void add_qp(void *obj, void *list)
{
    json_array_append_new(list, qp_status(obj));
}

static void add_srq(void *obj, void *list)
{
    json_array_append_new(list, srq_status(obj));
}

static void add_cq(void *obj, void *list)
{
    json_array_append_new(list, cq_status(obj));
}

static void add_comp_cntr(void *obj, void *list)
{
    json_array_append_new(list, comp_cntr_status(obj));
}

static void add_mr(void *obj, void *list)
{
    json_array_append_new(list, mr_status(obj));
}

static void add_mw(void *obj, void *list)
{
    json_array_append_new(list, mw_status(obj));
}

static void add_xrcd(void *obj, void *list)
{
    json_array_append_new(list, xrcd_status(obj));
}

/* Adds the domain of a session's handle, unless another handle of it was added before. */
static void add_opened_xrcd(void *obj, void *list)
{
    const struct xrcd *x = ((const struct xrcd_open *)obj)->xrcd;
    const json_t *o;
    size_t i;

    json_array_foreach ((json_t *)list, i, o) {
        if (json_integer_value(json_object_get(o, "xrcd")) == (json_int_t)x->number)
            return;
    }
    json_array_append_new(list, xrcd_status(x));
}

/* Adds an XRC target if one of the user's sessions has it open. */
static void add_target(void *obj, void *lists)
{
    const struct client_qp *q = obj;
    const struct lists *l = lists;
    const struct target_open *t;
    bool sees = l->user->administers;

    TAILQ_FOREACH (t, &q->openers, client_qp_link)
        sees = sees || user_sees(l->user, t->session->cred.uid);
    if (sees)
        add_qp(obj, l->qps);
}

static void add_session(const struct session *s, struct lists *l)
{
    json_t *o = json_object();

    json_object_set_new(o, "session", json_number(s->number));
    json_object_set_new(o, "pid", json_integer(s->cred.pid));
    json_object_set_new(o, "uid", json_number(s->cred.uid));
    json_object_set_new(o, "comm", json_string(s->comm));
    json_object_set_new(o, "memory", json_string(client_mem_path_name(s->client_mem->path)));
    json_object_set_new(o, "pds", json_number(s->pds.count));
    json_object_set_new(o, "mrs", json_number(s->mrs.count));
    json_object_set_new(o, "mws", json_number(s->mws.count));
    json_object_set_new(o, "channels", json_number(s->channels.count));
    json_object_set_new(o, "cqs", json_number(s->cqs.count));
    json_object_set_new(o, "comp_cntrs", json_number(s->comp_cntrs.count));
    json_object_set_new(o, "srqs", json_number(s->srqs.count));
    json_object_set_new(o, "qps", json_number(s->qps.count));
    json_object_set_new(o, "xrcds", json_number(s->xrcds.count));
    json_object_set_new(o, "targets", json_number(s->num_targets));
    json_array_append_new(l->sessions, o);
    handles_each(&s->qps, add_qp, l->qps);
    handles_each(&s->srqs, add_srq, l->srqs);
    handles_each(&s->cqs, add_cq, l->cqs);
    handles_each(&s->comp_cntrs, add_comp_cntr, l->comp_cntrs);
    handles_each(&s->mrs, add_mr, l->mrs);
    handles_each(&s->mws, add_mw, l->mws);
    if (!l->user->administers)
        handles_each(&s->xrcds, add_opened_xrcd, l->xrcds);
}

static json_t *groups_json(const struct device *d)
{
    json_t *list = json_array();
    const struct mcast_group *g;

    TAILQ_FOREACH (g, &d->groups, link)
        json_array_append_new(list, mcast_group_status(g));
    return list;
}

/* The entries of the GID table that have an address. */
static json_t *gids_json(const struct gid_table *t)
{
    json_t *list = json_array();
    char address[ADDR_TEXT_MAX], gid[ADDR_TEXT_MAX];

    for (unsigned i = 0; i < t->n; i++) {
        const struct gid_entry *e = gid_table_at(t, i);

        if (e)
            json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "index", (int)i, "gid", gid_text(e->gid, gid),
                                                  "address", addr_text(&e->addr, address)));
    }
    return list;
}

json_t *status_device(struct device *d, const struct user *u)
{
    struct lists l = {.user = u,
                      .sessions = json_array(),
                      .qps = json_array(),
                      .srqs = json_array(),
                      .cqs = json_array(),
                      .comp_cntrs = json_array(),
                      .mrs = json_array(),
                      .mws = json_array(),
                      .xrcds = json_array()};
    char text[ADDR_TEXT_MAX];
    const struct session *s;
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(d->name));
    json_object_set_new(o, "address", json_string(addr_text(&d->addr, text)));
    json_object_set_new(o, "gid", json_string(gid_text(d->gid, text)));
    json_object_set_new(o, "gids", gids_json(&d->gids));
    json_object_set_new(o, "guid", json_hex(d->guid));
    json_object_set_new(o, "netdev", json_string(d->netdev.name));
    json_object_set_new(o, "port", json_string(d->netdev.up ? "active" : "down"));
    json_object_set_new(o, "mtu", json_number(128u << d->active_mtu));
    json_object_set_new(o, "gso", json_string(udp_gso_state(&d->udp)));
    json_object_set_new(o, "loopback", json_string(d->settings->loopback_wire ? "wire" : "engine"));
    json_object_set_new(o, "ecn", json_string(d->settings->ecn ? "on" : "off"));
    json_object_set_new(o, "rcvbuf", json_number(d->udp.rcvbuf));
    json_object_set_new(o, "sndbuf", json_number(d->udp.sndbuf));
    json_object_set_new(o, "peer_window", json_number(d->config.peer_window_bytes));
    json_object_set_new(o, "window_pkts", json_number(d->config.window_pkts));
    json_object_set_new(o, "usage", usage_json(d));
    json_object_set_new(o, "counters", device_counters(d));
    counter_name_add(o, engine_counters(d->engine), &d->io, true);
    TAILQ_FOREACH (s, &d->sessions, link) {
        if (user_sees(u, s->cred.uid))
            add_session(s, &l);
    }
    handles_each(&d->targets, add_target, &l);
    if (u->administers)
        handles_each(&d->xrcds, add_xrcd, l.xrcds);
    json_object_set_new(o, "sessions", l.sessions);
    json_object_set_new(o, "qps", l.qps);
    json_object_set_new(o, "srqs", l.srqs);
    json_object_set_new(o, "xrcds", l.xrcds);
    json_object_set_new(o, "cqs", l.cqs);
    json_object_set_new(o, "comp_cntrs", l.comp_cntrs);
    json_object_set_new(o, "mrs", l.mrs);
    json_object_set_new(o, "mws", l.mws);
    json_object_set_new(o, "groups", groups_json(d));
    json_object_set_new(o, "connectivity", u->administers ? path_check_json(d) : json_array());
    return o;
}
