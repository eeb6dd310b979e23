// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/control/create_qp.h"
#include "src/verbs/control/event_ack.h"
#include "src/verbs/control/queue_rule.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "src/verbs/base/explain.h"
#include "src/verbs/base/lock.h"
#include "src/verbs/control/xrcd.h"
#include "src/verbs/datapath/bind_layout.h"
#include "src/verbs/datapath/qp_ex.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/memory/pd.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/context.h"
#include "src/verbs/session/segment.h"
#include "src/verbs/unkind/recv_buffers.h"

/* clang-format off */
/* The parts of a QP of each type, and the requests that it may send (enum ibv_qp_create_send_ops_flags). */
static const struct kind {
    enum ibv_qp_type type;
    bool sends;    /* a PD, a send queue and its CQ */
    bool receives; /* a receive CQ, and a receive queue or an SRQ */
    uint64_t send_ops;
} kinds[] = {
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define UC_OPS (UD_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV | \
                IBV_QP_EX_WITH_BIND_MW)
#define RC_OPS (UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
                IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE | \
                VB_EX_WITH_FLUSH)
    {IBV_QPT_RC,       true,  true,  RC_OPS},
    {IBV_QPT_UC,       true,  true,  UC_OPS},
    {IBV_QPT_UD,       true,  true,  UD_OPS},
    {IBV_QPT_XRC_SEND, true,  false, RC_OPS},
    {IBV_QPT_XRC_RECV, false, false, 0},
};
/* clang-format on */

static const struct kind *kind_of(enum ibv_qp_type type)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return NULL;
}

/* Do the limits and offsets in the reply fit each other and the segment? */
static bool valid(const struct pm_create_qp_rep *r, enum ibv_qp_type type)
{
    uint64_t sges = (uint64_t)r->max_send_sge * sizeof(struct pm_sge);
    uint64_t payload = sges > r->max_inline ? sges : r->max_inline;
    uint64_t head = sizeof(struct pm_send_wqe) + (type == IBV_QPT_UD ? sizeof(struct pm_av) : 0);
    return r->doorbell < PM_DOORBELLS && r->size >= sizeof(struct pm_qp_page) &&
           vb_segment_fits(r->size, r->sq_offset, r->sq_slots, r->sq_stride, r->max_send_wr, head + payload) &&
           vb_segment_fits(r->size, r->rq_offset, r->rq_slots, r->rq_stride, r->rq_slots ? r->max_recv_wr : 0,
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

/* Asks the daemon for the QP and maps its segment. Returns 0 or -errno. */
static int create(struct vb_context *c, struct vb_qp *qp, const struct pm_create_qp_req *req)
{
    struct pm_create_qp_rep rep = {0};
    int fd;
    int rc = vb_call_segment(c, PM_OP_CREATE_QP, req, sizeof(*req), &rep, sizeof(rep), &fd);
    if (rc && rep.qpn) /* the daemon made it, but its descriptor did not fit into this process */
        vb_drop(&c->vctx.context, PM_OP_DESTROY_QP, rep.qpn);
    if (rc)
        return rc;
    void *base = vb_segment_map_part(fd, rep.offset, rep.size);
    if (!base || !valid(&rep, req->type)) {
        rc = base ? -EPROTO : -errno;
        if (base)
            munmap(base, rep.size);
        vb_drop(&c->vctx.context, PM_OP_DESTROY_QP, rep.qpn);
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

/* Makes the QP known to polling and to events. Several handles of one XRC target form a chain. */
static int publish(struct vb_context *c, struct vb_qp *qp)
{
    struct vb_cq *scq = vb_cq(qp->qp.send_cq), *rcq = vb_cq(qp->qp.recv_cq);
    vb_cq_lock_pair(scq, rcq);
    pthread_mutex_lock(&c->lock);
    qp->next_handle = vb_table_get(&c->qps, qp->qp.qp_num);
    qp->events_before = qp->next_handle ? qp->next_handle->events_before + qp->next_handle->async_events : 0;
    int rc = vb_table_set(&c->qps, qp->qp.qp_num, qp);
    pthread_mutex_unlock(&c->lock);
    if (rc == 0)
        vb_cq_attach(qp);
    vb_cq_unlock_pair(scq, rcq);
    return rc;
}

static void unpublish(struct vb_context *c, struct vb_qp *qp)
{
    pthread_mutex_lock(&c->lock);
    struct vb_qp *first = vb_table_get(&c->qps, qp->qp.qp_num);
    if (first == qp) {
        vb_table_set(&c->qps, qp->qp.qp_num, qp->next_handle);
    } else {
        while (first->next_handle != qp)
            first = first->next_handle;
        first->next_handle = qp->next_handle;
    }
    pthread_mutex_unlock(&c->lock);
}

static int check_caps(const struct vb_context *c, const struct ibv_qp_cap *k, bool receives)
{
    const struct {
        const char *name;
        uint32_t asked, most;
        bool counts;
    } limits[] = {
        {"max_send_wr", k->max_send_wr, c->caps.max_queue_wr, true},
        {"max_send_sge", k->max_send_sge, c->caps.max_sge, true},
        {"max_inline_data", k->max_inline_data, c->caps.max_inline, true},
        {"max_recv_wr", k->max_recv_wr, c->caps.max_queue_wr, receives},
        {"max_recv_sge", k->max_recv_sge, c->caps.max_sge, receives},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].counts && limits[i].asked > limits[i].most)
            return vb_explain(-EINVAL, "a queue pair with %s %u: this device has at most %u", limits[i].name,
                              limits[i].asked, limits[i].most);
    return 0;
}

/* Checks the attributes of the application: the objects that a QP of this type needs, and the limits. */
static int check(const struct vb_context *c, const struct ibv_qp_init_attr_ex *a)
{
    const struct kind *k = kind_of(a->qp_type);
    bool xrcd = a->comp_mask & IBV_QP_INIT_ATTR_XRCD;
    if (!k || (!k->receives && c->caps.max_xrcd == 0))
        return vb_explain(-EOPNOTSUPP, "this device has no queue pairs of type %d (enum ibv_qp_type)", (int)a->qp_type);
    if (!k->sends && (!xrcd || !a->xrcd || vb_ctx(a->xrcd->context) != c))
        return -EINVAL;
    if (k->sends && (xrcd || !a->pd || !a->send_cq || vb_ctx(a->send_cq->context) != c || vb_ctx(a->pd->context) != c))
        return -EINVAL;
    if (k->receives && (!a->recv_cq || vb_ctx(a->recv_cq->context) != c))
        return -EINVAL;
    if (k->receives && a->srq && (vb_ctx(a->srq->context) != c || vb_srq(a->srq)->type == IBV_SRQT_XRC))
        return -EINVAL;
    if (k->receives && a->srq && vb_srq(a->srq)->type == IBV_SRQT_TM && a->qp_type != IBV_QPT_RC)
        return -EINVAL;
    return k->sends ? check_caps(c, &a->cap, k->receives && !a->srq) : 0;
}

/* Applies the rule that the profile of the device has for queues. Sets the inline size that is granted. */
static int apply_queue_rule(const struct vb_context *c, struct ibv_qp_init_attr_ex *a)
{
    struct vb_queue_ask ask = {.type = a->qp_type, .cap = a->cap};
    if (!kind_of(a->qp_type)->sends)
        return 0;
    if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        ask.send_ops = a->send_ops_flags;
    int rc = vb_queue_rule(c->caps.queue_rule, &ask);
    if (rc)
        vb_explain(
            rc,
            "a queue pair with max_send_wr %u, max_send_sge %u, max_inline_data %u, max_recv_wr %u and max_recv_sge "
            "%u: its queues need more room than those of the adapter have (docs/profiles.md)",
            ask.cap.max_send_wr, ask.cap.max_send_sge, ask.cap.max_inline_data, ask.cap.max_recv_wr,
            ask.cap.max_recv_sge);
    a->cap.max_inline_data = ask.cap.max_inline_data;
    return rc;
}

/* Fills the request with the attributes that a QP of this type has. */
static void to_request(const struct ibv_qp_init_attr_ex *a, struct pm_create_qp_req *req)
{
    const struct kind *k = kind_of(a->qp_type);
    *req = (struct pm_create_qp_req){.type = a->qp_type, .sq_sig_all = a->sq_sig_all != 0};
    if (k->sends) {
        req->pd = a->pd->handle;
        req->send_cq = a->send_cq->handle;
        req->max_send_wr = a->cap.max_send_wr;
        req->max_send_sge = a->cap.max_send_sge;
        req->max_inline = a->cap.max_inline_data;
    } else {
        req->xrcd = vb_xrcd(a->xrcd)->handle;
    }
    if (k->receives) {
        req->recv_cq = a->recv_cq->handle;
        req->srq = a->srq ? a->srq->handle : 0;
        req->max_recv_wr = a->srq ? 0 : a->cap.max_recv_wr;
        req->max_recv_sge = a->srq ? 0 : a->cap.max_recv_sge;
    }
}

/* The PD that a QP belongs to. NULL: an XRC target belongs to its XRC domain. */
static struct ibv_pd *owner_pd(enum ibv_qp_type type, struct ibv_pd *pd)
{
    return kind_of(type)->sends ? pd : NULL;
}

/* Makes the object of the QP with the attributes of the application. The daemon doesn't know it yet. */
static struct vb_qp *make_object(struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
    const struct kind *k = kind_of(a->qp_type);
    struct vb_qp *qp = vb_pd_alloc(owner_pd(a->qp_type, a->pd), sizeof(*qp), VB_ALLOC_QP);
    if (!qp)
        return NULL;
    qp->qp.context = context;
    qp->qp.qp_context = a->qp_context;
    /* An XRC target has none. But librdmacm takes the PD of its SRQ from here, and rdma-core tells what it was given. */
    qp->qp.pd = a->comp_mask & IBV_QP_INIT_ATTR_PD ? a->pd : NULL;
    qp->qp.send_cq = k->sends ? a->send_cq : NULL;
    qp->qp.recv_cq = k->receives ? a->recv_cq : NULL;
    qp->qp.srq = k->receives ? a->srq : NULL;
    qp->qp.qp_type = a->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    qp->type_bit = vb_type_bit(a->qp_type, vb_ctx(context)->caps.absent);
    qp->has_rq = k->receives && !a->srq;
    qp->sig_all = a->sq_sig_all != 0;
    qp->unkind = vb_ctx(context)->caps.unkind & VB_UNKIND_RECV;
    qp->no_sends = k->receives && a->srq && vb_srq(a->srq)->tm && vb_ctx(context)->caps.tm_owns_sq;
    if (qp->qp.srq)
        atomic_fetch_add(&vb_srq(qp->qp.srq)->users, 1);
    vb_qp_ex_ops(&qp->ex);
    return qp;
}

/* Frees everything but the object of the daemon. */
static void discard(struct vb_qp *qp)
{
    if (qp->page)
        munmap(qp->page, qp->size);
    vb_layouts_free(qp);
    if (qp->qp.srq)
        atomic_fetch_sub(&vb_srq(qp->qp.srq)->users, 1);
    vb_pd_free(owner_pd(qp->qp.qp_type, qp->qp.pd), qp, VB_ALLOC_QP);
}

/* Makes the QP, and stores the granted limits in a->cap. Returns NULL with errno on failure. */
static struct vb_qp *make(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
    struct vb_context *c = vb_ctx(context);
    struct pm_create_qp_req req;
    int rc = check(c, a);
    if (rc == 0)
        rc = apply_queue_rule(c, a);
    if (rc)
        return vb_null(rc);
    struct vb_qp *qp = make_object(context, a);
    if (!qp)
        return NULL;
    to_request(a, &req);
    rc = create(c, qp, &req);
    if (rc == 0 && c->caps.queue_rule != PM_QUEUE_OWN)
        qp->cap.max_inline_data = req.max_inline; /* the daemon grants all the room of a slot */
    if (rc == 0 && (rc = publish(c, qp)) != 0)
        vb_drop(&c->vctx.context, PM_OP_DESTROY_QP, qp->qp.qp_num);
    if (rc) {
        discard(qp);
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
                                    .comp_mask = IBV_QP_INIT_ATTR_PD,
                                    .pd = pd};
    struct vb_qp *qp = make(pd->context, &a);
    if (!qp)
        return NULL;
    attr->cap = a.cap;
    return &qp->qp;
}

/* The requests that ibv_wr_* functions may post to a QP of this kind. */
static uint64_t send_ops(const struct vb_context *c, const struct kind *k)
{
    uint64_t absent = 0;
    if (c->caps.absent & PM_ABSENT_FLUSH)
        absent |= VB_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
    if (c->caps.absent & PM_ABSENT_ATOMICS)
        absent |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if (c->caps.absent & PM_ABSENT_QP_EX_KEYS)
        absent |= IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
    return k->send_ops & ~absent;
}

/* A UD QP never gets its own packets to a group, so this flag asks for nothing more. */
static bool flags_supported(const struct ibv_qp_init_attr_ex *attr)
{
    uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
    return flags == 0 || (flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB && attr->qp_type == IBV_QPT_UD);
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const struct kind *k = kind_of(attr->qp_type);
    bool ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if ((attr->comp_mask & ~known) || !k || !flags_supported(attr) ||
        (ops && (attr->send_ops_flags & ~send_ops(vb_ctx(context), k))))
        return vb_null(-EOPNOTSUPP);
    if (k->sends && !(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
        return vb_null(-EINVAL);
    struct vb_qp *qp = make(context, attr);
    if (!qp)
        return NULL;
    qp->extended = ops;
    return &qp->qp;
}

struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t all =
        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE;
    struct vb_context *c = vb_ctx(context);
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .qp_context = attr->qp_context};
    struct pm_handle rep;
    if (attr->comp_mask & ~all)
        return vb_null(-EOPNOTSUPP);
    if ((attr->comp_mask & all) != all || attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd ||
        attr->xrcd->context != context)
        return vb_null(-EINVAL);
    struct vb_qp *qp = make_object(context, &a);
    if (!qp)
        return NULL;
    struct pm_open_qp_req req = {.xrcd = vb_xrcd(attr->xrcd)->handle, .qpn = attr->qp_num};
    int rc = vb_call_simple(c, PM_OP_OPEN_QP, &req, sizeof(req), &rep, sizeof(rep));
    if (rc == 0) {
        struct ibv_qp_attr now;
        struct ibv_qp_init_attr init;
        qp->qp.qp_num = qp->qp.handle = attr->qp_num;
        rc = publish(c, qp);
        if (rc)
            vb_drop(&c->vctx.context, PM_OP_DESTROY_QP, attr->qp_num);
        else
            /* The process that made the QP may have modified it already. */
            ibv_query_qp(&qp->qp, &now, IBV_QP_STATE, &init);
    }
    if (rc) {
        discard(qp);
        return vb_null(rc);
    }
    return &qp->qp;
}

VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return vb_qp(qp)->extended ? &vb_qp(qp)->ex : NULL;
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
        /* The daemon writes no more completions of this QP. Under the locks of both CQs no poll uses it. Once its
         * completions are purged and the tables have no entry of it, no later poll will use it. */
        vb_cq_lock_pair(scq, rcq);
        vb_cq_purge(qp);
        vb_cq_detach(qp);
        unpublish(c, qp);
        vb_cq_unlock_pair(scq, rcq);
        vb_event_await_acks(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, qp->async_events);
    }
    discard(qp);
    return 0;
}
