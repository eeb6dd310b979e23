// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/create_cq.h"
#include "src/verbs/control/event_ack.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "src/verbs/base/explain.h"
#include "src/verbs/base/lock.h"
#include "src/verbs/control/comp_channel.h"
#include "src/verbs/datapath/cq_ex.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"
#include "src/verbs/session/segment.h"

/* Maps a segment of slots entries. Closes the descriptor in any case. Returns 0 or -errno. */
static int map_ring(int fd, size_t size, uint32_t slots, struct pm_cq_page **page)
{
    *page = vb_segment_map(fd, size);
    if (!*page)
        return -errno;
    if (slots && vb_segment_fits(size, PM_CQ_ENTRIES, slots, sizeof(struct pm_cqe), 1, sizeof(struct pm_cqe)))
        return 0;
    munmap(*page, size);
    return -EPROTO;
}

static void set_ring(struct vb_cq *cq, struct pm_cq_page *page, size_t size, uint32_t slots)
{
    cq->page = page;
    cq->entries = (struct pm_cqe *)((char *)page + PM_CQ_ENTRIES);
    cq->size = size;
    cq->mask = slots - 1;
    cq->cq.cqe = (int)slots;
}

/* Asks the daemon for the CQ, maps its segment, and puts the CQ into the table of the context. Returns 0 or -errno. */
static int create(struct vb_context *c, struct vb_cq *cq, const struct pm_create_cq_req *req)
{
    struct pm_create_cq_rep rep = {0};
    struct pm_cq_page *page;
    int fd;
    int rc = vb_call_segment(c, PM_OP_CREATE_CQ, req, sizeof(*req), &rep, sizeof(rep), &fd);
    if (rc && rep.handle) /* the daemon made it, but its descriptor did not fit into this process */
        vb_drop(&c->vctx.context, PM_OP_DESTROY_CQ, rep.handle);
    if (rc)
        return rc;
    rc = map_ring(fd, rep.size, rep.slots, &page);
    if (rc) {
        vb_drop(&c->vctx.context, PM_OP_DESTROY_CQ, rep.handle);
        return rc;
    }
    set_ring(cq, page, rep.size, rep.slots);
    cq->doorbell = cq->cq.channel ? rep.doorbell : PM_DOORBELLS;
    cq->cq.handle = rep.handle;
    pthread_mutex_lock(&c->lock);
    rc = vb_table_set(&c->cqs, rep.handle, cq);
    if (rc == 0 && cq->cq.channel)
        cq->cq.channel->refcnt++;
    pthread_mutex_unlock(&c->lock);
    if (rc) {
        vb_drop(&c->vctx.context, PM_OP_DESTROY_CQ, rep.handle);
        munmap(page, rep.size);
    }
    return rc;
}

/* Checks the attributes and makes the CQ. Returns NULL with errno on failure. */
static struct vb_cq *make(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
    struct vb_context *c = vb_ctx(context);
    struct pm_create_cq_req req = {.cqe = attr->cqe, .comp_vector = attr->comp_vector, .flags = attr->flags};
    if (attr->cqe == 0 || attr->cqe > c->caps.max_cqe || attr->comp_vector >= (uint32_t)context->num_comp_vectors)
        return vb_null(
            vb_explain(-EINVAL,
                       "a completion queue with cqe %u and comp_vector %u: this device has cqe 1 to %u, and %d "
                       "vectors",
                       attr->cqe, attr->comp_vector, c->caps.max_cqe, context->num_comp_vectors));
    /* Another channel of this context may have the same handle. */
    if (attr->channel && attr->channel->context != context)
        return vb_null(-EINVAL);
    struct vb_cq *cq = aligned_alloc(64, (sizeof(*cq) + 63) & ~(size_t)63);
    if (!cq)
        return NULL;
    memset(cq, 0, sizeof(*cq));
    cq->cq.context = context;
    cq->cq.cq_context = attr->cq_context;
    cq->cq.channel = attr->channel;
    cq->unlocked = attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    cq->overruns = attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    if (attr->channel)
        req.channel = vb_channel(attr->channel)->handle;
    vb_lock_init(&cq->lock);
    pthread_mutex_init(&cq->notify_lock, NULL);
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    vb_cq_ex_ops(&cq->ex, attr->wc_flags);
    int rc = create(c, cq, &req);
    if (rc) {
        free(cq);
        return vb_null(rc);
    }
    return cq;
}

VB_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                       struct ibv_comp_channel *channel, int comp_vector)
{
    if (cqe < 1 || comp_vector < 0)
        return vb_null(-EINVAL);
    struct ibv_cq_init_attr_ex attr = {
        .cqe = (uint32_t)cqe, .cq_context = cq_context, .channel = channel, .comp_vector = (uint32_t)comp_vector};
    struct vb_cq *cq = make(context, &attr);
    return cq ? &cq->cq : NULL;
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    const uint32_t absent = vb_ctx(context)->caps.absent;
    const uint64_t times = absent & PM_ABSENT_CQ_TIMES
                               ? 0
                               : IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    const uint64_t fields = IBV_WC_STANDARD_FLAGS | times | IBV_WC_EX_WITH_TM_INFO;
    const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    struct ibv_cq_init_attr_ex a = *attr;
    if (a.comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
        return vb_null(-EINVAL);
    if (!(a.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
        a.flags = 0;
    if ((a.wc_flags & ~fields) || (a.flags & ~flags))
        return vb_null(vb_explain(
            -EOPNOTSUPP, "a completion queue with wc_flags 0x%llx and flags 0x%x: this device has 0x%llx and 0x%x",
            (unsigned long long)a.wc_flags, a.flags, (unsigned long long)fields, flags));
    struct vb_cq *cq = make(context, &a);
    if (!cq)
        return NULL;
    cq->extended = true;
    return &cq->ex;
}

/* Asks the daemon to move the waiting completions to the new ring, which is mapped. */
static int switch_ring(struct vb_context *c, struct vb_cq *cq)
{
    struct pm_handle req = {cq->cq.handle};
    struct pm_switch_cq_rep rep;
    int rc = vb_call_simple(c, PM_OP_SWITCH_CQ, &req, sizeof(req), &rep, sizeof(rep));
    if (rc == 0)
        cq->consumer = rep.consumer;
    return rc;
}

VB_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct vb_cq *cq = vb_cq(ibcq);
    struct vb_context *c = vb_ctx(ibcq->context);
    struct pm_resize_cq_req req = {.cq = ibcq->handle, .cqe = (uint32_t)cqe};
    struct pm_resize_cq_rep rep;
    struct pm_cq_page *page;
    int fd;
    if (!vb_owned(c)) /* at the fork, another thread of the parent may have held the lock */
        return vb_err(-EIO);
    if (cqe < 1 || (uint32_t)cqe > c->caps.max_cqe)
        return vb_err(-EINVAL);
    /* Between the copy by the daemon and the switch to the new ring, no thread may take a completion or request an
     * event. */
    vb_cq_lock(cq);
    pthread_mutex_lock(&cq->notify_lock);
    int rc = vb_call_segment(c, PM_OP_RESIZE_CQ, &req, sizeof(req), &rep, sizeof(rep), &fd);
    if (rc == 0)
        rc = map_ring(fd, rep.size, rep.slots, &page);
    if (rc == 0 && (rc = switch_ring(c, cq)) != 0)
        munmap(page, rep.size);
    if (rc == 0) {
        /* After the death of the daemon, other threads look into all CQs under this lock. */
        pthread_mutex_lock(&c->lock);
        munmap(cq->page, cq->size);
        set_ring(cq, page, rep.size, rep.slots);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&cq->notify_lock);
    vb_cq_unlock(cq);
    return vb_err(rc);
}

int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    struct pm_modify_cq_req req = {
        .cq = cq->handle, .count = attr->moderate.cq_count, .period = attr->moderate.cq_period};
    if (attr->attr_mask & ~(uint32_t)(IBV_CQ_ATTR_RESERVED - 1))
        return vb_err(-EOPNOTSUPP);
    if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
        return 0;
    if (attr->moderate.cq_period > vb_ctx(cq->context)->caps.max_cq_period)
        return vb_err(vb_explain(-EINVAL, "cq_period %u: this device has at most %u", attr->moderate.cq_period,
                                 vb_ctx(cq->context)->caps.max_cq_period));
    return vb_err(vb_call_simple(vb_ctx(cq->context), PM_OP_MODIFY_CQ, &req, sizeof(req), NULL, 0));
}

VB_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct vb_cq *cq = vb_cq(ibcq);
    struct vb_context *c = vb_ctx(ibcq->context);
    if (vb_owned_quiet(c)) {
        struct pm_handle req = {ibcq->handle};
        /* Does a QP or an SRQ use it? The library checks that itself, so that it also works without a daemon. */
        vb_cq_lock(cq);
        int rc = cq->senders || cq->receivers || cq->srqs ? -EBUSY : 0;
        vb_cq_unlock(cq);
        if (rc == 0)
            rc = vb_call_simple(c, PM_OP_DESTROY_CQ, &req, sizeof(req), NULL, 0);
        if (rc && rc != -EIO)
            return vb_err(rc);
        /* Without an entry in the table the CQ gets no more events. So the counts are final. */
        pthread_mutex_lock(&c->lock);
        if (vb_table_get(&c->cqs, ibcq->handle) == cq) /* else another CQ has the handle already */
            vb_table_set(&c->cqs, ibcq->handle, NULL);
        if (ibcq->channel)
            ibcq->channel->refcnt--;
        pthread_mutex_unlock(&c->lock);
        vb_event_await_acks(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, cq->comp_events);
        vb_event_await_acks(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, cq->async_events);
    } else if (ibcq->channel) {
        ibcq->channel->refcnt--;
    }
    munmap(cq->page, cq->size);
    free(cq);
    return 0;
}
