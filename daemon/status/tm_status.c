// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/tm_status.h"

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/session/session.h"

json_t *tm_status_summary(const struct client_srq *q)
{
    json_t *o = json_object(), *counters = json_object();
    struct tm_info i;

    tm_info(q->tm.list, &i);
    json_object_set_new(o, "in_sync", json_boolean(i.in_sync));
    json_object_set_new(o, "hw_cnt", json_number(i.hw_cnt));
    json_object_set_new(o, "sw_cnt", json_number(i.sw_cnt));
    json_object_set_new(o, "inflight", json_number(i.inflight));
    json_object_set_new(o, "active", json_number(i.active));
    json_object_set_new(o, "pending", json_number(i.pending));
    json_object_set_new(o, "consumed", json_number(i.consumed));
    json_object_set_new(o, "masks", json_number(i.masks));
    json_object_set_new(o, "max_num_tags", json_number(i.max_num_tags));
    json_object_set_new(o, "max_ops", json_number(i.max_ops));
    json_object_set_new(o, "profile", json_string(tm_profile(i.profile)->name));
    json_object_set_new(o, "buffers", json_number(srq_posted(q->srq)));
#define X(name, text) json_object_set_new(counters, #name, json_number(i.counters.name));
    TM_COUNTERS(X)
#undef X
    json_object_set_new(o, "counters", counters);
    return o;
}

static json_t *entries_json(const struct tag_list *tm, uint32_t most, uint64_t now)
{
    const struct tm_entry *e = NULL;
    json_t *list = json_array();

    while (most-- && (e = tm_next_entry(tm, e)) != NULL) {
        json_t *o = json_object();

        json_object_set_new(o, "handle", json_hex(e->handle));
        json_object_set_new(o, "tag", json_hex(e->tag));
        json_object_set_new(o, "mask", json_hex(e->mask));
        json_object_set_new(o, "bytes", json_number(e->capacity));
        json_object_set_new(o, "recv_wr_id", json_number(e->recv_wr_id));
        json_object_set_new(o, "state", json_string(tm_is_active(tm, e) ? "active" : "pending"));
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

static json_t *events_json(const struct tag_list *tm, uint32_t most, uint64_t now)
{
    uint64_t end = tm_trace_end(tm);
    json_t *list = json_array();
    struct tm_event ev;

    for (uint64_t n = end > most ? end - most : 0; n < end; n++) {
        if (tm_trace_get(tm, n, &ev))
            json_array_append_new(list, event_json(&ev, n, now));
    }
    return list;
}

struct call {
    const struct pm_tm_req *rq;
    const struct session *session;
    json_t *lists;
};

static void add_list(void *obj, void *ctx)
{
    const struct client_srq *q = obj;
    const struct call *call = ctx;
    uint64_t now = clock_ns();

    if (!q->tm.list)
        return;
    json_t *o = tm_status_summary(q);
    json_object_set_new(o, "srq", json_number(q->handle));
    json_object_set_new(o, "session", json_number(call->session->number));
    json_object_set_new(o, "pid", json_integer(call->session->cred.pid));
    json_object_set_new(o, "comm", json_string(call->session->comm));
    json_object_set_new(o, "qps", json_number(q->users));
    json_object_set_new(o, "entries", entries_json(q->tm.list, call->rq->entries, now));
    json_object_set_new(o, "events", events_json(q->tm.list, call->rq->events, now));
    json_array_append_new(call->lists, o);
}

json_t *tm_status_device(struct device *d, const struct user *u, const struct pm_tm_req *rq)
{
    struct call call = {.rq = rq, .lists = json_array()};

    TAILQ_FOREACH (call.session, &d->sessions, link) {
        if (!user_sees(u, call.session->cred.uid))
            continue;
        handles_each((struct handles *)&call.session->srqs, add_list, &call);
    }
    return json_pack("{s:s, s:o}", "name", d->name, "lists", call.lists);
}
