// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/object_status.h"

#include <stdatomic.h>

#include "daemon/base/handles.h"
#include "daemon/base/json.h"
#include "daemon/objects/channel.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/mr.h"
#include "daemon/objects/mw.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/comp_cntr.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"
#include "daemon/status/tm_status.h"

json_t *ring_status(const struct ring *r)
{
    int64_t n = ring_waiting(r);

    return n < 0 ? json_null() : json_integer(n);
}

json_t *srq_status(const struct client_srq *q)
{
    json_t *o = json_object();

    json_object_set_new(o, "srq", json_number(q->handle));
    json_object_set_new(o, "session", json_number(q->session->number));
    json_object_set_new(o, "type", json_string(q->xrcd ? "XRC" : q->tm.list ? "TM" : "basic"));
    json_object_set_new(o, "srqn", q->xrcd ? json_number(srq_number(q->srq)) : json_null());
    json_object_set_new(o, "xrcd", q->xrcd ? json_number(q->xrcd->xrcd->number) : json_null());
    json_object_set_new(o, "cq", q->cq ? json_number(q->cq->handle) : json_null());
    json_object_set_new(o, "pd", json_number(q->pd->number));
    json_object_set_new(o, "qps", json_number(q->users));
    json_object_set_new(o, "max", json_number(q->max_wr));
    json_object_set_new(o, "limit", json_number(srq_limit(q->srq)));
    json_object_set_new(o, "posted", json_number(srq_posted(q->srq)));
    json_object_set_new(o, "ring", ring_status(&q->ring));
    json_object_set_new(o, "broken", q->broken ? json_string(q->broken) : json_null());
    json_object_set_new(o, "tm", q->tm.list ? tm_status_summary(q) : json_null());
    return o;
}

json_t *cq_status(const struct cq *cq)
{
    static const char *const arms[] = {"no", "solicited", "any"};
    uint32_t unread = cq->producer - atomic_load_explicit(&cq->page->consumer, memory_order_relaxed);
    uint32_t arm = atomic_load_explicit(&cq->page->arm, memory_order_relaxed);
    json_t *o = json_object();

    json_object_set_new(o, "cq", json_number(cq->handle));
    json_object_set_new(o, "session", json_number(cq->session->number));
    json_object_set_new(o, "entries", json_number(cq->slots));
    json_object_set_new(o, "unread", unread <= cq->slots ? json_number(unread) : json_null());
    json_object_set_new(o, "overrun", json_boolean(cq->overrun));
    json_object_set_new(o, "armed", arm < 3 ? json_string(arms[arm]) : json_null());
    json_object_set_new(o, "channel", cq->channel ? json_number(cq->channel->handle) : json_null());
    return o;
}

json_t *comp_cntr_status(const struct client_comp_cntr *c)
{
    json_t *o = json_object();

    json_object_set_new(o, "comp_cntr", json_number(c->handle));
    json_object_set_new(o, "session", json_number(c->session->number));
    json_object_set_new(o, "type", json_string(c->cntr.bytes ? "bytes" : "requests"));
    json_object_set_new(o, "done", json_number(c->cntr.done));
    json_object_set_new(o, "failed", json_number(c->cntr.failed));
    json_object_set_new(o, "users", json_number(c->cntr.users));
    return o;
}

json_t *mr_status(const struct mr *mr)
{
    json_t *o = json_object();

    json_object_set_new(o, "key", json_number(mr->key));
    json_object_set_new(o, "session", json_number(mr->pd->session->number));
    json_object_set_new(o, "pd", json_number(mr->pd->number));
    json_object_set_new(o, "va", json_hex(mr->va));
    json_object_set_new(o, "length", json_number(mr->length));
    json_object_set_new(o, "access", json_number(mr->access));
    return o;
}

json_t *mw_status(const struct mw *mw)
{
    json_t *o = json_object();

    json_object_set_new(o, "key", json_number(mw->key & ~0xffu));
    json_object_set_new(o, "session", json_number(mw->pd->session->number));
    json_object_set_new(o, "pd", json_number(mw->pd->number));
    json_object_set_new(o, "type", json_number(mw->type));
    json_object_set_new(o, "max_entries", json_number(mw->max_entries));
    return o;
}

json_t *xrcd_status(const struct xrcd *x)
{
    json_t *o = json_object();

    json_object_set_new(o, "xrcd", json_number(x->number));
    json_object_set_new(o, "inode", x->fd >= 0 ? json_number(x->ino) : json_null());
    json_object_set_new(o, "opens", json_number(x->opens));
    json_object_set_new(o, "srqs", json_number(x->srqs));
    json_object_set_new(o, "targets", json_number(x->num_targets));
    return o;
}

json_t *mcast_group_status(const struct mcast_group *g)
{
    char text[ADDR_TEXT_MAX];

    return json_pack("{s:s, s:i}", "gid", gid_text(g->gid, text), "members", (int)g->members);
}
