// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/srq/srq_control.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/device.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/srq/tm_srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

#define RING_OFFSET ((uint32_t)(sizeof(struct pm_srq_page) + 63) & ~63u)

/* --- creating ---------------------------------------------------------------------------------- */

/* The parts and sizes of a new SRQ. */
struct plan {
    struct pd *pd;
    struct xrcd_open *xrcd;
    struct cq *cq;
    uint32_t max_wr, max_sge, slots, stride;
    size_t engine_bytes;
    struct tm_params tags; /* max_num_tags is 0 if the SRQ does not match tags */
};

static size_t segment_bytes(uint32_t slots, uint32_t stride)
{
    return RING_OFFSET + (size_t)slots * stride;
}

/* Offset of the ring of list operations, if there is one. */
static uint32_t ops_offset(const struct plan *p)
{
    return (uint32_t)((segment_bytes(p->slots, p->stride) + 63) & ~(size_t)63);
}

/* Finds the objects that the SRQ refers to. */
static int find_parts(struct session *s, const struct pm_create_srq_req *r, struct control_reply *rp, struct plan *p)
{
    if (!(p->pd = handles_get(&s->pds, r->pd)))
        return control_fail(rp, -EINVAL, "no protection domain %u", r->pd);
    if (r->type != IBV_SRQT_BASIC && r->type != IBV_SRQT_XRC && r->type != IBV_SRQT_TM)
        return control_fail(rp, -EOPNOTSUPP, "shared receive queues of type %u are not offered", r->type);
    if (r->type == IBV_SRQT_XRC && !(p->xrcd = handles_get(&s->xrcds, r->xrcd)))
        return control_fail(rp, -EINVAL, "no XRC domain %u", r->xrcd);
    if (r->type != IBV_SRQT_BASIC && !(p->cq = handles_get(&s->cqs, r->cq)))
        return control_fail(rp, -EINVAL, "no completion queue %u", r->cq);
    return r->type == IBV_SRQT_TM ? tm_srq_check(s->device, r, rp, &p->tags) : 0;
}

static int make_plan(struct session *s, const struct pm_create_srq_req *r, struct control_reply *rp, struct plan *p)
{
    const struct device_limits *l = &s->device->limits;

    memset(p, 0, sizeof(*p));
    int rc = find_parts(s, r, rp, p);
    if (rc)
        return rc;
    if (l->max_srq == 0)
        return control_fail(rp, -EOPNOTSUPP, "the device has no shared receive queues");
    if (r->max_wr == 0 || r->max_wr > l->max_srq_wr)
        return control_fail(rp, -EINVAL, "a shared receive queue has 1 to %u requests, not %u", l->max_srq_wr,
                            r->max_wr);
    if (r->max_sge > l->max_srq_sge)
        return control_fail(rp, -EINVAL, "%u SGEs per request asked, the limit is %u", r->max_sge, l->max_srq_sge);
    if (r->limit > r->max_wr)
        return control_fail(rp, -EINVAL, "a limit of %u, with %u requests", r->limit, r->max_wr);
    p->max_wr = r->max_wr;
    p->max_sge = r->max_sge ? r->max_sge : 1;
    p->slots = ring_slots(p->max_wr);
    p->stride = ring_recv_stride(p->max_sge);
    p->engine_bytes = srq_size(p->max_wr, p->max_sge);
    return 0;
}

static void rang(void *client_srq, uint64_t now)
{
    struct client_srq *q = client_srq;

    if (q->tm.list)
        tm_srq_drain(q, now);
    client_srq_refill(q);
}

static void map_ring(struct client_srq *q, uint32_t slots, uint32_t head)
{
    q->page = q->segment.p;
    q->ring = (struct ring){
        .base = (uint8_t *)q->segment.p + RING_OFFSET,
        .tail = &q->page->tail,
        .slots = slots,
        .stride = ring_recv_stride(q->max_sge),
        .head = head,
        .max_sge = q->max_sge,
        .has_wqe_index = true,
    };
}

/* Frees the resources of an SRQ. Some of them may not exist yet. */
static void release(struct client_srq *q)
{
    if (q->doorbell != DOORBELL_NONE)
        doorbells_release(&q->session->doorbells, q->doorbell);
    if (q->srq)
        srq_destroy(q->srq);
    tm_srq_release(&q->tm);
    segment_destroy(&q->segment);
    segment_destroy(&q->next);
    mapping_destroy(&q->mem);
    free(q);
}

static int acquire(struct client_srq *q, const struct plan *p, struct control_reply *rp)
{
    struct srq_init init = {
        .pd = p->pd->number,
        .xrcd = p->xrcd ? p->xrcd->xrcd->number : 0,
        .cq = p->cq,
        .max_wr = p->max_wr,
        .max_sge = p->max_sge,
        .owner = q,
    };

    const struct quota_owner *owner = &q->session->owner;

    int rc = mapping_create(&q->mem, owner, p->engine_bytes, rp);
    if (rc == 0)
        rc = tm_srq_acquire(&q->tm, &p->tags, owner, rp);
    if (rc)
        return rc;
    init.tm = q->tm.list;
    rc = segment_create(&q->segment, owner, "pumice-srq", ops_offset(p) + tm_srq_ring_bytes(&p->tags), rp);
    if (rc)
        return rc;
    segment_guard(&q->segment, &q->session->memory_lost);
    map_ring(q, p->slots, 0);
    tm_srq_map(q, ops_offset(p));
    rc = doorbells_take(&q->session->doorbells, rang, q);
    if (rc < 0)
        return rc;
    q->doorbell = (uint32_t)rc;
    rc = srq_create(q->session->device->engine, &init, q->mem.p, &q->srq);
    if (rc)
        return rc;
    return handles_add(&q->session->srqs, q, &q->handle);
}

static void take_parts(struct client_srq *q, const struct plan *p)
{
    q->pd = p->pd;
    q->pd->users++;
    q->xrcd = p->xrcd;
    q->cq = p->cq;
    if (q->cq)
        q->cq->users++;
    if (q->xrcd) {
        q->xrcd->users++;
        q->xrcd->xrcd->srqs++;
    }
}

int client_srq_create(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_create_srq_req *r = rq;
    struct pm_create_srq_rep *rep;
    struct client_srq *q;
    struct plan plan;
    int rc = make_plan(s, r, rp, &plan);

    if (rc)
        return rc;
    q = calloc(1, sizeof(*q));
    if (!q)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    q->session = s;
    q->segment.fd = q->next.fd = -1;
    q->doorbell = DOORBELL_NONE;
    q->max_wr = plan.max_wr;
    q->max_sge = plan.max_sge;
    rc = acquire(q, &plan, rp);
    if (rc) {
        release(q);
        return control_explain(rp, rc == -ENOSPC ? -ENOMEM : rc,
                               "the device can't make another shared receive queue (limit %u)",
                               s->device->limits.max_srq);
    }
    take_parts(q, &plan);
    if (r->limit)
        srq_set_limit(q->srq, r->limit);
    rep = control_payload(rp, sizeof(*rep));
    *rep = (struct pm_create_srq_rep){
        .handle = q->handle,
        .srqn = q->xrcd ? srq_number(q->srq) : 0,
        .max_wr = q->max_wr,
        .max_sge = q->max_sge,
        .slots = plan.slots,
        .stride = plan.stride,
        .offset = RING_OFFSET,
        .doorbell = q->doorbell,
        .ops_slots = q->tm.ring.slots,
        .ops_stride = q->tm.ring.stride,
        .ops_offset = q->tm.list ? ops_offset(&plan) : 0,
        .size = q->segment.size,
    };
    control_attach(rp, segment_take_fd(&q->segment));
    return 0;
}

void client_srq_free(struct client_srq *q)
{
    if (q->in_failed)
        TAILQ_REMOVE(&q->session->device->failed_srqs, q, failed_link);
    handles_remove(&q->session->srqs, q->handle);
    tm_srq_forget(q);
    q->pd->users--;
    if (q->cq)
        q->cq->users--;
    if (q->xrcd) {
        q->xrcd->users--;
        q->xrcd->xrcd->srqs--;
    }
    quota_release(&q->session->owner, QUOTA_SRQS);
    release(q);
}

/* --- the other operations ---------------------------------------------------------------------- */

static struct client_srq *find(struct session *s, uint32_t handle, struct control_reply *rp)
{
    struct client_srq *q = handles_get(&s->srqs, handle);

    if (!q)
        control_fail(rp, -EINVAL, "no shared receive queue %u", handle);
    return q;
}

int client_srq_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    static const uint8_t events[] = {IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED};
    const struct pm_handle *h = rq;
    struct client_srq *q = find(s, h->handle, rp);

    if (!q)
        return -EINVAL;
    if (q->users)
        return control_fail(rp, -EBUSY, "shared receive queue %u is used by %u queue pairs", h->handle, q->users);
    if (tm_srq_busy(q, s->device->now))
        return control_fail(rp, -EBUSY, "list operations of shared receive queue %u are under way", h->handle);
    client_srq_free(q);
    session_forget(s, events, sizeof(events), h->handle, 1);
    return 0;
}

int client_srq_query(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct client_srq *q = find(s, h->handle, rp);
    struct pm_query_srq_rep *rep;

    if (!q)
        return -EINVAL;
    rep = control_payload(rp, sizeof(*rep));
    rep->max_wr = q->max_wr;
    rep->max_sge = q->max_sge;
    rep->limit = srq_limit(q->srq);
    return 0;
}

int client_srq_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_srq_req *r = rq;
    struct client_srq *q = find(s, r->srq, rp);

    if (!q)
        return -EINVAL;
    if (r->limit > q->max_wr)
        return control_fail(rp, -EINVAL, "a limit of %u: the queue has %u requests", r->limit, q->max_wr);
    srq_set_limit(q->srq, r->limit);
    return 0;
}

/* Copies the requests that the daemon has not read to a new segment. check_size has moved all that fit to the engine.
 * So if the client keeps to max_wr, none are left. */
static int move_ring(struct client_srq *q, struct segment *seg, uint32_t slots)
{
    struct pm_srq_page *page = seg->p;
    uint8_t *base = (uint8_t *)seg->p + RING_OFFSET;
    uint32_t tail = atomic_load_explicit(q->ring.tail, memory_order_acquire);

    if (tail - q->ring.head > q->ring.slots || tail - q->ring.head > slots)
        return -EINVAL;
    for (uint32_t i = q->ring.head; i != tail; i++)
        memcpy(base + (size_t)(i & (slots - 1)) * q->ring.stride,
               q->ring.base + (size_t)(i & (q->ring.slots - 1)) * q->ring.stride, q->ring.stride);
    atomic_store_explicit(&page->tail, tail, memory_order_relaxed);
    atomic_store_explicit(&page->notify, atomic_load_explicit(&q->page->notify, memory_order_relaxed),
                          memory_order_relaxed);
    return 0;
}

/* Switches to the segment that the resize has created, and to an engine queue of the new size. */
static int go_over(struct client_srq *q, struct control_reply *rp)
{
    uint32_t slots = ring_slots(q->next_max_wr);
    struct mapping mem;
    struct srq *moved;

    int rc = mapping_create(&mem, &q->session->owner, srq_size(q->next_max_wr, q->max_sge), rp);
    if (rc == 0)
        rc = move_ring(q, &q->next, slots);
    if (rc == 0)
        rc = srq_resize(q->srq, q->next_max_wr, mem.p, &moved);
    if (rc) {
        mapping_destroy(&mem);
        return rc;
    }
    mapping_destroy(&q->mem);
    q->mem = mem;
    q->srq = moved;
    q->max_wr = q->next_max_wr;
    segment_destroy(&q->segment);
    q->segment = q->next;
    q->next = (struct segment){.fd = -1};
    map_ring(q, slots, q->ring.head);
    return 0;
}

/* Checks whether the SRQ can have this size now. */
static int check_size(struct client_srq *q, uint32_t max_wr, struct control_reply *rp)
{
    client_srq_refill(q);
    if (q->broken)
        return control_fail(rp, -EINVAL, "the queue has failed: its ring holds %s", q->broken);
    if (max_wr < srq_limit(q->srq))
        return control_fail(rp, -EINVAL, "its limit is %u", srq_limit(q->srq));
    if (max_wr < q->max_wr - srq_room(q->srq))
        return control_fail(rp, -EINVAL, "more than %u requests are outstanding", max_wr);
    return 0;
}

int client_srq_resize(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_resize_srq_req *r = rq;
    const struct device_limits *l = &s->device->limits;
    struct client_srq *q = find(s, r->srq, rp);
    struct pm_resize_srq_rep *rep;

    if (!q)
        return -EINVAL;
    if (l->absent & PM_ABSENT_SRQ_RESIZE)
        return control_fail(rp, -EINVAL, "shared receive queues of the device have one size for ever");
    if (r->max_wr == 0 || r->max_wr > l->max_srq_wr)
        return control_fail(rp, -EINVAL, "a shared receive queue has 1 to %u requests, not %u", l->max_srq_wr,
                            r->max_wr);
    if (q->tm.list)
        return control_fail(rp, -EINVAL, "a shared receive queue that matches tags has one size for ever");
    int rc = check_size(q, r->max_wr, rp);
    if (rc)
        return rc;
    segment_destroy(&q->next);
    rc = segment_create(&q->next, &s->owner, "pumice-srq", segment_bytes(ring_slots(r->max_wr), q->ring.stride), rp);
    if (rc)
        return control_explain(rp, rc, "the daemon is out of memory");
    segment_guard(&q->next, &s->memory_lost);
    q->next_max_wr = r->max_wr;
    rep = control_payload(rp, sizeof(*rep));
    *rep = (struct pm_resize_srq_rep){
        .max_wr = r->max_wr,
        .slots = ring_slots(r->max_wr),
        .stride = q->ring.stride,
        .offset = RING_OFFSET,
        .size = q->next.size,
    };
    control_attach(rp, segment_take_fd(&q->next));
    return 0;
}

int client_srq_switch(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct client_srq *q = find(s, h->handle, rp);

    if (!q)
        return -EINVAL;
    if (!q->next.p)
        return control_fail(rp, -EINVAL, "shared receive queue %u is not being resized", h->handle);
    int rc = check_size(q, q->next_max_wr, rp);
    if (rc == 0 && (rc = go_over(q, rp)) != 0)
        control_explain(rp, rc, rc == -EINVAL ? "more requests are outstanding" : "the daemon is out of memory");
    if (rc)
        segment_destroy(&q->next);
    return rc;
}
