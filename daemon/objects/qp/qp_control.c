// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/qp_control.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/device.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/bound_layouts.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_ring.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

/* --- creating and destroying ------------------------------------------------------------------- */

/* Bytes of the record. The engine's QP follows it. */
#define RECORD_BYTES ((sizeof(struct client_qp) + 63) & ~(size_t)63)

/* The checked parts and sizes of a new QP. */
struct plan {
    const struct client_qp_type *type;
    struct pd *pd;
    struct cq *send_cq, *recv_cq;
    struct client_srq *srq;
    struct xrcd_open *xrcd; /* XRC_RECV; otherwise NULL */
    struct qp_caps caps;
    struct pm_create_qp_rep layout;
};

/* The least inline size of a UD QP that supports inline data, in bytes. */
#define UD_INLINE 128

static int check_caps(const struct device_limits *l, const struct pm_create_qp_req *r, struct control_reply *rp)
{
    if (r->max_send_wr > l->max_queue_wr || r->max_recv_wr > l->max_queue_wr)
        return control_fail(rp, -EINVAL, "%u send and %u receive requests asked, the limit is %u", r->max_send_wr,
                            r->max_recv_wr, l->max_queue_wr);
    if (r->max_send_sge > l->max_sge || r->max_recv_sge > l->max_sge)
        return control_fail(rp, -EINVAL, "%u and %u SGEs per request asked, the limit is %u", r->max_send_sge,
                            r->max_recv_sge, l->max_sge);
    if (r->max_inline > l->max_inline)
        return control_fail(rp, -EINVAL, "%u bytes of inline data asked, the limit is %u", r->max_inline,
                            l->max_inline);
    return 0;
}

/* The granted inline size is all the room of a slot, as on NICs, also if the program asks for none: rdma_xclient of
 * librdmacm relies on that. For UD QPs with inline data it is at least UD_INLINE bytes, because of
 * UCX (1.13 and later). Its connection requests are a few bytes longer than the 64 bytes that it asks for. UCX reuses
 * the buffer of a connection request that was not sent inline as soon as the peer's own request comes in. The packet
 * would then carry newer content of the buffer: a reply to another peer (openucx/ucx issue 6040). */
static uint32_t granted_inline(const struct qp_caps *c, bool ud)
{
    uint32_t asked = c->max_inline;

    if (ud && asked && asked < UD_INLINE)
        asked = UD_INLINE;
    asked = ring_send_room(c->max_send_sge, asked, ud);
    return asked < ENGINE_MAX_INLINE ? asked : ENGINE_MAX_INLINE;
}

static void lay_out(struct plan *p)
{
    struct pm_create_qp_rep *l = &p->layout;
    bool ud = p->type->number == IBV_QPT_UD;

    p->caps.max_inline = granted_inline(&p->caps, ud);
    l->max_send_wr = p->caps.max_send_wr;
    l->max_recv_wr = p->caps.max_recv_wr;
    l->max_send_sge = p->caps.max_send_sge;
    l->max_recv_sge = p->caps.max_recv_sge;
    l->max_inline = p->caps.max_inline;
    l->sq_slots = ring_slots(p->caps.max_send_wr);
    l->rq_slots = ring_slots(p->caps.max_recv_wr);
    l->sq_stride = ring_send_stride(p->caps.max_send_sge, p->caps.max_inline, ud);
    l->rq_stride = ring_recv_stride(p->caps.max_recv_sge);
    l->sq_offset = (sizeof(struct pm_qp_page) + 63) & ~63u;
    l->rq_offset = l->sq_offset + l->sq_slots * l->sq_stride;
    l->size = (uint64_t)l->rq_offset + (uint64_t)l->rq_slots * l->rq_stride;
}
/* 32,768 slots of 1,088 bytes and as many of 528 stay far below 2^32. */
_Static_assert((uint64_t)QUEUE_MAX_WR *(64 + ENGINE_MAX_INLINE + 64 + 16 + 16 * ENGINE_MAX_SGE) < UINT32_MAX / 2,
               "offsets");

/* Finds the objects that the QP refers to. Ignores objects that its type does not use, even if the request names
 * them. */
static int find_parts(struct session *s, const struct pm_create_qp_req *r, struct control_reply *rp, struct plan *p)
{
    p->type = client_qp_type(r->type);
    if (!p->type)
        return control_fail(rp, -EOPNOTSUPP, "queue pairs of type %u are not offered", r->type);
    if (!profile_has_type(&s->device->limits, r->type))
        return control_fail(rp, s->device->limits.type_error, "profile %s has no queue pairs of type %s",
                            profile_name(s->device->settings->profile), p->type->name);
    if (r->type == IBV_QPT_XRC_RECV) {
        p->xrcd = handles_get(&s->xrcds, r->xrcd);
        return p->xrcd ? 0 : control_fail(rp, -EINVAL, "no XRC domain %u", r->xrcd);
    }
    if (!(p->pd = handles_get(&s->pds, r->pd)))
        return control_fail(rp, -EINVAL, "no protection domain %u", r->pd);
    if (p->type->send && !(p->send_cq = handles_get(&s->cqs, r->send_cq)))
        return control_fail(rp, -EINVAL, "no completion queue %u", r->send_cq);
    if (p->type->recv && !(p->recv_cq = handles_get(&s->cqs, r->recv_cq)))
        return control_fail(rp, -EINVAL, "no completion queue %u", r->recv_cq);
    if (p->type->recv && r->srq && !(p->srq = handles_get(&s->srqs, r->srq)))
        return control_fail(rp, -EINVAL, "no shared receive queue %u", r->srq);
    if (p->srq && p->srq->xrcd)
        return control_fail(rp, -EINVAL, "shared receive queue %u is for XRC", r->srq);
    if (p->srq && p->srq->tm.list && r->type != IBV_QPT_RC)
        return control_fail(rp, -EINVAL, "shared receive queue %u matches tags, of messages to RC queue pairs only",
                            r->srq);
    return 0;
}

static int make_plan(struct session *s, const struct pm_create_qp_req *r, struct control_reply *rp, struct plan *p)
{
    memset(p, 0, sizeof(*p));
    int rc = find_parts(s, r, rp, p);
    if (rc)
        return rc;
    rc = check_caps(&s->device->limits, r, rp);
    if (rc)
        return rc;
    bool send = p->type->send;
    bool recv = p->type->recv && !p->srq;
    p->caps = (struct qp_caps){
        .max_send_wr = send ? r->max_send_wr : 0,
        .max_recv_wr = recv ? r->max_recv_wr : 0,
        .max_send_sge = send ? (r->max_send_sge ? r->max_send_sge : 1) : 0,
        .max_recv_sge = recv ? (r->max_recv_sge ? r->max_recv_sge : 1) : 0,
        .max_inline = send ? r->max_inline : 0,
    };
    lay_out(p);
    return 0;
}

static void map_rings(struct client_qp *q, const struct pm_create_qp_rep *l)
{
    uint8_t *base = slab_shared(&q->memory);

    q->page = slab_shared(&q->memory);
    q->sq = (struct ring){
        .base = base + l->sq_offset,
        .tail = &q->page->sq_tail,
        .slots = l->sq_slots,
        .stride = l->sq_stride,
        .max_sge = q->caps.max_send_sge,
        .max_inline = q->caps.max_inline,
        .has_av = q->type == IBV_QPT_UD,
    };
    q->rq = (struct ring){
        .base = base + l->rq_offset,
        .tail = &q->page->rq_tail,
        .slots = l->rq_slots,
        .stride = l->rq_stride,
        .max_sge = q->caps.max_recv_sge,
    };
}

/* Frees the resources of a QP. Some of them may not exist yet. */
static void release(struct client_qp *q)
{
    if (q->doorbell != DOORBELL_NONE)
        doorbells_release(&q->session->doorbells, q->doorbell);
    if (q->qp && q->device->connections)
        connections_set_peer(q->device->connections, q->device->index, q->qpn, 0);
    if (q->qp)
        qp_destroy(q->qp);
    slab_release(&q->memory);
    layouts_free(q);
    device_user_put(q->user);
    free(q);
}

/* The memory for rings and traffic is mapped, so that pages which are never used cost nothing. */
static int take_memory(struct client_qp *q, const struct plan *p, const struct qp_init *init, struct control_reply *rp)
{
    struct slab_need need = {.shared = p->layout.size, .own = qp_size(init)};

    if (need.own == 0)
        return -EINVAL;
    need.own -= qp_state_size();
    if (q->session) {
        if (!q->session->slabs)
            q->session->slabs = calloc(1, sizeof(*q->session->slabs));
        if (!q->session->slabs)
            return -ENOMEM;
        need.others = q->session->qps.count;
        need.lost = &q->session->memory_lost;
    }
    return slab_take(q->session ? q->session->slabs : NULL, &q->owner, &need, &q->memory, rp);
}

static int acquire(struct client_qp *q, const struct plan *p, bool sig_all, struct control_reply *rp)
{
    struct qp_init init = {
        .type = q->type,
        .sq_sig_all = sig_all,
        .pd = p->pd ? p->pd->number : 0,
        .xrcd = p->xrcd ? p->xrcd->xrcd->number : 0,
        .srq = p->srq ? p->srq->srq : NULL,
        .caps = p->caps,
        .send_cq = p->send_cq,
        .recv_cq = p->recv_cq,
        .owner = q,
        .share = &q->user->share,
    };
    int rc = take_memory(q, p, &init, rp);

    if (rc)
        return rc;
    init.queues = slab_own(&q->memory);
    map_rings(q, &p->layout);
    if (q->session) {
        rc = doorbells_take(&q->session->doorbells, client_qp_rang, q);
        if (rc < 0)
            return rc;
        q->doorbell = (uint32_t)rc;
    }
    rc = qp_create(q->device->engine, &init, (uint8_t *)q + RECORD_BYTES, &q->qp);
    if (rc)
        return rc;
    q->qpn = qp_number(q->qp);
    return handles_add_at(q->session ? &q->session->qps : &q->device->targets, q, q->qpn);
}

static void take_parts(struct client_qp *q, const struct plan *p)
{
    q->pd = p->pd;
    q->send_cq = p->send_cq;
    q->recv_cq = p->recv_cq;
    q->srq = p->srq;
    q->xrcd = p->xrcd ? p->xrcd->xrcd : NULL;
    if (q->pd)
        q->pd->users++;
    if (q->send_cq)
        q->send_cq->users++;
    if (q->recv_cq)
        q->recv_cq->users++;
    if (q->srq) {
        q->srq->users++;
        q->srq->newest_qpn = q->qpn;
    }
    if (q->xrcd) {
        TAILQ_INSERT_TAIL(&q->xrcd->targets, q, xrcd_link);
        q->xrcd->num_targets++;
    }
}

static void drop_parts(struct client_qp *q)
{
    mcast_group_leave_all(&q->memberships);
    if (q->pd)
        q->pd->users--;
    if (q->send_cq)
        q->send_cq->users--;
    if (q->recv_cq)
        q->recv_cq->users--;
    if (q->srq)
        q->srq->users--;
    if (q->xrcd) {
        TAILQ_REMOVE(&q->xrcd->targets, q, xrcd_link);
        q->xrcd->num_targets--;
    }
}

/* The record and the engine's QP are one allocation: thousands of QPs should not take a page each. */
static struct client_qp *make(struct session *s, const struct plan *p)
{
    size_t size = RECORD_BYTES + qp_state_size();
    struct client_qp *q = aligned_alloc(64, size);

    if (!q)
        return NULL;
    memset(q, 0, size);
    q->device = s->device;
    q->owner = s->owner;
    q->user = device_user_get(&s->device->users, s->device->engine, s->cred.uid); /* s holds it, so it is there */
    q->session = p->xrcd ? NULL : s;
    q->type = (uint8_t)p->type->number;
    q->caps = p->caps;
    q->doorbell = DOORBELL_NONE;
    TAILQ_INIT(&q->openers);
    TAILQ_INIT(&q->layouts);
    LIST_INIT(&q->memberships);
    return q;
}

static int explain(const struct device *d, int rc, const struct plan *p, struct control_reply *rp)
{
    if (rc == -EINVAL)
        return control_explain(rp, rc, "the device does not take a queue pair of type %s with these capabilities",
                               p->type->name);
    return control_explain(rp, rc == -ENOSPC ? -ENOMEM : rc, "the device can't make another queue pair (limit %u)",
                           d->limits.max_qp);
}

int client_qp_create(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_create_qp_req *r = rq;
    struct pm_create_qp_rep *rep;
    struct target_open *open;
    struct plan plan;

    int rc = make_plan(s, r, rp, &plan);
    if (rc)
        return rc;
    struct client_qp *q = make(s, &plan);
    open = plan.xrcd ? malloc(sizeof(*open)) : NULL;
    if (!q || (plan.xrcd && !open)) {
        if (q)
            device_user_put(q->user);
        free(q);
        free(open);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    rc = acquire(q, &plan, r->sq_sig_all != 0, rp);
    int fd = rc ? rc : slab_descriptor(&q->memory);
    if (fd < 0) {
        if (rc == 0)
            handles_remove(q->session ? &q->session->qps : &s->device->targets, q->qpn);
        rc = fd;
        release(q);
        free(open);
        return explain(s->device, rc, &plan, rp);
    }
    q->streams.qp = q->session ? ++s->created_qps : ++s->device->created_targets;
    take_parts(q, &plan);
    usage_qp_created(&s->device->usage, s->cred.pid);
    if (q->type == IBV_QPT_UD)
        udp_want_headers(&s->device->udp); /* for the header area of receive requests */
    if (open)
        target_open_add(open, s, q, plan.xrcd);
    rep = control_payload(rp, sizeof(*rep));
    *rep = plan.layout;
    rep->qpn = q->qpn;
    rep->doorbell = q->doorbell == DOORBELL_NONE ? 0 : q->doorbell;
    rep->offset = slab_offset(&q->memory);
    rep->size = slab_shared_size(&q->memory);
    control_attach(rp, fd);
    return 0;
}

/* Adds the packets that the QP has sent to the device's usage. To be called before the QP is destroyed. */
static void count_sent(const struct client_qp *q)
{
    struct qp_info info;

    if (q->type == IBV_QPT_UD)
        return;
    qp_info(q->qp, &info);
    q->device->usage.sent_pkts += info.counters.sent_pkts;
}

void client_qp_free(struct client_qp *q)
{
    struct device *d = q->device;

    if (q->in_backlog)
        TAILQ_REMOVE(&d->backlog, q, backlog_link);
    if (q->in_failed)
        TAILQ_REMOVE(&d->failed, q, failed_link);
    handles_remove(q->session ? &q->session->qps : &d->targets, q->qpn);
    count_sent(q);
    drop_parts(q);
    quota_release(&q->owner, QUOTA_QPS);
    release(q);
}

int client_qp_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    static const uint8_t events[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                                     IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED};
    const struct pm_handle *h = rq;
    struct client_qp *q = client_qp_find(s, h->handle);
    unsigned handles = 1;

    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", h->handle);
    if (!LIST_EMPTY(&q->memberships))
        return control_fail(rp, -EBUSY, "queue pair 0x%06x is in a multicast group: detach it first", h->handle);
    if (!q->session) {
        handles = target_opens(s, q);
        target_open_free(target_find(s, h->handle));
    }
    if (TAILQ_EMPTY(&q->openers))
        client_qp_free(q);
    session_forget(s, events, sizeof(events), h->handle, handles);
    return 0;
}
