// SPDX-License-Identifier: BSD-2-Clause
/* Making, modifying, asking and ending queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ah.h"
#include "cq.h"
#include "fork.h"
#include "ops.h"
#include "ring.h"
#include "session.h"

#define SEND_OPS                                                                                                       \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |                            \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                     \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV)

/* Does a queue of the reply lie inside its segment, with slots that hold what was granted? */
static bool fits(uint64_t size, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr, uint64_t slot_bytes)
{
    return (slots & (slots - 1)) == 0 && slots >= max_wr && (slots == 0 || stride >= slot_bytes) &&
           offset + (uint64_t)slots * stride <= size;
}

static bool valid(const struct pm_create_qp_rep *r)
{
    uint64_t sges = (uint64_t)r->max_send_sge * sizeof(struct pm_sge);
    uint64_t payload = sges > r->max_inline ? sges : r->max_inline;
    return r->doorbell < PM_DOORBELLS && r->size >= sizeof(struct pm_qp_page) &&
           fits(r->size, r->sq_offset, r->sq_slots, r->sq_stride, r->max_send_wr,
                sizeof(struct pm_send_wqe) + payload) &&
           fits(r->size, r->rq_offset, r->rq_slots, r->rq_stride, r->max_recv_wr,
                sizeof(struct pm_recv_wqe) + (uint64_t)r->max_recv_sge * sizeof(struct pm_sge));
}

static void set_queue(struct vb_queue *q, void *base, uint32_t offset, uint32_t slots, uint32_t stride, uint32_t max_wr,
                      uint32_t max_sge)
{
    vb_lock_init(&q->lock);
    q->ring = (uint8_t *)base + offset;
    q->mask = slots ? slots - 1 : 0;
    q->stride = stride;
    q->max_wr = slots ? max_wr : 0;
    q->max_sge = max_sge;
}

static void destroy_handle(struct vb_context *c, uint32_t qpn)
{
    struct pm_handle req = {qpn};
    vb_call_simple(c, PM_OP_DESTROY_QP, &req, sizeof(req), NULL, 0);
}

static int create(struct vb_context *c, struct vb_qp *qp, const struct pm_create_qp_req *req)
{
    struct pm_create_qp_rep rep;
    int fd;
    struct vb_call call = {.op = PM_OP_CREATE_QP,
                           .req = req,
                           .req_len = sizeof(*req),
                           .send_fd = -1,
                           .rep = &rep,
                           .rep_len = sizeof(rep),
                           .fds = &fd,
                           .num_fds = 1};
    int rc = vb_call(c, &call);
    if (rc)
        return rc;
    void *base = MAP_FAILED;
    if (!valid(&rep))
        rc = -EPROTO;
    else if ((base = mmap(NULL, rep.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)
        rc = -errno;
    close(fd);
    if (rc) {
        destroy_handle(c, rep.qpn);
        return rc;
    }
    qp->page = base;
    qp->size = rep.size;
    qp->doorbell = rep.doorbell;
    qp->cap = (struct ibv_qp_cap){rep.max_send_wr, rep.max_recv_wr, rep.max_send_sge, rep.max_recv_sge, rep.max_inline};
    qp->qp.qp_num = qp->qp.handle = rep.qpn;
    set_queue(&qp->sq, base, rep.sq_offset, rep.sq_slots, rep.sq_stride, rep.max_send_wr, rep.max_send_sge);
    set_queue(&qp->rq, base, rep.rq_offset, rep.rq_slots, rep.rq_stride, rep.max_recv_wr, rep.max_recv_sge);
    return 0;
}

/* Makes the QP known to polling and to events. */
static int publish(struct vb_context *c, struct vb_qp *qp)
{
    struct vb_cq *scq = vb_cq(qp->qp.send_cq), *rcq = vb_cq(qp->qp.recv_cq);
    vb_cq_lock_pair(scq, rcq);
    pthread_mutex_lock(&c->lock);
    int rc = vb_table_set(&c->qps, qp->qp.qp_num, qp);
    pthread_mutex_unlock(&c->lock);
    if (rc == 0)
        vb_cq_attach(qp);
    vb_cq_unlock_pair(scq, rcq);
    return rc;
}

static int check(const struct vb_context *c, const struct ibv_qp_init_attr_ex *a)
{
    const struct ibv_qp_cap *k = &a->cap;
    if (!a->pd || !a->send_cq || !a->recv_cq)
        return -EINVAL;
    if (a->qp_type != IBV_QPT_RC || a->srq)
        return -EOPNOTSUPP;
    if (k->max_send_wr > c->caps.max_qp_wr || k->max_recv_wr > c->caps.max_qp_wr || k->max_send_sge > c->caps.max_sge ||
        k->max_recv_sge > c->caps.max_sge || k->max_inline_data > c->caps.max_inline)
        return -EINVAL;
    if (vb_ctx(a->send_cq->context) != c || vb_ctx(a->recv_cq->context) != c)
        return -EINVAL;
    return 0;
}

static struct vb_qp *make(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
    struct vb_context *c = vb_ctx(context);
    int rc = check(c, a);
    if (rc)
        return vb_null(rc);
    struct vb_qp *qp = aligned_alloc(64, (sizeof(*qp) + 63) & ~(size_t)63);
    if (!qp)
        return NULL;
    memset(qp, 0, sizeof(*qp));
    struct pm_create_qp_req req = {.pd = a->pd->handle,
                                   .send_cq = a->send_cq->handle,
                                   .recv_cq = a->recv_cq->handle,
                                   .type = a->qp_type,
                                   .sq_sig_all = a->sq_sig_all != 0,
                                   .max_send_wr = a->cap.max_send_wr,
                                   .max_recv_wr = a->cap.max_recv_wr,
                                   .max_send_sge = a->cap.max_send_sge,
                                   .max_recv_sge = a->cap.max_recv_sge,
                                   .max_inline = a->cap.max_inline_data};
    rc = create(c, qp, &req);
    if (rc) {
        free(qp);
        return vb_null(rc);
    }
    qp->qp.context = context;
    qp->qp.qp_context = a->qp_context;
    qp->qp.pd = a->pd;
    qp->qp.send_cq = a->send_cq;
    qp->qp.recv_cq = a->recv_cq;
    qp->qp.qp_type = a->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    qp->sig_all = a->sq_sig_all != 0;
    vb_qp_ex_ops(&qp->ex);
    rc = publish(c, qp);
    if (rc) {
        destroy_handle(c, qp->qp.qp_num);
        munmap(qp->page, qp->size);
        free(qp);
        return vb_null(rc);
    }
    a->cap = qp->cap;
    return qp;
}

VB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex a = {.qp_context = attr->qp_context,
                                    .send_cq = attr->send_cq,
                                    .recv_cq = attr->recv_cq,
                                    .srq = attr->srq,
                                    .cap = attr->cap,
                                    .qp_type = attr->qp_type,
                                    .sq_sig_all = attr->sq_sig_all,
                                    .pd = pd};
    struct vb_qp *qp = make(pd->context, &a);
    if (!qp)
        return NULL;
    attr->cap = a.cap;
    return &qp->qp;
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
        return vb_null(-EINVAL);
    if ((attr->comp_mask & ~known) || ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags) ||
        (ops && (attr->send_ops_flags & ~(uint64_t)SEND_OPS)))
        return vb_null(-EOPNOTSUPP);
    struct vb_qp *qp = make(context, attr);
    if (!qp)
        return NULL;
    qp->extended = ops;
    return &qp->qp;
}

VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return vb_qp(qp)->extended ? &vb_qp(qp)->ex : NULL;
}

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

/* All requests of both queues are gone without a word: what waits in the CQs too. */
static void reset_queues(struct vb_qp *qp)
{
    struct vb_cq *scq = vb_cq(qp->qp.send_cq), *rcq = vb_cq(qp->qp.recv_cq);
    vb_cq_lock_pair(scq, rcq);
    vb_cq_purge(qp);
    pthread_mutex_lock(&qp->sq.lock);
    atomic_store(&qp->sq.head, qp->sq.tail);
    pthread_mutex_unlock(&qp->sq.lock);
    pthread_mutex_lock(&qp->rq.lock);
    atomic_store(&qp->rq.head, qp->rq.tail);
    pthread_mutex_unlock(&qp->rq.lock);
    vb_cq_unlock_pair(scq, rcq);
}

VB_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct pm_modify_qp_req req = {.qpn = ibqp->qp_num, .mask = (uint32_t)mask};
    struct pm_handle state;
    int rc = to_wire(attr, mask, &req.attr);
    if (rc == 0)
        rc = vb_call_simple(vb_ctx(ibqp->context), PM_OP_MODIFY_QP, &req, sizeof(req), &state, sizeof(state));
    if (rc)
        return vb_err(rc);
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
        reset_queues(qp);
    __atomic_store_n(&ibqp->state, (enum ibv_qp_state)state.handle, __ATOMIC_RELEASE);
    return 0;
}

VB_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct pm_handle req = {ibqp->qp_num};
    struct pm_query_qp_rep rep;
    const struct pm_qp_attr *w = &rep.attr;
    (void)mask; /* all of it: the mask is a hint */
    int rc = vb_call_simple(vb_ctx(ibqp->context), PM_OP_QUERY_QP, &req, sizeof(req), &rep, sizeof(rep));
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
    __atomic_store_n(&ibqp->state, (enum ibv_qp_state)w->qp_state, __ATOMIC_RELEASE);
    return 0;
}

VB_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct vb_qp *qp = vb_qp(ibqp);
    struct vb_context *c = vb_ctx(ibqp->context);
    if (vb_owned_quiet(c)) {
        struct vb_cq *scq = vb_cq(ibqp->send_cq), *rcq = vb_cq(ibqp->recv_cq);
        struct pm_handle req = {ibqp->qp_num};
        int rc = vb_call_simple(c, PM_OP_DESTROY_QP, &req, sizeof(req), NULL, 0);
        if (rc && rc != -EIO)
            return vb_err(rc);
        /* The daemon writes no more completions of this QP. Under both CQs' locks no poll is using it, so once its
         * completions are purged and the tables have forgotten it, none will. */
        vb_cq_lock_pair(scq, rcq);
        vb_cq_purge(qp);
        vb_cq_detach(qp);
        pthread_mutex_lock(&c->lock);
        vb_table_set(&c->qps, ibqp->qp_num, NULL);
        pthread_mutex_unlock(&c->lock);
        vb_cq_unlock_pair(scq, rcq);
        pthread_mutex_lock(&ibqp->mutex);
        while (ibqp->events_completed != qp->async_events)
            pthread_cond_wait(&ibqp->cond, &ibqp->mutex);
        pthread_mutex_unlock(&ibqp->mutex);
    }
    munmap(qp->page, qp->size);
    free(qp);
    return 0;
}

VB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp, (void)op, (void)flags;
    return 0; /* packets that were lost come later than those behind them */
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
