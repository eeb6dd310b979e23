// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/base/log.h"
#include "daemon/cm/cm_status.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/ping.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/status/json_memfd.h"
#include "daemon/status/layout_status.h"
#include "daemon/status/object_walk.h"
#include "daemon/status/status.h"
#include "daemon/status/tm_status.h"
#include "daemon/threads/fd_closer.h"
#include "pumice/version.h"

/* Attaches the document to the reply and releases it. */
static int send_document(json_t *root, struct control_reply *rp)
{
    int fd = root ? json_memfd(root) : -ENOMEM;

    json_decref(root);
    if (fd < 0)
        return control_fail(rp, fd, "the daemon cannot write its status: %s", strerror(-fd));
    control_attach(rp, fd);
    return 0;
}

static json_t *cm_json(const struct query_sources *s, const struct user *u)
{
    const char *names[PM_DEVICES_MAX];

    for (unsigned i = 0; i < s->devices->n; i++)
        names[i] = s->devices->device[i]->name;
    object_walk_lock(); /* the tables of handles have one walk at a time */
    struct cm_snapshot *snapshot = cm_snapshot_take(s->cm, u, WALK_WAIT_NS);
    object_walk_unlock();
    json_t *cm = cm_status_json(snapshot, names, s->devices->n);
    cm_snapshot_free(snapshot);
    return cm;
}

/* Adds the objects of the user to a document. */
static void add_objects(const struct query_sources *s, const struct user *u, json_t *root)
{
    json_t *devices = json_array(), *cm = cm_json(s, u);

    for (unsigned i = 0; i < s->devices->n; i++)
        json_array_append_new(devices, status_device(s->devices->device[i], u));
    cm_status_add_programs(cm, devices);
    json_object_set_new(root, "cm", cm);
    json_object_set_new(root, "devices", devices);
}

json_t *query_objects(void *sources, const struct user *u)
{
    json_t *root = json_object();

    add_objects(sources, u, root);
    return root;
}

/* The quotas that this user may see. */
static json_t *quotas_json(const struct device_set *s, struct quota *quota, const struct user *u)
{
    json_t *list = json_array();
    size_t n;
    struct quota_row *row = quota_rows(quota, &n);

    for (size_t i = 0; i < n; i++) {
        const struct quota_row *r = &row[i];
        json_t *o;

        if (!user_sees(u, r->uid))
            continue;
        o = json_object();
        json_object_set_new(o, "uid", json_number(r->uid));
        json_object_set_new(o, "kind", json_string(quota_kind_name(r->kind)));
        json_object_set_new(o, "device", r->device < 0 ? json_null() : json_string(s->device[r->device]->name));
        json_object_set_new(o, "used", json_number(r->used));
        json_object_set_new(o, "limit", r->limit == QUOTA_NONE ? json_null() : json_number(r->limit));
        json_object_set_new(o, "refused", json_number(r->refused));
        json_array_append_new(list, o);
    }
    free(row);
    return list;
}

json_t *query_daemon(const struct device_set *s, struct quota *quota, const struct control_turns *turns,
                     const struct user *u, const struct watchdog *w, const char *socket, uint64_t started)
{
    char shows[64] = "the objects of all users";

    if (!u->administers)
        snprintf(shows, sizeof(shows), "only the objects of uid %u", (unsigned)u->uid);
    json_t *root =
        json_pack("{s:s, s:i, s:i, s:s, s:f, s:s, s:s, s:s}", "version", PUMICE_VERSION, "pid", (int)getpid(), "uid",
                  (int)geteuid(), "socket", socket, "uptime_s", (double)(clock_ns() - started) / 1e9, "fault", s->fault,
                  "fault_script", s->script, "shows", shows);
    if (u->administers) /* QP numbers may follow from the seed */
        json_object_set_new(root, "seed", json_integer((json_int_t)s->seed));
    json_object_set_new(root, "quotas", quotas_json(s, quota, u));
    json_object_set_new(root, "control", control_turns_json(turns, u));
    const struct sandbox_state sandbox = sandbox_state();
    json_object_set_new(root, "sandbox", json_string(sandbox.sandbox));
    json_object_set_new(root, "seccomp", json_string(sandbox.seccomp));
    json_object_set_new(root, "landlock", json_string(sandbox.landlock));
    const struct fd_closer_counts closing = fd_closer_counts();
    json_object_set_new(root, "log_dropped", json_number(log_dropped()));
    json_object_set_new(root, "fds_closing", json_number(closing.waiting));
    json_object_set_new(root, "fds_stuck", json_number(closing.stuck));
    json_object_set_new(root, "threads", watchdog_json(w, u->administers));
    return root;
}

int query_status(const struct query_sources *s, const struct user *u, json_t *daemon, struct control_reply *rp)
{
    add_objects(s, u, daemon);
    return send_document(daemon, rp);
}

int query_tags(struct device_set *s, const struct user *u, const struct pm_tm_req *r, struct control_reply *rp)
{
    json_t *devices = json_array();

    for (unsigned i = 0; i < s->n; i++)
        json_array_append_new(devices, tm_status_device(s->device[i], u, r));
    return send_document(json_pack("{s:o}", "devices", devices), rp);
}

int query_layouts(struct device_set *s, const struct user *u, const struct pm_layout_req *r, struct control_reply *rp)
{
    if (r->pieces > PM_LAYOUT_PIECES)
        return control_fail(rp, -EINVAL, "too many pieces: at most %u in one request", PM_LAYOUT_PIECES);
    json_t *devices = json_array();
    for (unsigned i = 0; i < s->n; i++)
        json_array_append_new(devices, layout_status_device(s->device[i], u, r));
    return send_document(json_pack("{s:o}", "devices", devices), rp);
}

struct check_call {
    struct mailbox_call call; /* first */
    struct device *device;
    struct pm_check_req request;
    struct control_reply reply;
};

static void run_check(struct mailbox_call *call)
{
    struct check_call *c = (struct check_call *)(void *)call;

    c->reply.status = ping_request(c->device, &c->request, &c->reply);
}

static void drop_call(struct mailbox_call *call)
{
    free(call);
}

int query_check(struct device_set *s, const struct pm_check_req *r, struct control_reply *rp)
{
    if (r->device >= s->n)
        return control_fail(rp, -ENODEV, "no device %u: the daemon has %u", r->device, s->n);
    struct check_call *c = calloc(1, sizeof(*c));
    if (!c)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    c->call = (struct mailbox_call){.run = run_check, .drop = drop_call};
    c->device = s->device[r->device];
    c->request = *r;
    enum mailbox_result result = device_do(c->device, &c->call);
    if (result != MAILBOX_DONE) {
        if (result == MAILBOX_LATE)
            free(c);
        return device_is_late(s->device[r->device], rp);
    }
    *rp = c->reply;
    free(c);
    return rp->status;
}

struct counter_call {
    struct mailbox_call call; /* first */
    struct device *device;
    struct engine_counters engine;
    struct io_counters io;
};

/* Copies the counters, so that the device's thread is held only for the time of the copy. */
static void run_counter(struct mailbox_call *call)
{
    struct counter_call *c = (struct counter_call *)(void *)call;

    c->engine = *engine_counters(c->device->engine);
    c->io = c->device->io;
}

static struct device *device_named(const struct device_set *s, const char *name)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (strcmp(s->device[i]->name, name) == 0)
            return s->device[i];
    }
    return NULL;
}

int query_counter(struct device_set *s, const struct pm_counter_req *r, struct control_reply *rp)
{
    uint64_t value;

    if (!memchr(r->device, 0, sizeof(r->device)) || !memchr(r->file, 0, sizeof(r->file)))
        return control_fail(rp, -EINVAL, "the device or counter name is not terminated by a NUL");
    struct device *d = device_named(s, r->device);
    if (!d)
        return control_fail(rp, -ENODEV, "no device %s", r->device);
    struct counter_call *c = calloc(1, sizeof(*c));
    if (!c)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    c->call = (struct mailbox_call){.run = run_counter, .drop = drop_call};
    c->device = d;
    enum mailbox_result result = device_do(d, &c->call);
    if (result == MAILBOX_GIVEN_UP)
        return device_is_late(d, rp);
    bool known = result == MAILBOX_DONE && counter_name_value(r->file, &c->engine, &c->io, &value);
    free(c);
    if (result == MAILBOX_LATE)
        return device_is_late(d, rp);
    if (!known)
        return control_fail(rp, -ENOENT, "no counter %s", r->file);
    ((struct pm_counter_rep *)control_payload(rp, sizeof(struct pm_counter_rep)))->value = value;
    return 0;
}
