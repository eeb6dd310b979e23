// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/queue_verbs.h"

#include <errno.h>

#include "src/check/base/finding.h"
#include "src/check/base/next.h"
#include "src/check/base/trace.h"
#include "src/check/connect/connect.h"
#include "src/check/connect/peers.h"
#include "src/check/objects/async_events.h"
#include "src/check/objects/records.h"
#include "src/check/requests/context.h"
#include "src/check/requests/wr.h"
#include "src/check/verbs/export.h"

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq *cq = NEXT(ibv_create_cq, context, cqe, cq_context, channel, comp_vector);

    context_made_cq(cq, NULL, TRACE_HERE);
    return cq;
}

/* The library waits for the acknowledgement of events, so the finding comes before the call. */
static void check_async_events(const void *object, const char *what, const struct trace *where)
{
    struct finding_place place = {.where = where, .whose = "the event was taken"};

    records_lock();
    unsigned n = async_events_open(object, &place.other);
    if (n && rule_is_on(RULE_UNACKED))
        finding_add(RULE_UNACKED, &place,
                    "a %s is destroyed, but %u of its asynchronous events %s not acknowledged (ibv_ack_async_event): "
                    "the call waits for %s",
                    what, n, n == 1 ? "was" : "were", n == 1 ? "it" : "them");
    records_unlock();
}

static void check_events(struct ibv_cq *cq, const struct trace *where)
{
    check_async_events(cq, "CQ", where);
    records_lock();
    const struct cq_record *r = record_find(KIND_CQ, cq, NULL);
    const struct finding_place place = {
        .where = where, .other = r ? r->event_at : NULL, .whose = "the last event was taken"};
    if (r && r->events < r->acked && rule_is_on(RULE_UNACKED))
        finding_add(RULE_UNACKED, &place,
                    "a CQ is destroyed, but the program has acknowledged %u events (ibv_ack_cq_events) and taken %u: "
                    "the call waits until these are the same",
                    r->acked, r->events);
    else if (r && r->events != r->acked && rule_is_on(RULE_UNACKED))
        finding_add(RULE_UNACKED, &place,
                    "a CQ is destroyed, but %u of its %u events were not acknowledged (ibv_ack_cq_events): the call "
                    "waits for them",
                    r->events - r->acked, r->events);
    records_unlock();
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    check_events(cq, TRACE_HERE);
    int rc = NEXT(ibv_destroy_cq, cq);
    export_destroyed(KIND_CQ, cq, rc, TRACE_HERE);
    return rc;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq *srq = NEXT(ibv_create_srq, pd, attr);

    context_made_srq(srq, NULL, TRACE_HERE);
    return srq;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    check_async_events(srq, "shared receive queue", TRACE_HERE);
    int rc = NEXT(ibv_destroy_srq, srq);

    export_destroyed(KIND_SRQ, srq, rc, TRACE_HERE);
    return rc;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp = NEXT(ibv_create_qp, pd, attr);

    context_made_qp(qp, attr->sq_sig_all, false, TRACE_HERE);
    return qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    const struct trace *where = TRACE_HERE;
    int rc = NEXT(ibv_modify_qp, qp, attr, mask);

    connect_modified(qp, attr, mask, rc, where);

    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, __builtin_return_address(0));
    if (rc == 0 && q && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
        request_remove_all(&q->sends);
        request_remove_all(&q->receives);
        q->failed = false;
    }
    /* From the state SQE, to which an error takes the send queue of a queue pair without acknowledgements. */
    if (rc == 0 && q && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTS)
        q->failed = false;
    records_unlock();
    return rc;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    check_async_events(qp, "queue pair", TRACE_HERE);
    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, __builtin_return_address(0));
    struct peer *own = q ? q->own : NULL;
    if (q)
        q->own = NULL;
    records_unlock();
    int rc = NEXT(ibv_destroy_qp, qp);
    records_lock();
    if (rc == 0) {
        peers_remove(own);
        wr_forget(qp);
    } else if (q) {
        q->own = own;
    }
    records_unlock();
    export_destroyed(KIND_QP, qp, rc, TRACE_HERE);
    return rc;
}
