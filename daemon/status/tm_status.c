// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/tm_status.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/objects/srq/tm_srq.h"
#include "daemon/session/session.h"
#include "daemon/status/object_list.h"

json_t *tm_status_summary(const struct tm_info *i, uint32_t buffers)
{
    json_t *o = json_object(), *counters = json_object();

    json_object_set_new(o, "in_sync", json_boolean(i->in_sync));
    json_object_set_new(o, "hw_cnt", json_number(i->hw_cnt));
    json_object_set_new(o, "sw_cnt", json_number(i->sw_cnt));
    json_object_set_new(o, "inflight", json_number(i->inflight));
    json_object_set_new(o, "active", json_number(i->active));
    json_object_set_new(o, "pending", json_number(i->pending));
    json_object_set_new(o, "consumed", json_number(i->consumed));
    json_object_set_new(o, "masks", json_number(i->masks));
    json_object_set_new(o, "max_num_tags", json_number(i->max_num_tags));
    json_object_set_new(o, "max_ops", json_number(i->max_ops));
    json_object_set_new(o, "profile", json_string(tm_profile(i->profile)->name));
    json_object_set_new(o, "buffers", json_number(buffers));
#define X(name, text) json_object_set_new(counters, #name, json_number(i->counters.name));
    TM_COUNTERS(X)
#undef X
    json_object_set_new(o, "counters", counters);
    return o;
}

/* --- copying, in the device's thread ----------------------------------------------------------- */

struct entry_values {
    uint64_t tag, mask, recv_wr_id, posted;
    uint32_t handle, capacity;
    bool active;
};

/* The values of one list. */
struct list_values {
    struct tm_info info;
    uint32_t srq, session, qps, buffers;
    int pid;
    char comm[16];
    uint32_t entries, events;
    uint64_t first_event; /* the number of event[0] */
    struct entry_values entry[TM_MAX_TAGS];
    struct tm_event event[TM_SRQ_TRACE_SLOTS];
};

/* A request for the lists of a device. A slice copies at most 4095 entries and the trace, which takes less than a
 * millisecond. */
struct tm_request {
    struct object_list list; /* first: copy_list casts */
    struct pm_tm_req rq;
    struct list_values values;
};

static void take_entries(const struct tag_list *tm, uint32_t most, struct list_values *v)
{
    const struct tm_entry *e = NULL;

    v->entries = 0;
    while (v->entries < most && v->entries < TM_MAX_TAGS && (e = tm_next_entry(tm, e)) != NULL)
        v->entry[v->entries++] = (struct entry_values){
            .tag = e->tag,
            .mask = e->mask,
            .recv_wr_id = e->recv_wr_id,
            .posted = e->posted,
            .handle = e->handle,
            .capacity = e->capacity,
            .active = tm_is_active(tm, e),
        };
}

static void take_events(const struct tag_list *tm, uint32_t most, struct list_values *v)
{
    uint64_t end = tm_trace_end(tm);

    if (most > TM_SRQ_TRACE_SLOTS)
        most = TM_SRQ_TRACE_SLOTS;
    v->events = 0;
    v->first_event = end > most ? end - most : 0;
    /* The trace has each event from the first one on: it keeps as many as there are slots. */
    for (uint64_t n = v->first_event; n < end && tm_trace_get(tm, n, &v->event[v->events]); n++)
        v->events++;
}

static bool copy_list(struct object_list *l, const struct session *s, const void *obj)
{
    const struct client_srq *q = obj;
    struct tm_request *r = (struct tm_request *)(void *)l;
    struct list_values *v = &r->values;

    if (!q->tm.list)
        return false;
    tm_info(q->tm.list, &v->info);
    v->buffers = srq_posted(q->srq);
    v->srq = q->handle;
    v->session = s->number;
    v->pid = s->cred.pid;
    memcpy(v->comm, s->comm, sizeof(v->comm));
    v->qps = q->users;
    take_entries(q->tm.list, r->rq.entries, v);
    take_events(q->tm.list, r->rq.events, v);
    return true;
}

/* --- as JSON ----------------------------------------------------------------------------------- */

static json_t *entries_json(const struct list_values *v, uint64_t now)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < v->entries; i++) {
        const struct entry_values *e = &v->entry[i];
        json_t *o = json_object();

        json_object_set_new(o, "handle", json_hex(e->handle));
        json_object_set_new(o, "tag", json_hex(e->tag));
        json_object_set_new(o, "mask", json_hex(e->mask));
        json_object_set_new(o, "bytes", json_number(e->capacity));
        json_object_set_new(o, "recv_wr_id", json_number(e->recv_wr_id));
        json_object_set_new(o, "state", json_string(e->active ? "active" : "pending"));
        json_object_set_new(o, "age_us", json_us_between(e->posted, now));
        json_array_append_new(list, o);
    }
    return list;
}

static bool is_message(uint8_t type)
{
    return type >= TM_EV_MATCH;
}

static json_t *event_json(const struct tm_event *ev, uint64_t n, uint64_t now)
{
    json_t *o = json_object();
    bool adds = ev->type == TM_EV_ADD;

    json_object_set_new(o, "number", json_number(n));
    json_object_set_new(o, "age_us", json_us_between(ev->time, now));
    json_object_set_new(o, "event", json_string(tm_event_name(ev->type)));
    if (is_message(ev->type)) {
        json_object_set_new(o, "qpn", json_number(ev->qpn));
        json_object_set_new(o, "kind", json_string(tm_kind_name(ev->kind)));
    }
    if (adds || ev->kind == TM_KIND_EAGER || ev->kind == TM_KIND_RNDV)
        json_object_set_new(o, "tag", json_hex(ev->tag));
    if (adds) {
        json_object_set_new(o, "mask", json_hex(ev->mask));
        json_object_set_new(o, "active", json_boolean(ev->active));
    }
    if (ev->handle != TM_NO_HANDLE)
        json_object_set_new(o, "handle", json_hex(ev->handle));
    if (ev->type == TM_EV_ACTIVATE)
        json_object_set_new(o, "entries", json_number(ev->entries));
    else if (is_message(ev->type))
        json_object_set_new(o, "depth", json_number(ev->entries));
    if (ev->why != TM_WHY_NONE) {
        json_object_set_new(o, "why", json_string(tm_reason_name(ev->why)));
        json_object_set_new(o, "why_text", json_string(tm_reason_text(ev->why)));
    }
    json_object_set_new(o, "hw_cnt", json_number(ev->hw_cnt));
    json_object_set_new(o, "sw_cnt", json_number(ev->sw_cnt));
    json_object_set_new(o, "inflight", json_number(ev->inflight));
    return o;
}

static json_t *events_json(const struct list_values *v, uint64_t now)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < v->events; i++)
        json_array_append_new(list, event_json(&v->event[i], v->first_event + i, now));
    return list;
}

static json_t *list_json(const struct object_list *l)
{
    const struct list_values *v = &((const struct tm_request *)(const void *)l)->values;
    json_t *o = tm_status_summary(&v->info, v->buffers);
    uint64_t now = clock_ns();

    json_object_set_new(o, "srq", json_number(v->srq));
    json_object_set_new(o, "session", json_number(v->session));
    json_object_set_new(o, "pid", json_integer(v->pid));
    json_object_set_new(o, "comm", json_string(v->comm));
    json_object_set_new(o, "qps", json_number(v->qps));
    json_object_set_new(o, "entries", entries_json(v, now));
    json_object_set_new(o, "events", events_json(v, now));
    return o;
}

/* --- asking ------------------------------------------------------------------------------------ */

json_t *tm_status_device(struct device *d, const struct user *u, const struct pm_tm_req *rq)
{
    bool answers;

    object_walk_lock();
    struct tm_request *r = object_walk_is_hopeless(d) ? NULL : calloc(1, sizeof(*r));
    if (r) {
        r->rq = *rq;
        r->list = (struct object_list){.request = "TM", .table = WALK_SRQS, .copy = copy_list, .as_json = list_json};
    }
    json_t *lists = object_list_collect(r ? &r->list : NULL, d, u, &answers);
    object_walk_unlock();
    return json_pack("{s:s, s:b, s:o}", "name", d->name, "answers", answers, "lists", lists);
}
