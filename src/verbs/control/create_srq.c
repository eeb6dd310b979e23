// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/create_srq.h"
#include "src/verbs/control/event_ack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/verbs/base/explain.h"
#include "src/verbs/base/lock.h"
#include "src/verbs/control/xrcd.h"
#include "src/verbs/datapath/tm.h"
#include "src/verbs/memory/pd.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"
#include "src/verbs/session/segment.h"

/* Adds the free WQE indexes from the old capacity up to capacity. Returns 0, or -ENOMEM: nothing has changed. The
 * caller holds the lock of the SRQ. */
static int grow(struct vb_srq *srq, uint32_t capacity)
{
    if (capacity <= srq->capacity)
        return 0;
    uint8_t *reqs = vb_pd_alloc(srq->srq.pd, capacity * srq->req_size, VB_ALLOC_SRQ);
    if (!reqs)
        return -ENOMEM;
    if (srq->reqs) {
        memcpy(reqs, srq->reqs, srq->capacity * srq->req_size);
        vb_pd_free(srq->srq.pd, srq->reqs, VB_ALLOC_SRQ);
    }
    srq->reqs = reqs;
    for (uint32_t i = capacity; i-- > srq->capacity;) {
        vb_srq_req(srq, i)->next = srq->free;
        srq->free = i;
    }
    srq->capacity = capacity;
    return 0;
}

static void set_ring(struct vb_srq *srq, void *base, size_t size, uint32_t offset, uint32_t slots, uint32_t stride,
                     uint32_t max_wr)
{
    srq->page = base;
    srq->size = size;
    srq->ring = (uint8_t *)base + offset;
    srq->mask = slots - 1;
    srq->stride = stride;
    srq->max_wr = max_wr;
}

static bool ring_fits(uint64_t size, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr,
                      uint32_t max_sge)
{
    return slots && max_wr && size >= sizeof(struct pm_srq_page) &&
           vb_segment_fits(size, offset, slots, stride, max_wr,
                           sizeof(struct pm_recv_wqe) + (uint64_t)max_sge * sizeof(struct pm_sge));
}

/* Does the ring of list operations of a TM-SRQ lie inside the segment? */
static bool ops_fit(const struct vb_context *c, const struct pm_create_srq_req *req,
                    const struct pm_create_srq_rep *rep)
{
    return rep->ops_slots &&
           vb_segment_fits(rep->size, rep->ops_offset, rep->ops_slots, rep->ops_stride, req->max_ops,
                           sizeof(struct pm_tm_op) + (uint64_t)c->caps.tm_max_sge * sizeof(struct pm_sge));
}

/* Asks the daemon for the SRQ, maps its segment, and puts the SRQ into the table of the context. Returns 0 or
 * -errno. */
static int create(struct vb_context *c, struct vb_srq *srq, const struct pm_create_srq_req *req)
{
    struct pm_create_srq_rep rep = {0};
    int fd;
    int rc = vb_call_segment(c, PM_OP_CREATE_SRQ, req, sizeof(*req), &rep, sizeof(rep), &fd);
    if (rc && rep.handle) /* the daemon made it, but its descriptor did not fit into this process */
        vb_drop(&c->vctx.context, PM_OP_DESTROY_SRQ, rep.handle);
    if (rc)
        return rc;
    void *base = vb_segment_map(fd, rep.size);
    if (!base)
        rc = -errno;
    else if (rep.doorbell >= PM_DOORBELLS ||
             !ring_fits(rep.size, rep.offset, rep.slots, rep.stride, rep.max_wr, rep.max_sge) ||
             (req->max_num_tags && !ops_fit(c, req, &rep)))
        rc = -EPROTO;
    else if (req->max_num_tags && !(srq->tm = vb_tm_new(base, req, &rep, c->caps.tm_max_sge)))
        rc = -ENOMEM;
    if (rc == 0) {
        set_ring(srq, base, rep.size, rep.offset, rep.slots, rep.stride, rep.max_wr);
        srq->max_sge = rep.max_sge;
        srq->doorbell = rep.doorbell;
        srq->srqn = rep.srqn;
        srq->srq.handle = rep.handle;
        srq->req_size = sizeof(struct vb_srq_req) + rep.max_sge * sizeof(struct pm_sge);
        srq->free = VB_SRQ_NONE;
        rc = grow(srq, rep.max_wr);
    }
    if (rc == 0) {
        pthread_mutex_lock(&c->lock);
        rc = vb_table_set(&c->srqs, rep.handle, srq);
        pthread_mutex_unlock(&c->lock);
    }
    if (rc) {
        vb_drop(&c->vctx.context, PM_OP_DESTROY_SRQ, rep.handle);
        if (srq->reqs)
            vb_pd_free(srq->srq.pd, srq->reqs, VB_ALLOC_SRQ);
        free(srq->tm);
        if (base)
            munmap(base, rep.size);
    }
    return rc;
}

/* Checks the limits that the application asks for. */
static int check(const struct vb_context *c, const struct ibv_srq_attr *a)
{
    if (c->caps.max_srq == 0)
        return vb_explain(-EOPNOTSUPP, "this device has no shared receive queues");
    if (a->max_wr == 0 || a->max_wr > c->caps.max_srq_wr || a->max_sge > c->caps.max_srq_sge ||
        a->srq_limit > a->max_wr)
        return vb_explain(
            -EINVAL,
            "a shared receive queue with max_wr %u, max_sge %u and srq_limit %u: this device has max_wr 1 "
            "to %u and max_sge up to %u, and srq_limit is up to max_wr",
            a->max_wr, a->max_sge, a->srq_limit, c->caps.max_srq_wr, c->caps.max_srq_sge);
    return 0;
}

/* Creates an SRQ. Fields of *a that its type does not have must be 0. Stores the granted limits in a->attr. */
static struct ibv_srq *make(struct ibv_srq_init_attr_ex *a)
{
    struct vb_context *c = vb_ctx(a->pd->context);
    struct ibv_srq_attr *attr = &a->attr;
    int rc = check(c, attr);
    if (rc)
        return vb_null(rc);
    struct vb_srq *srq = calloc(1, sizeof(*srq));
    if (!srq)
        return NULL;
    struct pm_create_srq_req req = {.pd = a->pd->handle,
                                    .type = a->srq_type,
                                    .xrcd = a->xrcd ? vb_xrcd(a->xrcd)->handle : 0,
                                    .cq = a->cq ? a->cq->handle : 0,
                                    .max_wr = attr->max_wr,
                                    .max_sge = attr->max_sge,
                                    .limit = attr->srq_limit,
                                    .max_num_tags = a->tm_cap.max_num_tags,
                                    .max_ops = a->tm_cap.max_ops};
    srq->srq.context = a->pd->context;
    srq->srq.srq_context = a->srq_context;
    srq->srq.pd = a->pd;
    srq->type = a->srq_type;
    srq->cq = a->cq ? vb_cq(a->cq) : NULL;
    vb_lock_init(&srq->lock);
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    rc = create(c, srq, &req);
    if (rc) {
        free(srq);
        return vb_null(rc);
    }
    if (srq->cq) {
        vb_cq_lock(srq->cq);
        srq->next_of_cq = srq->cq->srqs;
        srq->cq->srqs = srq;
        vb_cq_unlock(srq->cq);
    }
    attr->max_wr = srq->max_wr;
    attr->max_sge = srq->max_sge;
    return &srq->srq;
}

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex a = {
        .srq_context = attr->srq_context, .attr = attr->attr, .srq_type = IBV_SRQT_BASIC, .pd = pd};
    struct ibv_srq *srq = make(&a);
    attr->attr = a.attr;
    return srq;
}

static struct ibv_srq *make_xrc(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    struct ibv_srq_init_attr_ex a = *attr;
    if ((a.comp_mask & all) != all || !a.pd || !a.xrcd || !a.cq)
        return vb_null(-EINVAL);
    if (a.pd->context != context || a.xrcd->context != context || a.cq->context != context)
        return vb_null(-EINVAL);
    a.tm_cap = (struct ibv_tm_cap){0};
    struct ibv_srq *srq = make(&a);
    attr->attr = a.attr;
    return srq;
}

static struct ibv_srq *make_tm(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    const struct pm_open_rep *caps = &vb_ctx(context)->caps;
    struct ibv_srq_init_attr_ex a = *attr;
    if (caps->tm_max_num_tags == 0)
        return vb_null(-EOPNOTSUPP);
    if ((a.comp_mask & all) != all || !a.pd || !a.cq || a.pd->context != context || a.cq->context != context ||
        !vb_cq(a.cq)->extended)
        return vb_null(-EINVAL);
    if (a.tm_cap.max_num_tags == 0 || a.tm_cap.max_num_tags > caps->tm_max_num_tags || a.tm_cap.max_ops == 0 ||
        a.tm_cap.max_ops > caps->tm_max_ops)
        return vb_null(-EINVAL);
    a.xrcd = NULL;
    struct ibv_srq *srq = make(&a);
    attr->attr = a.attr;
    return srq;
}

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
    if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
        return vb_null(-EOPNOTSUPP);
    switch (type) {
    case IBV_SRQT_XRC:
        return make_xrc(context, attr);
    case IBV_SRQT_TM:
        return make_tm(context, attr);
    case IBV_SRQT_BASIC: /* the inline function of the header calls this only if other fields are set, too */
        return vb_null(-EINVAL);
    default:
        return vb_null(-EOPNOTSUPP);
    }
}

int vb_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
    const struct vb_srq *srq = vb_srq(ibsrq);
    if (srq->type != IBV_SRQT_XRC)
        return EINVAL; /* other SRQs have no number on the wire */
    *num = srq->srqn;
    return 0;
}

/* Switches to a new ring, and adds WQE indexes if they are needed. The caller holds the lock of the SRQ, so no thread
 * posts meanwhile. On failure the SRQ is unchanged. */
static int resize(struct vb_srq *srq, uint32_t max_wr)
{
    struct vb_context *c = vb_ctx(srq->srq.context);
    struct pm_resize_srq_req req = {.srq = srq->srq.handle, .max_wr = max_wr};
    struct pm_handle handle = {srq->srq.handle};
    struct pm_resize_srq_rep rep;
    int fd;
    if (max_wr == 0 || max_wr > c->caps.max_srq_wr || max_wr < srq->outstanding || srq->tm)
        return -EINVAL;
    int rc = grow(srq, max_wr);
    if (rc == 0)
        rc = vb_call_segment(c, PM_OP_RESIZE_SRQ, &req, sizeof(req), &rep, sizeof(rep), &fd);
    if (rc)
        return rc;
    void *base = vb_segment_map(fd, rep.size);
    if (!base)
        return -errno;
    if (!ring_fits(rep.size, rep.offset, rep.slots, rep.stride, rep.max_wr, srq->max_sge))
        rc = -EPROTO;
    else
        rc = vb_call_simple(c, PM_OP_SWITCH_SRQ, &handle, sizeof(handle), NULL, 0);
    if (rc) {
        munmap(base, rep.size);
        return rc;
    }
    munmap(srq->page, srq->size);
    set_ring(srq, base, rep.size, rep.offset, rep.slots, rep.stride,
             rep.max_wr < srq->capacity ? rep.max_wr : srq->capacity);
    return 0;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
    struct vb_srq *srq = vb_srq(ibsrq);
    struct vb_context *c = vb_ctx(ibsrq->context);
    int rc = mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ? -EINVAL : 0;
    if (!vb_owned(c))
        return vb_err(-EIO);
    pthread_mutex_lock(&srq->lock);
    uint32_t most = rc == 0 && mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
    if (rc == 0 && (mask & IBV_SRQ_LIMIT) && attr->srq_limit > most)
        rc = -EINVAL;
    if (rc == 0 && (mask & IBV_SRQ_MAX_WR))
        rc = resize(srq, attr->max_wr);
    pthread_mutex_unlock(&srq->lock);
    if (rc == 0 && (mask & IBV_SRQ_LIMIT)) {
        struct pm_modify_srq_req req = {.srq = ibsrq->handle, .limit = attr->srq_limit};
        rc = vb_call_simple(c, PM_OP_MODIFY_SRQ, &req, sizeof(req), NULL, 0);
    }
    return vb_err(rc);
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct pm_handle req = {ibsrq->handle};
    struct pm_query_srq_rep rep;
    int rc = vb_call_simple(vb_ctx(ibsrq->context), PM_OP_QUERY_SRQ, &req, sizeof(req), &rep, sizeof(rep));
    if (rc)
        return vb_err(rc);
    *attr = (struct ibv_srq_attr){.max_wr = rep.max_wr, .max_sge = rep.max_sge, .srq_limit = rep.limit};
    return 0;
}

/* Takes the SRQ out of the list of its CQ. The caller holds the lock of the CQ. */
static void leave_cq(struct vb_srq *srq)
{
    struct vb_srq **at = &srq->cq->srqs;
    while (*at != srq)
        at = &(*at)->next_of_cq;
    *at = srq->next_of_cq;
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct vb_srq *srq = vb_srq(ibsrq);
    struct vb_context *c = vb_ctx(ibsrq->context);
    if (atomic_load(&srq->users)) /* the library checks that itself, so that it also works without a daemon */
        return vb_err(-EBUSY);
    if (vb_owned_quiet(c)) {
        struct pm_handle req = {ibsrq->handle};
        int rc = vb_call_simple(c, PM_OP_DESTROY_SRQ, &req, sizeof(req), NULL, 0);
        if (rc && rc != -EIO)
            return vb_err(rc);
        /* The daemon writes no more completions of this SRQ. A basic SRQ has no QP any more, so none of its completions
         * waits in a CQ. Completions of the other types wait in one CQ. Under the lock of that CQ no thread looks at
         * the SRQ. */
        if (srq->cq) {
            vb_cq_lock(srq->cq);
            vb_cq_purge_srq(srq->cq, ibsrq->handle);
            leave_cq(srq);
        }
        pthread_mutex_lock(&c->lock);
        if (vb_table_get(&c->srqs, ibsrq->handle) == srq) /* else another SRQ has the handle already */
            vb_table_set(&c->srqs, ibsrq->handle, NULL);
        pthread_mutex_unlock(&c->lock);
        if (srq->cq)
            vb_cq_unlock(srq->cq);
        vb_event_await_acks(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, srq->async_events);
    }
    munmap(srq->page, srq->size);
    vb_pd_free(ibsrq->pd, srq->reqs, VB_ALLOC_SRQ);
    free(srq->tm);
    free(srq);
    return 0;
}
