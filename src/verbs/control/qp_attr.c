// SPDX-License-Identifier: BSD-2-Clause
/* Modifying and querying queue pairs: ibv_modify_qp and ibv_query_qp. */
#include <infiniband/verbs.h>

#include <errno.h>

#include "src/verbs/objects/ah.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/session/call.h"

static int to_wire(const struct ibv_qp_attr *a, int mask, struct pm_qp_attr *w)
{
    *w = (struct pm_qp_attr){.qp_state = a->qp_state,
                             .cur_qp_state = a->cur_qp_state,
                             .path_mtu = a->path_mtu,
                             .path_mig_state = a->path_mig_state,
                             .qkey = a->qkey,
                             .rq_psn = a->rq_psn,
                             .sq_psn = a->sq_psn,
                             .dest_qp_num = a->dest_qp_num,
                             .qp_access_flags = a->qp_access_flags,
                             .pkey_index = a->pkey_index,
                             .en_sqd_async_notify = a->en_sqd_async_notify,
                             .max_rd_atomic = a->max_rd_atomic,
                             .max_dest_rd_atomic = a->max_dest_rd_atomic,
                             .min_rnr_timer = a->min_rnr_timer,
                             .port_num = a->port_num,
                             .timeout = a->timeout,
                             .retry_cnt = a->retry_cnt,
                             .rnr_retry = a->rnr_retry};
    return mask & IBV_QP_AV ? vb_ah_to_av(&a->ah_attr, &w->av) : 0;
}

/* After a transition to RESET: drops all requests of both queues, and their completions in the CQs. */
static void reset_queues(struct vb_qp *qp)
{
    struct vb_cq *scq = vb_cq(qp->qp.send_cq), *rcq = vb_cq(qp->qp.recv_cq);
    vb_cq_lock_pair(scq, rcq);
    vb_cq_purge(qp);
    if (!qp->page) { /* a handle of a QP that another process made */
        vb_cq_unlock_pair(scq, rcq);
        return;
    }
    pthread_mutex_lock(&qp->sq.lock);
    atomic_store(&qp->sq.head, qp->sq.tail);
    pthread_mutex_unlock(&qp->sq.lock);
    pthread_mutex_lock(&qp->rq.lock);
    atomic_store(&qp->rq.head, qp->rq.tail);
    pthread_mutex_unlock(&qp->rq.lock);
    vb_cq_unlock_pair(scq, rcq);
}

/* Notes the state in a reply, which decides whether requests may be posted. It runs as vb_call.done. So if threads
 * modify and query at the same time, the state of the last reply stays. */
static void note_state(struct ibv_qp *qp, uint32_t state)
{
    __atomic_store_n(&qp->state, (enum ibv_qp_state)state, __ATOMIC_RELEASE);
}

static void modified(const struct vb_call *call)
{
    const struct pm_handle *state = call->rep;
    note_state(call->arg, state->handle);
}

static void queried(const struct vb_call *call)
{
    const struct pm_query_qp_rep *rep = call->rep;
    note_state(call->arg, rep->attr.qp_state);
}

/* Sends a request about the QP; done runs under the lock of the session. */
static int call(struct ibv_qp *qp, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len,
                void (*done)(const struct vb_call *))
{
    struct vb_call call = {
        .op = op, .req = req, .req_len = req_len, .rep = rep, .rep_len = rep_len, .done = done, .arg = qp};
    return vb_call(vb_ctx(qp->context), &call);
}

VB_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct pm_modify_qp_req req = {.qpn = ibqp->qp_num, .mask = (uint32_t)mask};
    struct pm_handle state;
    int rc = to_wire(attr, mask, &req.attr);
    if (rc == 0)
        rc = call(ibqp, PM_OP_MODIFY_QP, &req, sizeof(req), &state, sizeof(state), modified);
    if (rc)
        return vb_err(rc);
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
        reset_queues(qp);
    return 0;
}

VB_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct pm_handle req = {ibqp->qp_num};
    struct pm_query_qp_rep rep;
    /* The mask is only a hint: the reply has all attributes. But only a query of IBV_QP_STATE notes the state. */
    const struct pm_qp_attr *w = &rep.attr;
    int rc = call(ibqp, PM_OP_QUERY_QP, &req, sizeof(req), &rep, sizeof(rep), mask & IBV_QP_STATE ? queried : NULL);
    if (rc)
        return vb_err(rc);
    *attr = (struct ibv_qp_attr){.qp_state = w->qp_state,
                                 .cur_qp_state = w->cur_qp_state,
                                 .path_mtu = w->path_mtu,
                                 .path_mig_state = w->path_mig_state,
                                 .qkey = w->qkey,
                                 .rq_psn = w->rq_psn,
                                 .sq_psn = w->sq_psn,
                                 .dest_qp_num = w->dest_qp_num,
                                 .qp_access_flags = w->qp_access_flags,
                                 .cap = qp->cap,
                                 .pkey_index = w->pkey_index,
                                 .en_sqd_async_notify = w->en_sqd_async_notify,
                                 .sq_draining = w->sq_draining,
                                 .max_rd_atomic = w->max_rd_atomic,
                                 .max_dest_rd_atomic = w->max_dest_rd_atomic,
                                 .min_rnr_timer = w->min_rnr_timer,
                                 .port_num = w->port_num,
                                 .timeout = w->timeout,
                                 .retry_cnt = w->retry_cnt,
                                 .rnr_retry = w->rnr_retry};
    vb_ah_from_av(&w->av, w->port_num, &attr->ah_attr);
    *init = (struct ibv_qp_init_attr){.qp_context = ibqp->qp_context,
                                      .send_cq = ibqp->send_cq,
                                      .recv_cq = ibqp->recv_cq,
                                      .srq = ibqp->srq,
                                      .cap = qp->cap,
                                      .qp_type = ibqp->qp_type,
                                      .sq_sig_all = qp->sig_all};
    return 0;
}

VB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
    (void)qp, (void)opcode, (void)flags;
    return 0; /* no order is promised: a retransmitted packet arrives after its successors */
}

VB_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return vb_err(-EOPNOTSUPP);
}

VB_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return vb_err(-EOPNOTSUPP);
}
