// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/context.h"

#include <errno.h>
#include <stdlib.h>

#include "src/check/base/finding.h"
#include "src/check/base/inside.h"
#include "src/check/connect/asked.h"
#include "src/check/connect/port.h"
#include "src/check/requests/completion.h"
#include "src/check/requests/post.h"
#include "src/check/requests/region.h"
#include "src/check/requests/thread_domain.h"
#include "src/check/requests/wr.h"

#define CONTEXTS_MAX 64u

/* A context and its own functions. */
static struct opened {
    struct ibv_context *context; /* NULL: free */
    struct ibv_context_ops ops;
    struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
    struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
    struct ibv_srq *(*create_srq_ex)(struct ibv_context *, struct ibv_srq_init_attr_ex *);
    port_query_fn *query_port;
    struct ibv_td *(*alloc_td)(struct ibv_context *, struct ibv_td_init_attr *);
    int (*dealloc_td)(struct ibv_td *);
    struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *, struct ibv_parent_domain_init_attr *);
    struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *, struct ibv_dm *, uint64_t, size_t, unsigned);
    struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *);
} opened[CONTEXTS_MAX];

/* The context is one whose functions are replaced, so there is one. */
static const struct opened *of(const struct ibv_context *context)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
        if (opened[i].context == context)
            return &opened[i];
    }
    abort();
}

#define CALLER __builtin_return_address(0)

/* --- posting ----------------------------------------------------------------------------------- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    const struct trace *where = TRACE_HERE;

    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, CALLER);
    struct td_record *td = q ? q->td : NULL;
    thread_domain_enter(td, where);
    if (q)
        post_sends(q, wr, where);
    records_unlock();
    inside_library_enter();
    int rc = of(qp->context)->ops.post_send(qp, wr, bad);
    inside_library_leave();
    if (q && (rc || q->own || td)) {
        records_lock();
        thread_domain_leave(td);
        post_sends_taken(q, wr, rc ? *bad : NULL, where);
        if (rc)
            post_sends_refused(q, *bad, rc, where);
        records_unlock();
    }
    return rc;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    const struct trace *where = TRACE_HERE;

    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, CALLER);
    struct td_record *td = q ? q->td : NULL;
    thread_domain_enter(td, where);
    if (q)
        post_receives(q, wr, where);
    records_unlock();
    inside_library_enter();
    int rc = of(qp->context)->ops.post_recv(qp, wr, bad);
    inside_library_leave();
    if (q && (rc || td)) {
        records_lock();
        thread_domain_leave(td);
        if (rc)
            post_receives_refused(q, *bad);
        records_unlock();
    }
    return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    const struct trace *where = TRACE_HERE;

    records_lock();
    struct srq_record *s = record_find(KIND_SRQ, srq, CALLER);
    if (s)
        post_srq_receives(s, wr, where);
    records_unlock();
    inside_library_enter();
    int rc = of(srq->context)->ops.post_srq_recv(srq, wr, bad);
    inside_library_leave();
    if (rc && s) {
        records_lock();
        post_srq_receives_refused(s, *bad);
        records_unlock();
    }
    return rc;
}

/* --- polling ----------------------------------------------------------------------------------- */

/* Before the library is called. NULL: the CQ belongs to no thread domain. */
static struct td_record *enter(struct ibv_cq *cq, const void *caller, const void *frame)
{
    struct td_record *td = NULL;

    if (!thread_domain_any())
        return NULL;
    records_lock();
    const struct cq_record *r = record_find(KIND_CQ, cq, caller);
    if (r && (td = r->td))
        thread_domain_enter(td, trace_of(caller, frame));
    records_unlock();
    return td;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    struct td_record *td = enter(cq, CALLER, __builtin_frame_address(0));
    inside_library_enter();
    int n = of(cq->context)->ops.poll_cq(cq, most, wc);
    inside_library_leave();

    records_lock();
    thread_domain_leave(td);
    struct cq_record *r = record_find(KIND_CQ, cq, CALLER);
    if (r)
        r->unsafe = false;
    for (int i = 0; r && i < n; i++) {
        const struct completion c = {
            wc[i].wr_id,  wc[i].status, wc[i].status == IBV_WC_SUCCESS ? (int)wc[i].opcode : -1,
            wc[i].qp_num, CALLER,       __builtin_frame_address(0)};

        completion_polled(r, &c);
    }
    records_unlock();
    return n;
}

/* An extended CQ has a completion. */
static void polled(struct cq_record *r, struct ibv_cq_ex *cq, const void *caller)
{
    bool good = cq->status == IBV_WC_SUCCESS;
    const struct completion c = {
        cq->wr_id, cq->status, good ? (int)ibv_wc_read_opcode(cq) : -1, cq->read_qp_num ? ibv_wc_read_qp_num(cq) : 0,
        caller,    NULL};

    completion_polled(r, &c);
}

/* The record is there as long as the CQ. */
static struct cq_record *record_of(struct ibv_cq_ex *cq)
{
    records_lock();
    struct cq_record *r = record_find(KIND_CQ, cq, NULL);
    if (r)
        r->unsafe = false;
    records_unlock();
    return r;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    struct cq_record *r = record_of(cq);
    inside_library_enter();
    int rc = r ? r->start_poll(cq, attr) : ENOENT;
    inside_library_leave();

    records_lock();
    if (rc == 0)
        polled(r, cq, CALLER);
    records_unlock();
    return rc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
    struct cq_record *r = record_of(cq);
    inside_library_enter();
    int rc = r ? r->next_poll(cq) : ENOENT;
    inside_library_leave();

    records_lock();
    if (rc == 0)
        polled(r, cq, CALLER);
    records_unlock();
    return rc;
}

/* --- arming ------------------------------------------------------------------------------------ */

/* Could a completion of the CQ have come already? arg: the CQ's record, whose member says so. */
static void look_for_traffic(void *record, void *arg)
{
    const struct qp_record *q = record;
    struct cq_record *cq = arg;
    bool connected = q->qp->state == IBV_QPS_RTR || q->qp->state == IBV_QPS_RTS;

    if ((q->qp->send_cq == cq->cq && !TAILQ_EMPTY(&q->sends)) ||
        (q->qp->recv_cq == cq->cq && connected && !TAILQ_EMPTY(&q->receives)))
        cq->unsafe = true;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    const struct trace *where = TRACE_HERE;

    records_lock();
    struct cq_record *r = record_find(KIND_CQ, cq, CALLER);
    if (r && rule_is_on(RULE_LOST_EVENT)) {
        r->armed = true;
        r->armed_at = where;
        r->unsafe = false;
        records_each(KIND_QP, look_for_traffic, r);
    }
    records_unlock();
    return of(cq->context)->ops.req_notify_cq(cq, solicited_only);
}

/* --- objects ----------------------------------------------------------------------------------- */

void context_made_qp(struct ibv_qp *qp, bool all_signaled, bool extended, const struct trace *where)
{
    records_lock();
    struct qp_record *q = record_add_qp(qp, where);
    if (q) {
        q->td = thread_domain_of(qp->pd);
        q->all_signaled = all_signaled;
        if (extended)
            wr_replace(qp);
    }
    records_unlock();
}

void context_made_cq(struct ibv_cq *cq, const struct ibv_pd *parent, const struct trace *where)
{
    records_lock();
    struct cq_record *r = record_add(KIND_CQ, cq, sizeof(*r), where);
    if (r) {
        r->cq = cq;
        r->td = parent ? thread_domain_of(parent) : NULL;
    }
    records_unlock();
}

void context_made_srq(struct ibv_srq *srq, const struct ibv_cq *cq, const struct trace *where)
{
    records_lock();
    struct srq_record *s = record_add(KIND_SRQ, srq, sizeof(*s), where);
    if (s) {
        s->cq = cq;
        TAILQ_INIT(&s->queue);
    }
    records_unlock();
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = of(context)->create_qp_ex(context, attr);

    context_made_qp(qp, attr->sq_sig_all, attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, TRACE_HERE);
    return qp;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct ibv_cq_ex *cq = of(context)->create_cq_ex(context, attr);

    if (!cq)
        return NULL;
    context_made_cq(ibv_cq_ex_to_cq(cq), attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL,
                    TRACE_HERE);
    struct cq_record *r = record_of(cq);
    if (r && cq->start_poll) {
        r->start_poll = cq->start_poll;
        r->next_poll = cq->next_poll;
        cq->start_poll = start_poll;
        cq->next_poll = next_poll;
    }
    return cq;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq *srq = of(context)->create_srq_ex(context, attr);

    bool is_xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
    context_made_srq(srq, is_xrc ? attr->cq : NULL, TRACE_HERE);
    return srq;
}

/* --- ports ------------------------------------------------------------------------------------- */

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    records_lock();
    asked_port(context);
    records_unlock();
    return of(context)->query_port(context, port, attr, size);
}

/* NULL: there is none, or the context is not checked. */
static port_query_fn *query_port_of(const struct ibv_context *context)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
        if (opened[i].context == context)
            return opened[i].query_port;
    }
    return NULL;
}

/* --- thread domains ---------------------------------------------------------------------------- */

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    struct ibv_td *td = of(context)->alloc_td(context, attr);

    records_lock();
    thread_domain_made(td, TRACE_HERE);
    records_unlock();
    return td;
}

static int dealloc_td(struct ibv_td *td)
{
    int rc = of(td->context)->dealloc_td(td);

    records_lock();
    thread_domain_destroyed(td, rc, TRACE_HERE);
    records_unlock();
    return rc;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct ibv_pd *pd = of(context)->alloc_parent_domain(context, attr);

    records_lock();
    thread_domain_has_parent(pd, attr->td, TRACE_HERE);
    records_unlock();
    return pd;
}

/* --- regions ----------------------------------------------------------------------------------- */

/* In the memory of the device. Requests name its bytes from 0. */
static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
    struct ibv_mr *mr = of(pd->context)->reg_dm_mr(pd, dm, offset, length, access);

    return region_made(mr, NULL, length, 0, access, TRACE_HERE);
}

/* It has all addresses. */
static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
    struct ibv_mr *mr = of(pd->context)->alloc_null_mr(pd);

    region_has_key(mr);
    return mr;
}

/* --- contexts ---------------------------------------------------------------------------------- */

static void replace(struct opened *o)
{
    struct ibv_context *context = o->context;
    struct verbs_context *v = verbs_get_ctx(context);

    o->ops = context->ops;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    if (!v)
        return;
    o->create_qp_ex = v->create_qp_ex;
    o->create_cq_ex = v->create_cq_ex;
    o->create_srq_ex = v->create_srq_ex;
    o->query_port = v->query_port;
    o->alloc_td = v->alloc_td;
    o->dealloc_td = v->dealloc_td;
    o->alloc_parent_domain = v->alloc_parent_domain;
    o->reg_dm_mr = v->reg_dm_mr;
    o->alloc_null_mr = v->alloc_null_mr;
    port_set_query(query_port_of);
    v->create_qp_ex = v->create_qp_ex ? create_qp_ex : NULL;
    v->create_cq_ex = v->create_cq_ex ? create_cq_ex : NULL;
    v->create_srq_ex = v->create_srq_ex ? create_srq_ex : NULL;
    v->query_port = v->query_port ? query_port : NULL;
    v->alloc_td = v->alloc_td ? alloc_td : NULL;
    v->dealloc_td = v->dealloc_td ? dealloc_td : NULL;
    v->alloc_parent_domain = v->alloc_parent_domain ? alloc_parent_domain : NULL;
    v->reg_dm_mr = v->reg_dm_mr ? reg_dm_mr : NULL;
    v->alloc_null_mr = v->alloc_null_mr ? alloc_null_mr : NULL;
}

void context_opened(struct ibv_context *context, const struct trace *where)
{
    struct opened *o = opened;

    records_lock();
    record_add(KIND_CONTEXT, context, sizeof(struct record), where);
    while (o < opened + CONTEXTS_MAX && o->context)
        o++;
    if (context && o < opened + CONTEXTS_MAX) { /* further contexts are not checked */
        o->context = context;
        replace(o);
    }
    records_unlock();
}

void context_closing(struct ibv_context *context)
{
    records_lock();
    for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
        struct opened *o = &opened[i];
        struct verbs_context *v = verbs_get_ctx(context);

        if (o->context != context)
            continue;
        context->ops = o->ops;
        if (v) {
            v->create_qp_ex = o->create_qp_ex;
            v->create_cq_ex = o->create_cq_ex;
            v->create_srq_ex = o->create_srq_ex;
            v->query_port = o->query_port;
            v->alloc_td = o->alloc_td;
            v->dealloc_td = o->dealloc_td;
            v->alloc_parent_domain = o->alloc_parent_domain;
            v->reg_dm_mr = o->reg_dm_mr;
            v->alloc_null_mr = o->alloc_null_mr;
        }
        o->context = NULL;
        asked_forget(context);
    }
    records_unlock();
}

void context_not_closed(struct ibv_context *context)
{
    records_lock();
    for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
        if (!opened[i].context) {
            opened[i].context = context;
            replace(&opened[i]);
            break;
        }
    }
    records_unlock();
}
