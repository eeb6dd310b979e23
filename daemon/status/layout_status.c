// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/layout_status.h"

#include <stdlib.h>

#include "daemon/base/json.h"
#include "daemon/core/control/mw_inspect.h"
#include "daemon/objects/mw.h"
#include "daemon/session/session.h"

static json_t *entry_json(const struct engine *e, const struct layout_entry *entry)
{
    static const char *const kinds[] = {
        [MW_OBJECT_GONE] = "gone", [MW_OBJECT_REGION] = "region", [MW_OBJECT_WINDOW] = "window"};
    json_t *dims = json_array();

    for (uint32_t i = 0; i < entry->ndim; i++)
        json_array_append_new(dims, json_pack("{s:o, s:o}", "stride", json_hex(entry->dim[i].stride), "count",
                                              json_hex(entry->dim[i].count)));
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "object", json_hex(entry->object), "kind",
                     kinds[mw_object(e, entry)], "address", json_hex(entry->addr), "length", json_hex(entry->length),
                     "items", json_hex(entry->items), "repeat", json_hex(entry->repeat), "dimensions", dims);
}

static json_t *piece_json(const struct mw_segment *p, uint64_t off)
{
    json_t *path = json_array();

    for (uint32_t i = 0; i < p->depth; i++)
        json_array_append_new(path, json_integer(p->path[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "offset", json_hex(off), "length", json_hex(p->len), "address",
                     json_hex(p->va), "object", json_hex(p->object), "path", path);
}

static void add_segments(json_t *o, const struct engine *e, const struct mw_view *v, const struct pm_layout_req *rq)
{
    static const char *const rests[] = {[MW_EXPLAINED] = "", [MW_MORE] = "more", [MW_REFUSED] = "gone"};
    struct mw_segment *piece = malloc(rq->pieces * sizeof(*piece));
    json_t *list = json_array();
    /* A range that starts beyond the end gets one byte, which mw_explain refuses. */
    uint64_t off = rq->off, end = v->start + v->length, room = off <= end ? end - off : 1;
    enum mw_explained rest = MW_MORE;
    unsigned n = 0;

    if (piece)
        rest = mw_explain(e, v->key, off, rq->len < room ? rq->len : room, piece, rq->pieces, &n);
    for (unsigned i = 0; i < n; off += piece[i++].len)
        json_array_append_new(list, piece_json(&piece[i], off));
    free(piece);
    json_object_set_new(o, "pieces", list);
    json_object_set_new(o, "rest", json_string(rests[rest]));
}

static void add_binding(json_t *o, const struct engine *e, const struct mw_view *v, const struct pm_layout_req *rq)
{
    json_object_set_new(o, "qpn", v->qpn ? json_integer(v->qpn) : json_null());
    json_object_set_new(o, "access", json_integer(v->access));
    json_object_set_new(o, "start", json_hex(v->start));
    json_object_set_new(o, "length", json_hex(v->length));
    json_object_set_new(o, "depth", json_integer(v->depth));
    if (!v->layout)
        json_object_set_new(o, "region", json_hex(v->region));
    else if (v->layout->uniform)
        json_object_set_new(o, "round", json_hex(v->layout->round_bytes));
    json_object_set_new(o, "entry_count", json_integer(v->layout ? v->layout->count : 0));
    if (rq->key == 0)
        return;
    json_t *entries = json_array();
    for (uint32_t i = 0; v->layout && i < v->layout->count; i++)
        json_array_append_new(entries, entry_json(e, &v->layout->entry[i]));
    json_object_set_new(o, "entries", entries);
    add_segments(o, e, v, rq);
}

struct call {
    const struct pm_layout_req *rq;
    const struct session *session;
    json_t *windows;
};

static void add_window(void *obj, void *ctx)
{
    const struct mw *mw = obj;
    const struct call *call = ctx;
    const struct engine *e = call->session->device->engine;
    struct mw_view v;
    json_t *o;

    if (call->rq->key ? call->rq->key >> 8 != mw->key >> 8 : mw->max_entries == 0)
        return;
    if (!mw_view(e, mw->key, &v))
        return;
    o = json_pack("{s:o, s:I, s:i, s:s, s:i, s:i, s:i, s:b}", "key", json_hex(v.key), "session",
                  (json_int_t)call->session->number, "pid", (int)call->session->cred.pid, "comm", call->session->comm,
                  "pd", (int)v.pd, "type", (int)v.type, "max_entries", (int)mw->max_entries, "bound", (int)v.bound);
    if (o && v.bound)
        add_binding(o, e, &v, call->rq);
    json_array_append_new(call->windows, o);
}

json_t *layout_status_device(struct device *d, const struct user *u, const struct pm_layout_req *rq)
{
    struct call call = {.rq = rq, .windows = json_array()};

    TAILQ_FOREACH (call.session, &d->sessions, link) {
        if (!user_sees(u, call.session->cred.uid))
            continue;
        handles_each((struct handles *)&call.session->mws, add_window, &call);
    }
    return json_pack("{s:s, s:o}", "name", d->name, "windows", call.windows);
}
