// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/fd_closer.h"
#include "daemon/base/json.h"
#include "daemon/base/log.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/ping.h"
#include "daemon/status/json_memfd.h"
#include "daemon/status/layout_status.h"
#include "daemon/status/status.h"
#include "daemon/status/tm_status.h"
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

/* Lets a device's thread make a document. */
struct json_call {
    struct mailbox_call call; /* first */
    struct device *device;
    json_t *(*make)(struct device *d, const void *request);
    union {
        struct pm_tm_req tm;
        struct pm_layout_req layout;
    } request; /* a copy, because the main thread may give the call up */
    json_t *json;
};

static void run_json(struct mailbox_call *call)
{
    struct json_call *j = (struct json_call *)(void *)call;

    j->json = j->make(j->device, &j->request);
}

static void drop_json(struct mailbox_call *call)
{
    struct json_call *j = (struct json_call *)(void *)call;

    json_decref(j->json);
    free(j);
}

/* Returns the document of one device. If the device's thread does not answer, the document says so. */
static json_t *ask_one(struct device *d, json_t *(*make)(struct device *d, const void *request), const void *request,
                       size_t len)
{
    struct json_call *j = calloc(1, sizeof(*j));
    json_t *json = NULL;

    if (!j)
        return json_pack("{s:s, s:s}", "name", d->name, "trouble", "the daemon is out of memory");
    j->call = (struct mailbox_call){.run = run_json, .drop = drop_json};
    j->device = d;
    j->make = make;
    if (len)
        memcpy(&j->request, request, len);
    enum mailbox_result result = device_do(d, &j->call);
    if (result == MAILBOX_DONE)
        json = json_incref(j->json);
    if (result != MAILBOX_GIVEN_UP)
        drop_json(&j->call);
    return json ? json
                : json_pack("{s:s, s:s}", "name", d->name, "trouble", "the thread of the device does not answer");
}

static json_t *ask_all(struct device_set *s, json_t *(*make)(struct device *d, const void *request),
                       const void *request, size_t len)
{
    json_t *devices = json_array();

    for (unsigned i = 0; i < s->n; i++)
        json_array_append_new(devices, ask_one(s->device[i], make, request, len));
    return devices;
}

static json_t *make_status(struct device *d, const void *request)
{
    (void)request;
    return status_device(d);
}

json_t *query_devices(void *device_set)
{
    return ask_all(device_set, make_status, NULL, 0);
}

/* The quotas that this user may see. */
static json_t *quotas_json(const struct device_set *s, struct quota *quota, uid_t uid)
{
    json_t *list = json_array();
    size_t n;
    struct quota_row *row = quota_rows(quota, &n);

    for (size_t i = 0; i < n; i++) {
        const struct quota_row *r = &row[i];
        json_t *o;

        if (r->uid != uid && !quota_is_exempt(quota, uid))
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

int query_status(struct device_set *s, struct quota *quota, uid_t uid, const char *socket, uint64_t started,
                 struct control_reply *rp)
{
    struct fd_closer_counts closing = fd_closer_counts();
    json_t *root = json_pack("{s:s, s:i, s:i, s:s, s:f, s:s, s:I}", "version", PUMICE_VERSION, "pid", (int)getpid(),
                             "uid", (int)geteuid(), "socket", socket, "uptime_s", (double)(clock_ns() - started) / 1e9,
                             "fault", s->fault, "seed", (json_int_t)s->seed);

    json_object_set_new(root, "log_dropped", json_number(log_dropped()));
    json_object_set_new(root, "fds_closing", json_number(closing.waiting));
    json_object_set_new(root, "fds_stuck", json_number(closing.stuck));
    json_object_set_new(root, "quotas", quotas_json(s, quota, uid));
    json_object_set_new(root, "devices", query_devices(s));
    return send_document(root, rp);
}

static json_t *make_tags(struct device *d, const void *request)
{
    return tm_status_device(d, request);
}

int query_tags(struct device_set *s, const struct pm_tm_req *r, struct control_reply *rp)
{
    return send_document(json_pack("{s:o}", "devices", ask_all(s, make_tags, r, sizeof(*r))), rp);
}

static json_t *make_layouts(struct device *d, const void *request)
{
    return layout_status_device(d, request);
}

int query_layouts(struct device_set *s, const struct pm_layout_req *r, struct control_reply *rp)
{
    if (r->pieces > PM_LAYOUT_PIECES)
        return control_fail(rp, -EINVAL, "too many pieces: at most %u in one request", PM_LAYOUT_PIECES);
    return send_document(json_pack("{s:o}", "devices", ask_all(s, make_layouts, r, sizeof(*r))), rp);
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
