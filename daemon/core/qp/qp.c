// SPDX-License-Identifier: BSD-2-Clause
/* The life of a QP, and posting of work requests. Transitions are in qp_state.c. */
#include <errno.h>
#include <string.h>

#include "daemon/core/engine_priv.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* With an SRQ that matches tags, the send queue has entries for the offload's own requests, too. */
static uint32_t send_stride(const struct qp_init *init)
{
    size_t sges = init->caps.max_send_sge * sizeof(struct sge);
    size_t room = larger(sges, init->caps.max_inline);
    if (init->srq && init->srq->tm)
        room = larger(room, larger(TM_MAX_SGE * sizeof(struct sge), TM_FIN_LEN));
    return round8(offsetof(struct send_wqe, u) + room);
}
static uint32_t send_depth(const struct qp_init *init)
{
    return init->caps.max_send_wr + (init->srq && init->srq->tm ? TM_SEND_SLOTS : 0);
}

/* The caps that count: with an SRQ the receive queue holds the one request that a message has taken. */
static struct qp_caps caps_of(const struct qp_init *init)
{
    struct qp_caps caps = init->caps;
    if (init->type == QPT_XRC_RECV)
        return (struct qp_caps){.max_recv_wr = 1, .max_recv_sge = ENGINE_MAX_SGE}; /* of any SRQ of its domain */
    if (init->type == QPT_XRC_SEND) {
        caps.max_recv_wr = caps.max_recv_sge = 0;
    } else if (init->srq) {
        caps.max_recv_wr = 1;
        caps.max_recv_sge = init->srq->max_sge;
    }
    return caps;
}

#define QP_BYTES ((sizeof(struct qp) + 63) & ~(size_t)63)
#define RD_ATOMIC_BYTES ((sizeof(struct rd_atomic) + 63) & ~(size_t)63)

size_t qp_state_size(void)
{
    return QP_BYTES;
}

size_t qp_size(const struct qp_init *init)
{
    struct qp_caps caps = caps_of(init);
    if (caps.max_send_wr > QUEUE_MAX_WR || caps.max_recv_wr > QUEUE_MAX_WR || caps.max_send_sge > ENGINE_MAX_SGE ||
        caps.max_recv_sge > ENGINE_MAX_SGE || caps.max_inline > ENGINE_MAX_INLINE)
        return 0;
    return QP_BYTES + RD_ATOMIC_BYTES + queue_bytes(send_depth(init), send_stride(init)) +
           queue_bytes(caps.max_recv_wr, recv_stride(caps.max_recv_sge));
}

#define FIRST_QPN 17u /* E30 */
#define LAST_QPN (QPN_MULTICAST - 1)

/* Gives the QP a number whose place in the table is free: there is one, since consecutive numbers reach every place. */
static int number(struct engine *e, struct qp *qp)
{
    if (e->qp_count == e->cfg.max_qp)
        return -ENOMEM;
    for (;;) {
        uint32_t qpn = e->next_qpn;
        e->next_qpn = qpn >= LAST_QPN ? FIRST_QPN : qpn + 1;
        struct qp **place = &e->qps[qpn & e->qp_mask];
        if (*place)
            continue;
        *place = qp;
        qp->qpn = qpn;
        e->qp_count++;
        return 0;
    }
}

#define LOCAL_OPS (1 << WR_BIND_MW | 1 << WR_LOCAL_INV)
#define RC_OPS                                                                                                         \
    (LOCAL_OPS | 1 << WR_RDMA_WRITE | 1 << WR_RDMA_WRITE_WITH_IMM | 1 << WR_SEND | 1 << WR_SEND_WITH_IMM |             \
     1 << WR_RDMA_READ | 1 << WR_ATOMIC_CMP_AND_SWP | 1 << WR_ATOMIC_FETCH_AND_ADD | 1 << WR_SEND_WITH_INV |           \
     1 << WR_FLUSH | 1 << WR_ATOMIC_WRITE)

/* By enum qp_type: its packets' service, and the requests that it sends (IBA table 96). */
static const struct qp_kind {
    bool exists;
    uint8_t service;
    uint16_t send_ops; /* bits of enum send_op */
} qp_kinds[] = {
    [QPT_RC] = {true, OP_SERVICE_RC, RC_OPS},
    [QPT_XRC_SEND] = {true, OP_SERVICE_XRC, RC_OPS},
    [QPT_XRC_RECV] = {true, OP_SERVICE_XRC, 0},
    [QPT_UC] = {true, OP_SERVICE_UC,
                LOCAL_OPS | 1 << WR_RDMA_WRITE | 1 << WR_RDMA_WRITE_WITH_IMM | 1 << WR_SEND | 1 << WR_SEND_WITH_IMM},
    [QPT_UD] = {true, OP_SERVICE_UD, 1 << WR_SEND | 1 << WR_SEND_WITH_IMM},
};

/* Does it have what its type needs? (11.2.5.1, A14.2) */
static bool is_complete(const struct engine *e, const struct qp_init *init)
{
    switch (init->type) {
    case QPT_XRC_SEND:
        return init->pd && init->send_cq && !init->srq;
    case QPT_XRC_RECV:
        return init->xrcd && !init->srq;
    default:
        return init->pd && init->send_cq && init->recv_cq && !(init->srq && (init->srq->xrcd || init->srq->e != e));
    }
}

static const struct qp_kind *kind_of(uint8_t type)
{
    static const struct qp_kind none = {false, 0, 0};
    return type < sizeof(qp_kinds) / sizeof(qp_kinds[0]) ? &qp_kinds[type] : &none;
}

static void lay_out_queues(struct qp *qp, const struct qp_init *init)
{
    uint8_t *base = init->queues ? init->queues : (uint8_t *)qp + QP_BYTES;
    struct rd_atomic *rd_atomic = (struct rd_atomic *)(void *)base;
    qp->resp.res = rd_atomic->res;
    qp->req.rd = rd_atomic->rd;
    qp->req.atomic_result = rd_atomic->atomic_result;
    base += RD_ATOMIC_BYTES;
    queue_init(&qp->req.sq, base, send_depth(init), send_stride(init));
    base += queue_bytes(send_depth(init), send_stride(init));
    queue_init(&qp->resp.rq, base, qp->caps.max_recv_wr, recv_stride(qp->caps.max_recv_sge));
}

int qp_create(struct engine *e, const struct qp_init *init, void *mem, struct qp **out)
{
    const struct qp_kind *kind = kind_of(init->type);
    if (!kind->exists || !is_complete(e, init) || qp_size(init) == 0)
        return -EINVAL;
    if (init->srq && init->srq->tm && init->type != QPT_RC)
        return -EINVAL;
    struct qp *qp = mem;
    int err = number(e, qp);
    if (err)
        return err;
    qp->e = e;
    list_init(&qp->ready);
    list_init(&qp->peer_wait);
    list_init(&qp->groups);
    timer_init(&qp->timer);
    qp->owner = init->owner;
    qp->send_cq = init->send_cq;
    qp->recv_cq = init->recv_cq;
    qp->pd = qp->resp.pd = init->pd;
    qp->xrcd = init->xrcd;
    qp->type = init->type;
    qp->service = kind->service;
    qp->sq_sig_all = init->sq_sig_all;
    qp->caps = caps_of(init);
    lay_out_queues(qp, init);
    list_init(&qp->resp.held);
    list_init(&qp->req.rndv);
    if (init->srq) {
        qp->tm = init->srq->tm;
        qp->srqn = qp->resp.srqn = init->srq->number;
        init->srq->users++;
    }
    qp->attr.state = QPS_RESET;
    *out = qp;
    return 0;
}

/* Takes the QP off every list of the engine but the table. A request that it took from an SRQ goes back there: no
 * completion will tell of it, and nobody else would ever get it. */
static void detach(struct qp *qp)
{
    struct engine *e = qp->e;
    if (!list_empty(&qp->ready)) {
        list_remove(&qp->ready);
        e->ready_count--;
    }
    list_remove(&qp->peer_wait);
    tm_detach(qp);
    srq_put_back(qp);
    timer_wheel_set(e->timers, &qp->timer, NEVER);
    if (qp->peer && qp->type != QPT_UD) {
        peer_window_release(qp, qp->req.inflight);
        peer_window_put(qp->peer);
    }
    qp->peer = NULL;
}

/* Nothing points at the QP afterwards: windows are unbound, lists and timer are left (detach), the table forgets it, and queued
 * completions and events of it are dropped. Packets of earlier batches are the owner's, and it has sent them before
 * it makes control calls. */
void qp_destroy(struct qp *qp)
{
    struct engine *e = qp->e;
    time_wait_add(&e->time_wait, qp);
    mw_forget_qp(qp);
    mcast_leave_all(&e->mcast, qp);
    detach(qp);
    completion_forget(qp);
    if (qp->srqn)
        srq_find(e, qp->srqn)->users--;
    e->qps[qp->qpn & e->qp_mask] = NULL;
    e->qp_count--;
}

/* To RESET: all requests vanish without completions (IBA 10.3.1.1). */
void qp_reset(struct qp *qp)
{
    detach(qp);
    qp->req.sq.head = qp->req.sq.tail;
    qp->resp.rq.head = qp->resp.rq.tail;
    qp->attr = (struct qp_attr){.state = QPS_RESET};
    qp->last_wqe_reported = false;
    report_forget(qp);
    memset(&qp->ecn, 0, sizeof(qp->ecn));
    req_init(qp);
    resp_init(qp);
}

void qp_fail(struct qp *qp)
{
    if (qp->attr.state == QPS_ERR)
        return;
    report_error(qp, ERROR_PROGRAM, 0, 0); /* if nothing else was the reason */
    qp->attr.state = QPS_ERR;
    qp->req.flush_end = qp->req.sq.tail;
    qp->req.rnr_until = 0;
    resp_stop(qp);
    if (qp->peer)
        peer_window_release(qp, qp->req.inflight);
    list_remove(&qp->peer_wait);
    engine_ready(qp);
}

void qp_fail_sends(struct qp *qp)
{
    if (qp->attr.state != QPS_RTS && qp->attr.state != QPS_SQD)
        return;
    qp->attr.state = QPS_SQE;
    qp->req.flush_end = qp->req.sq.tail;
    list_remove(&qp->peer_wait);
    engine_ready(qp);
}

bool qp_service(struct qp *qp, uint64_t now)
{
    bool left = req_retire(qp, now);
    if (left)
        return true;
    if (qp->tm && qp->attr.state != QPS_ERR && !rndv_start(qp, now))
        return true;
    if (req_flushing(qp))
        left = req_flush(qp, now);
    if (qp->attr.state != QPS_ERR)
        return left;
    left |= qp->tm && tm_flush(qp, now);
    return resp_flush(qp, now) || left;
}

void *qp_owner(const struct qp *qp)
{
    return qp->owner;
}

uint32_t qp_number(const struct qp *qp)
{
    return qp->qpn;
}

enum qp_state qp_state(const struct qp *qp)
{
    return (enum qp_state)qp->attr.state;
}

uint32_t qp_send_room(const struct qp *qp)
{
    return qp->caps.max_send_wr - (queue_used(&qp->req.sq) - qp->req.own_queued);
}

uint32_t qp_recv_room(const struct qp *qp)
{
    return !qp_has_rq(qp) ? 0 : qp->resp.rq.depth - queue_used(&qp->resp.rq);
}

void qp_kick(struct qp *qp)
{
    engine_ready(qp);
}

/* --- posting ------------------------------------------------------------------------------------------------------------ */

static bool is_flush(const struct flush *f)
{
    return f->placement >= 1 && f->placement <= (FLUSH_GLOBAL | FLUSH_PERSISTENT) && f->selectivity <= FLUSH_REGION &&
           f->length <= ENGINE_MAX_MSG;
}

/* Checks a request against the QP's type and caps, and sums up its length. */
static int send_length(const struct qp *qp, const struct send_wr *wr, const struct sge *sge, uint32_t *length)
{
    if (wr->opcode >= 16 || !(kind_of(qp->type)->send_ops >> wr->opcode & 1))
        return -EINVAL;
    bool atomic_write = wr->opcode == WR_ATOMIC_WRITE;
    if ((LOCAL_OPS | 1 << WR_FLUSH) >> wr->opcode & 1 || (atomic_write && wr->num_sge == 0)) {
        *length = atomic_write ? 8 : 0;
        bool bare = wr->num_sge == 0 && !(wr->flags & SEND_INLINE);
        return bare && (wr->opcode != WR_FLUSH || is_flush(&wr->flush)) ? 0 : -EINVAL;
    }
    bool takes_data =
        wr->opcode != WR_RDMA_READ && wr->opcode != WR_ATOMIC_CMP_AND_SWP && wr->opcode != WR_ATOMIC_FETCH_AND_ADD;
    if (wr->flags & SEND_INLINE) {
        *length = wr->inline_len;
        bool fits = wr->num_sge == 0 && wr->inline_len <= qp->caps.max_inline;
        return takes_data && !atomic_write && fits ? 0 : -EINVAL;
    }
    if (wr->num_sge > qp->caps.max_send_sge)
        return -EINVAL;
    uint64_t total = 0;
    for (unsigned i = 0; i < wr->num_sge; i++)
        total += sge[i].length;
    if (total > ENGINE_MAX_MSG)
        return -EINVAL;
    *length = (uint32_t)total;
    bool atomic = wr->opcode == WR_ATOMIC_CMP_AND_SWP || wr->opcode == WR_ATOMIC_FETCH_AND_ADD;
    if (atomic)
        *length = 8; /* more room than the result needs is allowed */
    return (atomic && total < 8) || (atomic_write && total != 8) ? -EINVAL : 0;
}

static bool is_v4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* What is wrong with a datagram as it stands: enum wc_status. It is one packet, and to an address of another family than its
 * source's no packet can ever leave; of groups the owner finds one of the right family. */
static uint8_t datagram_error(const struct qp *qp, const struct av *av, uint32_t length)
{
    if (length > qp->mtu)
        return WC_LOC_LEN_ERR;
    bool same = is_v4(av->dgid) == is_v4(qp->e->cfg.gids[av->sgid_index]);
    return same || mcast_is_group(av->dgid) ? WC_SUCCESS : WC_LOC_QP_OP_ERR;
}

int qp_post_send(struct qp *qp, const struct send_wr *wr, const struct sge *sge, const void *data, uint64_t now)
{
    (void)now;
    if (qp->attr.state < QPS_RTS || (qp->tm && tm_profile_of(qp->tm)->owns_send_queue))
        return -EINVAL;
    uint32_t length = 0;
    int err = send_length(qp, wr, sge, &length);
    if (err)
        return err;
    bool ud = qp->type == QPT_UD;
    if (ud && (wr->ud.qpn > QPN_MASK || wr->ud.av.sgid_index >= qp->e->cfg.num_gids))
        return -EINVAL;
    struct queue *sq = &qp->req.sq;
    if (qp_send_room(qp) == 0)
        return -ENOMEM;

    struct send_wqe *w = queue_at(sq, sq->tail);
    w->wr = *wr;
    if (qp->sq_sig_all)
        w->wr.flags |= SEND_SIGNALED;
    w->length = length;
    w->local_error = ud ? datagram_error(qp, &wr->ud.av, length) : 0;
    w->pd = qp->pd;
    w->own = OWN_NONE;
    w->local_cause = 0;
    if (wr->flags & SEND_INLINE) {
        if (length)
            memcpy(w->u.data, data, length);
    } else if (wr->num_sge) {
        memcpy(w->u.sge, sge, wr->num_sge * sizeof(*sge));
    }
    sq->tail++;
    if (qp->attr.state == QPS_ERR || qp->attr.state == QPS_SQE)
        qp->req.flush_end = sq->tail;
    engine_ready(qp);
    return 0;
}

int qp_post_recv(struct qp *qp, const struct recv_wr *wr, const struct sge *sge)
{
    struct queue *rq = &qp->resp.rq;
    if (qp->attr.state == QPS_RESET || !qp_has_rq(qp) || wr->num_sge > qp->caps.max_recv_sge)
        return -EINVAL;
    if (queue_used(rq) >= rq->depth)
        return -ENOMEM;
    struct recv_wqe *w = queue_at(rq, rq->tail);
    w->wr = *wr;
    if (wr->num_sge)
        memcpy(w->sge, sge, wr->num_sge * sizeof(*sge));
    rq->tail++;
    if (qp->attr.state == QPS_ERR)
        engine_ready(qp);
    return 0;
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

void qp_query(const struct qp *qp, struct qp_attr *attr)
{
    *attr = qp->attr;
    if (qp->attr.state >= QPS_RTR)
        attr->rq_psn = qp->resp.epsn;
    if (qp->attr.state >= QPS_RTS)
        attr->sq_psn = qp->req.sent_psn;
    attr->sq_draining = qp->attr.state == QPS_SQD && !req_is_drained(qp);
}

void qp_info(const struct qp *qp, struct qp_info *info)
{
    const struct requester *r = &qp->req;
    const struct send_wqe *next = r->cur != r->sq.tail ? req_wqe(qp, r->cur) : NULL;
    bool reading = next && req_is_answered(next);
    *info = (struct qp_info){
        .qpn = qp->qpn,
        .dest_qpn = qp->attr.dest_qpn,
        .type = qp->type,
        .state = qp->attr.state,
        .sq_posted = queue_used(&r->sq),
        .rq_posted = queue_used(&qp->resp.rq),
        .una_psn = r->una_psn,
        .next_psn = r->next_psn,
        .max_psn = r->sent_psn,
        .epsn = qp->resp.epsn,
        .msn = qp->resp.msn,
        .retries_left = r->retries_left,
        .rnr_retries_left = r->rnr_left,
        .reads_outstanding = r->rd_count,
        .deadline = req_deadline(qp),
        .srtt_ns = r->srtt,
        .window_bytes = r->cwnd,
        .inflight_bytes = r->inflight,
        .rate = qp->ecn.rate,
        .waiting_rate = qp->ecn.waiting,
        .waiting_rnr = r->rnr_until != 0,
        .waiting_srqn =
            r->rnr_until && qp->type == QPT_XRC_SEND && r->una != r->sq.tail ? req_wqe(qp, r->una)->wr.srqn : 0,
        .waiting_fence = next && ((next->wr.flags & SEND_FENCE && r->rd_count) ||
                                  (next->wr.opcode == WR_LOCAL_INV && r->una != r->cur)),
        .waiting_reads = reading && r->rd_count >= qp->attr.max_rd_atomic,
        .waiting_window = req_window_full(qp),
        .waiting_peer = !list_empty(&qp->peer_wait),
        .waiting_drain = qp->attr.state == QPS_SQD && !req_is_drained(qp),
        .windowless = !qp_is_reliable(qp),
        .progress_at = r->una_psn != r->sent_psn ? r->progress_at : 0,
        .rnr_until = r->rnr_until,
        .timeout_ns = qp->attr.timeout ? req_timeout_ns(qp) : 0,
        .probes = r->probes,
        .retransmitting = r->next_psn != r->sent_psn,
        .failure = qp->failure,
        .counters = qp->counters,
    };
}
