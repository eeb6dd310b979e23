// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/retire.h"

#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/rendezvous.h"

static uint8_t wc_opcode_of(const struct send_wqe *w)
{
    static const uint8_t map[] = {
        [WR_RDMA_WRITE] = WC_RDMA_WRITE,
        [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
        [WR_SEND] = WC_SEND,
        [WR_SEND_WITH_IMM] = WC_SEND,
        [WR_RDMA_READ] = WC_RDMA_READ,
        [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
        [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
        [WR_LOCAL_INV] = WC_LOCAL_INV,
        [WR_BIND_MW] = WC_BIND_MW,
        [WR_SEND_WITH_INV] = WC_SEND,
        [WR_FLUSH] = WC_FLUSH,
        [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
    };
    return map[w->wr.opcode];
}

/* Counts a request of the user for the completion counters. */
static void count_op(struct qp *qp, const struct send_wqe *w, bool ok)
{
    static const uint8_t op_of[] = {
        [WC_SEND] = CNTR_SEND,
        [WC_RDMA_WRITE] = CNTR_WRITE,
        [WC_RDMA_READ] = CNTR_READ,
    };
    uint8_t opcode = wc_opcode_of(w);
    if (opcode < sizeof(op_of))
        qp_count_op(qp, (enum cntr_op)op_of[opcode], ok, w->length);
}

static void complete(struct qp *qp, const struct send_wqe *w, uint8_t status, uint8_t cause, uint64_t now)
{
    struct completion *c = completion_add(qp, false, status, now);
    c->wr_id = w->wr.wr_id;
    c->slot = w->wr.slot;
    c->opcode = wc_opcode_of(w);
    c->vendor_err = cause;
    if (status == WC_SUCCESS && (wqe_is_read(w) || wqe_is_atomic(w)))
        c->byte_len = w->length;
    if (status != WC_SUCCESS)
        count_op(qp, w, false);
}

static void count_done(struct qp *qp, const struct send_wqe *w)
{
    switch (wc_opcode_of(w)) {
    case WC_SEND:
        COUNT(qp, sends);
        break;
    case WC_RDMA_WRITE:
        COUNT(qp, writes);
        break;
    case WC_RDMA_READ:
        COUNT(qp, reads);
        break;
    case WC_FLUSH:
        COUNT(qp, flushes);
        break;
    case WC_ATOMIC_WRITE:
        COUNT(qp, atomic_writes);
        break;
    case WC_BIND_MW:
        COUNT(qp, mw_binds);
        break;
    case WC_LOCAL_INV:
        COUNT(qp, mw_invalidates);
        break;
    default:
        COUNT(qp, atomics);
        break;
    }
}

void req_drained(struct qp *qp)
{
    if (qp->attr.state != QPS_SQD || qp->sq_drained_reported || !req_is_drained(qp->req))
        return;
    qp->sq_drained_reported = true;
    if (qp->attr.sqd_async_notify)
        event_add(qp, EVENT_SQ_DRAINED);
}

bool req_retire(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    while (r->sq.head != r->una) {
        const struct send_wqe *w = req_wqe(r, r->sq.head);
        if (w->offload) {
            if (!rndv_retire(qp, w, now))
                return true;
        } else if (w->wr.flags & SEND_SIGNALED) {
            if (completion_room(qp->e) == 0)
                return true;
            complete(qp, w, WC_SUCCESS, 0, now);
        }
        count_done(qp, w);
        if (__builtin_expect(qp->cntr_ops, 0) && !w->offload)
            count_op(qp, w, true);
        r->sq.head++;
    }
    /* A request that failed locally fails when all requests before it are done and none of its packets is under way. */
    if (r->una != r->unsent && r->una == r->cur && r->una_psn == r->next_psn && !req_is_flushing(qp->req)) {
        const struct send_wqe *w = req_wqe(r, r->una);
        if (w->local_error) {
            COUNT(qp, local_errors);
            req_fail(qp, w->local_error, w->local_cause);
        }
    }
    req_drained(qp);
    return false;
}

bool req_flush(struct qp *qp, uint64_t now)
{
    struct requester *r = qp->req;
    while (req_is_flushing(qp->req)) {
        if (completion_room(qp->e) == 0)
            return true;
        uint8_t status = r->fail_status ? r->fail_status : WC_WR_FLUSH_ERR;
        if (req_wqe(r, r->sq.head)->offload)
            rndv_flush_request(qp, req_wqe(r, r->sq.head), status, now);
        else
            complete(qp, req_wqe(r, r->sq.head), status, r->fail_cause, now);
        r->fail_status = r->fail_cause = 0;
        r->una = r->cur = r->unsent = ++r->sq.head;
    }
    /* flushed requests give their PSNs back: requests that are posted after SQE need them */
    r->unsent_psn = r->next_psn;
    if (r->sq.head != r->sq.tail)
        qp_schedule(qp); /* posted after SQE was left */
    return false;
}
