// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/layout_status.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/json.h"
#include "daemon/core/control/mw_inspect.h"
#include "daemon/objects/mw.h"
#include "daemon/session/session.h"
#include "daemon/status/object_list.h"

/* --- copying, in the device's thread ----------------------------------------------------------- */

/* The values of one window. Its entries and pieces are there only if the request names the window. */
struct window_values {
    struct mw_view view; /* its layout is not used: it may have gone meanwhile */
    uint32_t session, max_entries;
    int pid;
    char comm[16];
    bool has_layout, has_round;
    uint64_t round;
    uint32_t entry_count;
    uint32_t entries;
    enum mw_explained rest;
    unsigned pieces;
    struct layout_entry entry[LAYOUT_MAX_ENTRIES];
    uint8_t kind[LAYOUT_MAX_ENTRIES]; /* enum mw_object of each entry */
    struct mw_segment piece[PM_LAYOUT_PIECES];
};

/* A request for the windows of a device. */
struct layout_request {
    struct object_list list; /* first: copy_window casts */
    struct pm_layout_req rq;
    struct window_values window;
};

static void take_details(const struct engine *e, const struct pm_layout_req *rq, struct window_values *w)
{
    const struct mw_view *v = &w->view;
    /* A range that starts beyond the end gets one byte, which mw_explain refuses. */
    uint64_t end = v->start + v->length, room = rq->off <= end ? end - rq->off : 1;

    w->entries = v->layout ? v->layout->count : 0;
    for (uint32_t i = 0; i < w->entries; i++) {
        w->entry[i] = v->layout->entry[i];
        w->kind[i] = (uint8_t)mw_object(e, &w->entry[i]);
    }
    w->pieces = 0;
    w->rest = mw_explain(e, v->key, rq->off, rq->len < room ? rq->len : room, w->piece, rq->pieces, &w->pieces);
}

static bool copy_window(struct object_list *list, const struct session *s, const void *obj)
{
    const struct mw *mw = obj;
    struct layout_request *r = (struct layout_request *)(void *)list;
    struct window_values *w = &r->window;
    const struct engine *e = list->device->engine;

    if (r->rq.key ? r->rq.key >> 8 != mw->key >> 8 : mw->max_entries == 0)
        return false;
    if (!mw_view(e, mw->key, &w->view))
        return false;
    const struct layout *l = w->view.bound ? w->view.layout : NULL;
    w->session = s->number;
    w->pid = s->cred.pid;
    memcpy(w->comm, s->comm, sizeof(w->comm));
    w->max_entries = mw->max_entries;
    w->has_layout = l != NULL;
    w->has_round = l && l->uniform;
    w->round = l ? l->round_bytes : 0;
    w->entry_count = l ? l->count : 0;
    if (w->view.bound && r->rq.key)
        take_details(e, &r->rq, w);
    return true;
}

/* --- as JSON ----------------------------------------------------------------------------------- */

static json_t *entry_json(const struct layout_entry *entry, enum mw_object kind)
{
    static const char *const kinds[] = {
        [MW_OBJECT_GONE] = "gone", [MW_OBJECT_REGION] = "region", [MW_OBJECT_WINDOW] = "window"};
    json_t *dims = json_array();

    for (uint32_t i = 0; i < entry->ndim; i++)
        json_array_append_new(dims, json_pack("{s:o, s:o}", "stride", json_hex(entry->dim[i].stride), "count",
                                              json_hex(entry->dim[i].count)));
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "object", json_hex(entry->object), "kind", kinds[kind],
                     "address", json_hex(entry->addr), "length", json_hex(entry->length), "items",
                     json_hex(entry->items), "repeat", json_hex(entry->repeat), "dimensions", dims);
}

static json_t *piece_json(const struct mw_segment *p, uint64_t off)
{
    json_t *path = json_array();

    for (uint32_t i = 0; i < p->depth; i++)
        json_array_append_new(path, json_integer(p->path[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "offset", json_hex(off), "length", json_hex(p->len), "address",
                     json_hex(p->va), "object", json_hex(p->object), "path", path);
}

static void add_details(json_t *o, const struct window_values *w, uint64_t off)
{
    static const char *const rests[] = {[MW_EXPLAINED] = "", [MW_MORE] = "more", [MW_REFUSED] = "gone"};
    json_t *entries = json_array(), *pieces = json_array();

    for (uint32_t i = 0; i < w->entries; i++)
        json_array_append_new(entries, entry_json(&w->entry[i], w->kind[i]));
    for (unsigned i = 0; i < w->pieces; off += w->piece[i++].len)
        json_array_append_new(pieces, piece_json(&w->piece[i], off));
    json_object_set_new(o, "entries", entries);
    json_object_set_new(o, "pieces", pieces);
    json_object_set_new(o, "rest", json_string(rests[w->rest]));
}

static json_t *window_json(const struct object_list *l)
{
    const struct layout_request *r = (const struct layout_request *)(const void *)l;
    const struct window_values *w = &r->window;
    const struct mw_view *v = &w->view;
    json_t *o = json_pack("{s:o, s:I, s:i, s:s, s:i, s:i, s:i, s:b}", "key", json_hex(v->key), "session",
                          (json_int_t)w->session, "pid", w->pid, "comm", w->comm, "pd", (int)v->pd, "type",
                          (int)v->type, "max_entries", (int)w->max_entries, "bound", (int)v->bound);

    if (!o || !v->bound)
        return o;
    json_object_set_new(o, "qpn", v->qpn ? json_integer(v->qpn) : json_null());
    json_object_set_new(o, "access", json_integer(v->access));
    json_object_set_new(o, "start", json_hex(v->start));
    json_object_set_new(o, "length", json_hex(v->length));
    json_object_set_new(o, "depth", json_integer(v->depth));
    if (!w->has_layout)
        json_object_set_new(o, "region", json_hex(v->region));
    else if (w->has_round)
        json_object_set_new(o, "round", json_hex(w->round));
    json_object_set_new(o, "entry_count", json_integer(w->entry_count));
    if (r->rq.key)
        add_details(o, w, r->rq.off);
    return o;
}

/* --- asking ------------------------------------------------------------------------------------ */

json_t *layout_status_device(struct device *d, const struct user *u, const struct pm_layout_req *rq)
{
    bool answers;

    object_walk_lock();
    struct layout_request *r = object_walk_is_hopeless(d) ? NULL : calloc(1, sizeof(*r));
    if (r) {
        r->rq = *rq;
        r->list =
            (struct object_list){.request = "LAYOUT", .table = WALK_MWS, .copy = copy_window, .as_json = window_json};
    }
    json_t *windows = object_list_collect(r ? &r->list : NULL, d, u, &answers);
    object_walk_unlock();
    return json_pack("{s:s, s:b, s:o}", "name", d->name, "answers", answers, "windows", windows);
}
