// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/status.h"

#include <stdlib.h>

#include "daemon/base/activity.h"
#include "daemon/base/json.h"
#include "daemon/base/slice.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/path_check.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/port.h"
#include "daemon/session/session.h"
#include "daemon/status/object_status.h"
#include "daemon/status/object_walk.h"
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
#define X(name, text) json_object_set_new(o, #name, json_number(d->unkind.counters.name));
    UNKIND_COUNTERS(X)
#undef X
    return o;
}

/* Lists of the device's objects. */
#define LISTS(X)                                                                                                       \
    X(sessions)                                                                                                        \
    X(pds)                                                                                                             \
    X(qps)                                                                                                             \
    X(srqs)                                                                                                            \
    X(xrcds)                                                                                                           \
    X(cqs)                                                                                                             \
    X(comp_cntrs)                                                                                                      \
    X(mrs)                                                                                                             \
    X(mws)                                                                                                             \
    X(groups)                                                                                                          \
    X(connectivity)
struct lists {
#define X(name) json_t *name;
    LISTS(X)
#undef X
};

/* The parts of a status, in this order. */
enum part {
    PART_HEAD, /* the device itself */
    PART_SESSIONS, /* sessions and their objects */
    PART_TARGETS, /* XRC targets */
    PART_XRCDS,
    PART_GROUPS,
    PART_PATHS,
    PART_USAGE,
    PART_NONE, /* the status is complete */
};

/* Most objects of one slice. A copy of a QP's values takes about a microsecond. */
#define SLICE_QPS 128u
#define SLICE_OBJECTS 512u

/* A status that is being made. While a slice runs, all of it belongs to the device's thread, and otherwise to the thread
 * that asks. The objects of sessions are the many, so the device's thread only copies their values, and the thread
 * that asks makes the JSON between two slices. */
struct status_job {
    struct slice_job job; /* first: job_of */
    struct device *device;
    json_t *root;
    struct lists lists;
    enum part part;
    struct object_walk walk;
    json_t *seen; /* XRC domains that are in the list: { number: null } */
    uint32_t next; /* number of the next group, index of the next path */
    struct usage usage;
    uint64_t sent; /* packets of connected QPs */
    unsigned qps; /* of this slice */
    struct qp_status qp[SLICE_QPS];
    unsigned objects; /* of this slice */
    struct object_status object[SLICE_OBJECTS];
};

/* --- in the device's thread -------------------------------------------------------------------- */

static void add_session(void *ctx, const struct session *s)
{
    struct status_job *c = ctx;
    json_t *o = json_object();

    json_object_set_new(o, "session", json_number(s->number));
    json_object_set_new(o, "pid", json_integer(s->cred.pid));
    json_object_set_new(o, "uid", json_number(s->cred.uid));
    json_object_set_new(o, "comm", json_string(s->comm));
    json_object_set_new(o, "memory", json_string(client_mem_path_name(s->client_mem->path)));
    json_object_set_new(o, "ending", json_boolean(s->ending));
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
    json_array_append_new(c->lists.sessions, o);
}

/* False: there is no room for another QP in this slice. */
static bool take_qp(struct status_job *c, const struct client_qp *q)
{
    qp_status_take(q, &c->qp[c->qps++]);
    return c->qps < SLICE_QPS;
}

static bool take_object(struct status_job *c, enum walk_table table, const void *obj)
{
    object_status_take(table, obj, &c->object[c->objects++]);
    return c->objects < SLICE_OBJECTS;
}

static bool add_object(void *ctx, const struct session *s, enum walk_table table, void *obj)
{
    struct status_job *c = ctx;

    (void)s;
    if (table == WALK_QPS)
        return take_qp(c, obj);
    return take_object(c, table, table == WALK_XRCDS ? ((const struct xrcd_open *)obj)->xrcd : obj);
}

/* The prefixes of the addresses that packets may come from; empty: all. */
static json_t *peers_json(const struct peer_list *peers)
{
    json_t *list = json_array();
    char text[PEER_PREFIX_TEXT_MAX];

    for (unsigned i = 0; i < peers->n; i++)
        json_array_append_new(list, json_string(peer_prefix_text(&peers->prefix[i], text)));
    return list;
}

/* The entries of the GID table that have an address, with the index of RoCE v2 that programs have for them. */
static json_t *gids_json(const struct device *d)
{
    const struct gid_table *t = &d->gids;
    json_t *list = json_array();
    char address[ADDR_TEXT_MAX], gid[ADDR_TEXT_MAX];

    for (unsigned i = 0; i < t->n; i++) {
        const struct gid_entry *e = gid_table_at(t, i);

        if (e)
            json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "index", (int)device_gid_index(d, i), "gid",
                                                  gid_text(e->gid, gid), "address", addr_text(&e->addr, address)));
    }
    return list;
}

static void add_head(struct status_job *c)
{
    struct device *d = c->device;
    char text[ADDR_TEXT_MAX], kinds[UNKIND_TEXT_MAX];
    json_t *o = c->root;

    json_object_set_new(o, "answers", json_true());
    json_object_set_new(o, "address", json_string(addr_text(&d->addr, text)));
    json_object_set_new(o, "gid", json_string(gid_text(d->gid, text)));
    json_object_set_new(o, "gids", gids_json(d));
    json_object_set_new(o, "guid", json_hex(d->guid));
    json_object_set_new(o, "netdev", json_string(d->netdev.name));
    json_object_set_new(o, "profile", json_string(profile_name(d->settings->profile)));
    json_object_set_new(o, "port", json_string(port_is_up(d) ? "active" : "down"));
    json_object_set_new(o, "link_fault", json_boolean(d->link_down));
    json_object_set_new(o, "mtu", json_number(128u << d->active_mtu));
    json_object_set_new(o, "gso", json_string(udp_gso_state(&d->udp)));
    json_object_set_new(o, "loopback", json_string(d->settings->loopback_wire ? "wire" : "engine"));
    json_object_set_new(o, "ecn", json_string(d->settings->ecn ? "on" : "off"));
    if (d->netem) {
        json_object_set_new(o, "net_first_mark", json_number(netem_plan_first_mark(&d->netem->plan)));
        json_object_set_new(o, "rate_burst", json_number(DCQCN_BURST_MOST));
    }
    unkind_text(d->unkind.kinds, kinds);
    json_object_set_new(o, "unkind", json_string(kinds));
    json_object_set_new(o, "e2e_credits", json_string(d->config.e2e_credits ? "on" : "off"));
    json_object_set_new(o, "selective", json_string(d->config.selective ? "on" : "off"));
    json_object_set_new(o, "peers", peers_json(&d->peers));
    json_object_set_new(o, "rcvbuf", json_number(d->udp.rcvbuf));
    json_object_set_new(o, "sndbuf", json_number(d->udp.sndbuf));
    json_object_set_new(o, "peer_window", json_number(d->config.peer_window_bytes));
    json_object_set_new(o, "window_pkts", json_number(d->config.window_pkts));
    json_object_set_new(o, "max_resends", json_number(d->config.max_resends));
    json_object_set_new(o, "ack_delay_us", json_number(d->config.ack_delay_ns / NS_PER_US));
    json_object_set_new(o, "min_timeout_us", json_number(d->config.min_timeout_ns / NS_PER_US));
    json_object_set_new(o, "control", control_turns_json(&d->control_turns, &c->walk.user));
    json_object_set_new(o, "counters", device_counters(d));
    counter_name_add(o, engine_counters(d->engine), &d->io, true);
}

/* The parts below do one step each. They return false at the end of the part. */

/* May the user see an XRC target? Yes if one of the user's sessions has it open. */
static bool sees_target(const struct user *u, const struct client_qp *q)
{
    const struct target_open *t;
    bool sees = u->administers;

    TAILQ_FOREACH (t, &q->openers, client_qp_link)
        sees = sees || user_sees(u, t->session->cred.uid);
    return sees;
}

static bool step_targets(struct status_job *c, bool *room)
{
    const struct client_qp *q = handles_walk_next(&c->device->targets);

    if (q && sees_target(&c->walk.user, q))
        *room = take_qp(c, q);
    return q != NULL;
}

/* The walk over the sessions of other users than the administrator has found those that these have open. */
static bool step_xrcds(struct status_job *c, bool *room)
{
    const struct xrcd *x = c->walk.user.administers ? handles_walk_next(&c->device->xrcds) : NULL;

    if (x)
        *room = take_object(c, WALK_XRCDS, x);
    return x != NULL;
}

static bool step_groups(struct status_job *c)
{
    const struct mcast_group *g;

    TAILQ_FOREACH (g, &c->device->groups, link) {
        if (g->number < c->next)
            continue;
        json_array_append_new(c->lists.groups, mcast_group_status(g));
        c->next = g->number + 1;
        return true;
    }
    return false;
}

static bool step_paths(struct status_job *c)
{
    json_t *path = c->walk.user.administers ? path_check_json(c->device, c->next++) : NULL;

    if (path)
        json_array_append_new(c->lists.connectivity, path);
    return path != NULL;
}

static void next_part(struct status_job *c)
{
    c->part++;
    c->next = 0;
    if (c->part == PART_TARGETS)
        handles_walk_begin(&c->device->targets);
    if (c->part == PART_XRCDS)
        handles_walk_begin(&c->device->xrcds);
}

/* One step of the present part. False: the part has ended. */
static bool step(struct status_job *c, const struct slice *slice, bool *room)
{
    switch (c->part) {
    case PART_HEAD:
        add_head(c);
        return false;
    case PART_SESSIONS:
        *room = object_walk_slice(&c->walk, c->device, slice);
        return !*room;
    case PART_TARGETS:
        return step_targets(c, room);
    case PART_XRCDS:
        return step_xrcds(c, room);
    case PART_GROUPS:
        return step_groups(c);
    case PART_PATHS:
        return step_paths(c);
    case PART_USAGE:
        /* A QP that was destroyed after its turn counts twice, here and in c->sent. Taken before the QPs, the packets
         * of one that was destroyed before its turn would be missing, and `pumice run` would say that a job did not use
         * the device. */
        c->usage = c->device->usage;
        return false;
    case PART_NONE:
        break;
    }
    return false;
}

static struct status_job *job_of(struct slice_job *job)
{
    return (struct status_job *)(void *)job;
}

static void run_slice(struct slice_job *job)
{
    struct slice slice = slice_begin();
    struct status_job *c = job_of(job);
    bool room = true;

    activity_begin(&c->device->activity, "STATUS", 0, 0);
    while (c->part != PART_NONE && room && !slice_is_over(&slice)) {
        if (!step(c, &slice, &room))
            next_part(c);
    }
    activity_done(&c->device->activity);
}

/* --- in the thread that asks ------------------------------------------------------------------- */

static void free_job(struct slice_job *job)
{
    struct status_job *c = job_of(job);

#define X(name) json_decref(c->lists.name);
    LISTS(X)
#undef X
    json_decref(c->seen);
    json_decref(c->root);
    free(c);
}

static struct status_job *new_job(struct device *d, const struct user *u)
{
    struct status_job *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->job.run = run_slice;
    c->job.drop = free_job;
    c->device = d;
    c->walk = (struct object_walk){.on_session = add_session, .on_object = add_object, .ctx = c, .user = *u};
    c->walk.tables = (1u << WALK_TABLES) - 1;
    if (u->administers)
        c->walk.tables &= ~(1u << WALK_XRCDS); /* step_xrcds has all */
    c->seen = json_object();
    c->root = json_pack("{s:s}", "name", d->name);
#define X(name) c->lists.name = json_array();
    LISTS(X)
#undef X
    return c;
}

/* A domain may come once for each handle. */
static bool is_new(struct status_job *c, const struct object_status *v)
{
    char number[16];

    if (v->table != WALK_XRCDS)
        return true;
    snprintf(number, sizeof(number), "%u", v->xrcd.number);
    if (json_object_get(c->seen, number))
        return false;
    json_object_set_new(c->seen, number, json_null());
    return true;
}

/* The objects of the last slice. */
static void add_objects(struct status_job *c)
{
    json_t *const lists[WALK_TABLES] = {
        [WALK_PDS] = c->lists.pds,
        [WALK_QPS] = c->lists.qps,
        [WALK_SRQS] = c->lists.srqs,
        [WALK_CQS] = c->lists.cqs,
        [WALK_COMP_CNTRS] = c->lists.comp_cntrs,
        [WALK_MRS] = c->lists.mrs,
        [WALK_MWS] = c->lists.mws,
        [WALK_XRCDS] = c->lists.xrcds,
    };

    for (unsigned i = 0; i < c->qps; i++) {
        json_array_append_new(lists[WALK_QPS], qp_status_json(&c->qp[i]));
        if (!c->qp[i].is_datagram)
            c->sent += c->qp[i].info.counters.sent_pkts;
    }
    for (unsigned i = 0; i < c->objects; i++) {
        if (is_new(c, &c->object[i]))
            json_array_append_new(lists[c->object[i].table], object_status_json(&c->object[i]));
    }
    c->qps = c->objects = 0;
}

/* The device's thread does not answer: the little that other threads know. The lists are there, so that readers need no
 * case of their own. */
static json_t *silent_device(const struct device *d)
{
    json_t *o = json_pack("{s:s, s:b, s:{}}", "name", d->name, "answers", 0, "counters");

#define X(name) json_object_set_new(o, #name, json_array());
    LISTS(X)
#undef X
    return o;
}

static json_t *make_status(struct device *d, const struct user *u)
{
    struct status_job *c = object_walk_is_hopeless(d) ? NULL : new_job(d, u);

    if (!c)
        return silent_device(d);
    while (c->part != PART_NONE) {
        if (!device_slice(d, &c->job, WALK_WAIT_NS))
            return silent_device(d);
        add_objects(c);
        if (c->part == PART_SESSIONS)
            object_walk_pause(&c->walk);
    }
    json_t *o = json_incref(c->root);
    json_object_set_new(o, "usage", usage_json(&c->usage, c->sent));
#define X(name) json_object_set(o, #name, c->lists.name);
    LISTS(X)
#undef X
    free_job(&c->job);
    return o;
}

json_t *status_device(struct device *d, const struct user *u)
{
    object_walk_lock();
    json_t *o = make_status(d, u);
    object_walk_unlock();
    return o;
}
