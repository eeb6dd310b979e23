// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters, which rdma-core has since version 65. The daemon counts. Reading a value is a load from the
 * session page. All changes by the application are requests to the daemon, so that no count is lost beside them.
 *
 * Programs read a counter again and again until it has the value that they want. A read that finds nothing new is like
 * an empty poll of a CQ: it may give the processor to the daemon. */
#include <infiniband/verbs.h>

#include <stdlib.h>
#include <string.h>

#include "src/verbs/base/verbs_v65.h"
#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/fork.h"

enum entry { DONE, FAILED };

struct comp_cntr {
    struct vb_comp_cntr_v65 base;
    _Atomic uint64_t *value[2]; /* by enum entry; the daemon writes them */
    _Atomic uint64_t seen[2]; /* as last read by any thread */
    struct vb_poll_queue polled; /* the threads that read it */
};

static struct comp_cntr *own(struct ibv_comp_cntr *c)
{
    return (struct comp_cntr *)(void *)c;
}

/* A later version may have a longer struct. This library sets the members to 0 that it does not know. */
VB_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t size)
{
    const struct vb_comp_cntr_caps_v65 known = {
        .max_value = UINT64_MAX, .max_counters = PM_COMP_CNTRS, .ops = VB_COMP_CNTR_ALL};
    if (vb_ctx(context)->caps.absent & PM_ABSENT_COMP_CNTR)
        return vb_err(-EOPNOTSUPP);
    if (size < sizeof(known))
        return vb_err(-EINVAL);
    memset(caps, 0, size);
    memcpy(caps, &known, sizeof(known));
    return 0;
}

VB_EXPORT struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr)
{
    const struct vb_comp_cntr_attr_v65 *a = (const void *)attr;
    struct vb_context *ctx = vb_ctx(context);
    struct pm_create_comp_cntr_req req = {.type = a->type};
    struct pm_handle rep;
    if (a->comp_mask || a->flags || ctx->caps.absent & PM_ABSENT_COMP_CNTR)
        return vb_null(-EOPNOTSUPP);
    struct comp_cntr *c = calloc(1, sizeof(*c));
    if (!c)
        return vb_null(-ENOMEM);
    int rc = vb_call_simple(ctx, PM_OP_CREATE_COMP_CNTR, &req, sizeof(req), &rep, sizeof(rep));
    if (rc == 0 && (rep.handle == 0 || rep.handle > PM_COMP_CNTRS))
        rc = -EPROTO;
    if (rc) {
        free(c);
        return vb_null(rc);
    }
    struct pm_comp_cntr *shown = &ctx->page->comp_cntr[rep.handle - 1];
    c->base.context = context;
    c->base.handle = rep.handle;
    c->value[DONE] = &shown->done;
    c->value[FAILED] = &shown->failed;
    return (struct ibv_comp_cntr *)(void *)c;
}

VB_EXPORT int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr)
{
    struct comp_cntr *c = own(cntr);
    int rc = vb_drop(c->base.context, PM_OP_DESTROY_COMP_CNTR, c->base.handle);
    if (rc == 0)
        free(c);
    return rc;
}

static int modify(struct ibv_comp_cntr *cntr, enum entry entry, bool add, uint64_t value)
{
    const struct comp_cntr *c = own(cntr);
    struct pm_modify_comp_cntr_req req = {
        .comp_cntr = c->base.handle, .entry = (uint16_t)entry, .add = add, .value = value};
    return vb_err(vb_call_simple(vb_ctx(c->base.context), PM_OP_MODIFY_COMP_CNTR, &req, sizeof(req), NULL, 0));
}

VB_EXPORT int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
    return modify(cntr, DONE, false, value);
}
VB_EXPORT int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
    return modify(cntr, FAILED, false, value);
}
VB_EXPORT int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
    return modify(cntr, DONE, true, amount);
}
VB_EXPORT int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
    return modify(cntr, FAILED, true, amount);
}

/* Acquire: pairs with the daemon's release store. A thread that sees a count also sees the data of the counted
 * requests. Without the daemon the value never changes again: then a program that waits for a value must get an error. */
static int read_value(struct ibv_comp_cntr *cntr, enum entry entry, uint64_t *value)
{
    struct comp_cntr *c = own(cntr);
    struct vb_context *ctx = vb_ctx(c->base.context);
    if (!vb_owned(ctx))
        return vb_err(-EIO);
    uint64_t now = atomic_load_explicit(c->value[entry], memory_order_acquire);
    if (now == atomic_load_explicit(&c->seen[entry], memory_order_relaxed)) {
        vb_poll_wait_at(ctx, &c->polled);
        now = atomic_load_explicit(c->value[entry], memory_order_acquire);
    }
    if (atomic_load_explicit(&ctx->gone, memory_order_relaxed))
        return vb_err(-EIO);
    atomic_store_explicit(&c->seen[entry], now, memory_order_relaxed);
    *value = now;
    return 0;
}

VB_EXPORT int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
    return read_value(cntr, DONE, value);
}
VB_EXPORT int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
    return read_value(cntr, FAILED, value);
}

VB_EXPORT int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
                                      struct ibv_qp_attach_comp_cntr_attr *attr)
{
    const struct vb_attach_comp_cntr_v65 *a = (const void *)attr;
    const struct comp_cntr *c = own(cntr);
    struct pm_attach_comp_cntr_req req = {.comp_cntr = c->base.handle, .qpn = qp->qp_num, .ops = a->ops};
    if (a->comp_mask)
        return vb_err(-EOPNOTSUPP);
    if (c->base.context != qp->context)
        return vb_err(-EINVAL);
    return vb_err(vb_call_simple(vb_ctx(qp->context), PM_OP_ATTACH_COMP_CNTR, &req, sizeof(req), NULL, 0));
}
