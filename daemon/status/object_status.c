// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/object_status.h"

#include <stdatomic.h>

#include "daemon/base/handles.h"
#include "daemon/base/json.h"
#include "daemon/objects/channel.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/mr.h"
#include "daemon/objects/mr_file.h"
#include "daemon/objects/mw.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/comp_cntr.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"
#include "daemon/status/tm_status.h"

/* --- taking ------------------------------------------------------------------------------------ */

static void take_pd(const struct pd *pd, struct object_status *out)
{
    out->session = pd->session->number;
    out->pd = (struct pd_status){.number = pd->number, .users = pd->users};
}

static void take_srq(const struct client_srq *q, struct object_status *out)
{
    struct srq_status *v = &out->srq;

    out->session = q->session->number;
    *v = (struct srq_status){
        .handle = q->handle,
        .type = q->xrcd      ? "XRC"
                : q->tm.list ? "TM"
                             : "basic",
        .srqn = q->xrcd ? (int64_t)srq_number(q->srq) : -1,
        .xrcd = q->xrcd ? (int64_t)q->xrcd->xrcd->number : -1,
        .cq = q->cq ? (int64_t)q->cq->handle : -1,
        .pd = q->pd->number,
        .qps = q->users,
        .max = q->max_wr,
        .limit = srq_limit(q->srq),
        .posted = srq_posted(q->srq),
        .ring = ring_waiting(&q->ring),
        .broken = q->broken,
        .matches_tags = q->tm.list != NULL,
    };
    if (v->matches_tags)
        tm_info(q->tm.list, &v->tm);
}

static void take_cq(const struct cq *cq, struct object_status *out)
{
    static const char *const arms[] = {"no", "solicited", "any"};
    uint32_t unread = cq->producer - atomic_load_explicit(&cq->page->consumer, memory_order_relaxed);
    uint32_t arm = atomic_load_explicit(&cq->page->arm, memory_order_relaxed);

    out->session = cq->session->number;
    out->cq = (struct cq_status){
        .handle = cq->handle,
        .entries = cq->slots,
        .users = cq->users,
        .unread = unread <= cq->slots ? (int64_t)unread : -1,
        .overrun = cq->overrun,
        .armed = arm < 3 ? arms[arm] : NULL,
        .channel = cq->channel ? (int64_t)cq->channel->handle : -1,
    };
}

static void take_comp_cntr(const struct client_comp_cntr *c, struct object_status *out)
{
    out->session = c->session->number;
    out->comp_cntr = (struct comp_cntr_status){
        .handle = c->handle,
        .bytes = c->cntr.bytes,
        .done = c->cntr.done,
        .failed = c->cntr.failed,
        .users = c->cntr.users,
    };
}

static void take_mr(const struct mr *mr, struct object_status *out)
{
    out->session = mr->pd->session->number;
    out->mr = (struct mr_status){.key = mr->key,
                                 .pd = mr->pd->number,
                                 .va = mr->va,
                                 .length = mr->length,
                                 .access = mr->access,
                                 .mapped = mr_file_in_use(mr->file)};
}

static void take_mw(const struct mw *mw, struct object_status *out)
{
    out->session = mw->pd->session->number;
    out->mw = (struct mw_status){
        .key = mw->key & ~0xffu, .pd = mw->pd->number, .type = mw->type, .max_entries = mw->max_entries};
}

static void take_xrcd(const struct xrcd *x, struct object_status *out)
{
    out->session = 0;
    out->xrcd = (struct xrcd_status){
        .number = x->number,
        .has_file = x->fd >= 0,
        .inode = x->ino,
        .opens = x->opens,
        .srqs = x->srqs,
        .targets = x->num_targets,
    };
}

void object_status_take(enum walk_table table, const void *obj, struct object_status *out)
{
    out->table = table;
    switch (table) {
    case WALK_PDS:
        take_pd(obj, out);
        break;
    case WALK_SRQS:
        take_srq(obj, out);
        break;
    case WALK_CQS:
        take_cq(obj, out);
        break;
    case WALK_COMP_CNTRS:
        take_comp_cntr(obj, out);
        break;
    case WALK_MRS:
        take_mr(obj, out);
        break;
    case WALK_MWS:
        take_mw(obj, out);
        break;
    case WALK_XRCDS:
        take_xrcd(obj, out);
        break;
    case WALK_QPS: /* qp_status.h */
    case WALK_TABLES:
        break;
    }
}

/* --- as JSON ----------------------------------------------------------------------------------- */

/* A number; null if it is negative. */
static json_t *number_or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static void add_pd(json_t *o, const struct pd_status *v)
{
    json_object_set_new(o, "pd", json_number(v->number));
    json_object_set_new(o, "users", json_number(v->users));
}

static void add_srq(json_t *o, const struct srq_status *v)
{
    json_object_set_new(o, "srq", json_number(v->handle));
    json_object_set_new(o, "type", json_string(v->type));
    json_object_set_new(o, "srqn", number_or_null(v->srqn));
    json_object_set_new(o, "xrcd", number_or_null(v->xrcd));
    json_object_set_new(o, "cq", number_or_null(v->cq));
    json_object_set_new(o, "pd", json_number(v->pd));
    json_object_set_new(o, "qps", json_number(v->qps));
    json_object_set_new(o, "max", json_number(v->max));
    json_object_set_new(o, "limit", json_number(v->limit));
    json_object_set_new(o, "posted", json_number(v->posted));
    json_object_set_new(o, "ring", number_or_null(v->ring));
    json_object_set_new(o, "broken", text_or_null(v->broken));
    json_object_set_new(o, "tm", v->matches_tags ? tm_status_summary(&v->tm, v->posted) : json_null());
}

static void add_cq(json_t *o, const struct cq_status *v)
{
    json_object_set_new(o, "cq", json_number(v->handle));
    json_object_set_new(o, "entries", json_number(v->entries));
    json_object_set_new(o, "unread", number_or_null(v->unread));
    json_object_set_new(o, "overrun", json_boolean(v->overrun));
    json_object_set_new(o, "armed", text_or_null(v->armed));
    json_object_set_new(o, "channel", number_or_null(v->channel));
    json_object_set_new(o, "users", json_number(v->users));
}

static void add_comp_cntr(json_t *o, const struct comp_cntr_status *v)
{
    json_object_set_new(o, "comp_cntr", json_number(v->handle));
    json_object_set_new(o, "type", json_string(v->bytes ? "bytes" : "requests"));
    json_object_set_new(o, "done", json_number(v->done));
    json_object_set_new(o, "failed", json_number(v->failed));
    json_object_set_new(o, "users", json_number(v->users));
}

static void add_mr(json_t *o, const struct mr_status *v)
{
    json_object_set_new(o, "key", json_number(v->key));
    json_object_set_new(o, "pd", json_number(v->pd));
    json_object_set_new(o, "va", json_hex(v->va));
    json_object_set_new(o, "length", json_number(v->length));
    json_object_set_new(o, "access", json_number(v->access));
    json_object_set_new(o, "mapped", json_boolean(v->mapped));
}

static void add_mw(json_t *o, const struct mw_status *v)
{
    json_object_set_new(o, "key", json_number(v->key));
    json_object_set_new(o, "pd", json_number(v->pd));
    json_object_set_new(o, "type", json_number(v->type));
    json_object_set_new(o, "max_entries", json_number(v->max_entries));
}

/* A domain belongs to no session. */
static void add_xrcd(json_t *o, const struct xrcd_status *v)
{
    json_object_set_new(o, "xrcd", json_number(v->number));
    json_object_set_new(o, "inode", v->has_file ? json_number(v->inode) : json_null());
    json_object_set_new(o, "opens", json_number(v->opens));
    json_object_set_new(o, "srqs", json_number(v->srqs));
    json_object_set_new(o, "targets", json_number(v->targets));
}

json_t *object_status_json(const struct object_status *v)
{
    json_t *o = json_object();

    if (v->table != WALK_XRCDS)
        json_object_set_new(o, "session", json_number(v->session));
    switch (v->table) {
    case WALK_PDS:
        add_pd(o, &v->pd);
        break;
    case WALK_SRQS:
        add_srq(o, &v->srq);
        break;
    case WALK_CQS:
        add_cq(o, &v->cq);
        break;
    case WALK_COMP_CNTRS:
        add_comp_cntr(o, &v->comp_cntr);
        break;
    case WALK_MRS:
        add_mr(o, &v->mr);
        break;
    case WALK_MWS:
        add_mw(o, &v->mw);
        break;
    case WALK_XRCDS:
        add_xrcd(o, &v->xrcd);
        break;
    case WALK_QPS:
    case WALK_TABLES:
        break;
    }
    return o;
}

json_t *mcast_group_status(const struct mcast_group *g)
{
    char text[ADDR_TEXT_MAX];

    return json_pack("{s:s, s:i}", "gid", gid_text(g->gid, text), "members", (int)g->members);
}
