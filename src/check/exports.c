// SPDX-License-Identifier: BSD-2-Clause
/* The functions of the verbs library that the checker replaces. Each calls the one behind it. */
#include "src/check/exports.h"

#include <errno.h>

#include "src/check/context.h"
#include "src/check/dead_keys.h"
#include "src/check/finding.h"
#include "src/check/next.h"
#include "src/check/records.h"
#include "src/check/wr.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* --- devices, domains, channels ---------------------------------------------------------------- */

static void made(enum kind kind, const void *object, const void *where)
{
    records_lock();
    record_add(kind, object, sizeof(struct record), where);
    records_unlock();
}

static void destroyed(enum kind kind, const void *object, int rc, const void *where)
{
    records_lock();
    struct record *r = record_find(kind, object, where);
    if (r)
        record_destroyed(r, rc, where);
    records_unlock();
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = NEXT(ibv_open_device, device);

    context_opened(context, CALLER);
    return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
    context_closing(context);
    int rc = NEXT(ibv_close_device, context);
    if (rc)
        context_not_closed(context);
    destroyed(KIND_CONTEXT, context, rc, CALLER);
    return rc;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = NEXT(ibv_alloc_pd, context);

    made(KIND_PD, pd, CALLER);
    return pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    int rc = NEXT(ibv_dealloc_pd, pd);

    destroyed(KIND_PD, pd, rc, CALLER);
    return rc;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = NEXT(ibv_create_comp_channel, context);

    made(KIND_CHANNEL, channel, CALLER);
    return channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    int rc = NEXT(ibv_destroy_comp_channel, channel);

    destroyed(KIND_CHANNEL, channel, rc, CALLER);
    return rc;
}

/* --- memory regions ---------------------------------------------------------------------------- */

static struct ibv_mr *registered(struct ibv_mr *mr, const void *where)
{
    records_lock();
    struct mr_record *r = record_add(KIND_MR, mr, sizeof(*r), where);
    if (r) {
        r->context = mr->context;
        r->lkey = mr->lkey;
        dead_keys_remove(mr->context, mr->lkey);
    }
    records_unlock();
    return mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return registered(NEXT(ibv_reg_mr, pd, addr, length, access), CALLER);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return registered(NEXT(ibv_reg_mr_iova, pd, addr, length, iova, access), CALLER);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    return registered(NEXT(ibv_reg_mr_iova2, pd, addr, length, iova, access), CALLER);
}

/* A request whose data the device may still read or fill. Receive requests are left out: programs that end often have some,
 * and no message comes any more. */
static void look_for_key(void *record, void *arg)
{
    const struct qp_record *q = record;
    const struct mr_record *mr = arg;
    const struct request *r;

    if (q->qp->context != mr->context || q->failed)
        return;
    TAILQ_FOREACH (r, &q->sends, link) {
        for (unsigned i = 0; r->signaled && i < r->num_sge; i++) {
            if (r->sge[i].lkey != mr->lkey || r->sge[i].length == 0)
                continue;
            finding_add(
                RULE_DEREG, mr->r.where,
                "QP 0x%x: the region with key 0x%x is deregistered, but the %s with wr_id %llu has no completion yet",
                q->qp->qp_num, mr->lkey, request_kind(r->opcode), (unsigned long long)r->wr_id);
            return;
        }
    }
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    records_lock();
    struct mr_record *r = record_find(KIND_MR, mr, CALLER);
    struct mr_record gone = r ? *r : (struct mr_record){0};
    if (r) {
        gone.r.where = CALLER;
        if (rule_is_on(RULE_DEREG))
            records_each(KIND_QP, look_for_key, &gone);
        dead_keys_add(r->context, r->lkey); /* before another thread gets the key for another region */
    }
    records_unlock();
    int rc = NEXT(ibv_dereg_mr, mr);
    if (r && rc) {
        records_lock();
        dead_keys_remove(gone.context, gone.lkey);
        records_unlock();
    }
    if (r)
        destroyed(KIND_MR, mr, rc, CALLER);
    return rc;
}

/* --- queues ------------------------------------------------------------------------------------ */

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq *cq = NEXT(ibv_create_cq, context, cqe, cq_context, channel, comp_vector);

    context_made_cq(cq, CALLER);
    return cq;
}

/* The library waits for the acknowledgement of events, so the finding comes before the call. */
static void check_acknowledged(struct ibv_cq *cq, const void *where)
{
    records_lock();
    const struct cq_record *r = record_find(KIND_CQ, cq, where);
    if (r && r->events != r->acked && rule_is_on(RULE_UNACKED))
        finding_add(RULE_UNACKED, where,
                    "a CQ is destroyed, but %u of its %u events were not acknowledged (ibv_ack_cq_events): the call "
                    "waits for them",
                    r->events - r->acked, r->events);
    records_unlock();
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    check_acknowledged(cq, CALLER);
    int rc = NEXT(ibv_destroy_cq, cq);
    destroyed(KIND_CQ, cq, rc, CALLER);
    return rc;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = NEXT(ibv_create_srq, pd, attr);

    context_made_srq(srq, CALLER);
    return srq;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    int rc = NEXT(ibv_destroy_srq, srq);

    destroyed(KIND_SRQ, srq, rc, CALLER);
    return rc;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp = NEXT(ibv_create_qp, pd, attr);

    context_made_qp(qp, attr->sq_sig_all, false, CALLER);
    return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int rc = NEXT(ibv_modify_qp, qp, attr, mask);

    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, CALLER);
    if (rc == 0 && q && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
        request_remove_all(&q->sends);
        request_remove_all(&q->receives);
        q->failed = false;
    }
    records_unlock();
    return rc;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    int rc = NEXT(ibv_destroy_qp, qp);

    records_lock();
    if (rc == 0)
        wr_forget(qp);
    records_unlock();
    destroyed(KIND_QP, qp, rc, CALLER);
    return rc;
}

/* --- events ------------------------------------------------------------------------------------ */

struct wait {
    const struct ibv_comp_channel *channel;
    const void *where;
};

static void check_wait(void *record, void *arg)
{
    const struct cq_record *r = record;
    const struct wait *w = arg;

    if (r->cq->channel == w->channel && r->armed && r->unsafe)
        finding_add(RULE_LOST_EVENT, w->where,
                    "the program waits for an event of a CQ that it did not poll since it armed it: a completion that "
                    "came before "
                    "makes no event");
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct wait w = {channel, CALLER};

    records_lock();
    if (rule_is_on(RULE_LOST_EVENT))
        records_each(KIND_CQ, check_wait, &w);
    records_unlock();
    int rc = NEXT(ibv_get_cq_event, channel, cq, cq_context);
    if (rc)
        return rc;
    records_lock();
    struct cq_record *r = record_find(KIND_CQ, *cq, CALLER);
    if (r) {
        r->events++;
        r->armed = false;
    }
    records_unlock();
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
    records_lock();
    struct cq_record *r = record_find(KIND_CQ, cq, CALLER);
    if (r)
        r->acked += n;
    records_unlock();
    NEXT(ibv_ack_cq_events, cq, n);
}
