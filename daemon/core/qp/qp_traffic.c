// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/qp_traffic.h"

#include <string.h>

#include "daemon/core/qp/engine_state.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/tm/tag_list.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* With an SRQ that matches tags, the send queue has entries for the offload's own requests, too. */
static uint32_t send_stride(const struct qp_caps *caps, bool tm)
{
    size_t sges = caps->max_send_sge * sizeof(struct sge);
    size_t room = larger(sges, caps->max_inline);
    if (tm)
        room = larger(room, larger(TM_MAX_SGE * sizeof(struct sge), TM_FIN_LEN));
    return round8(offsetof(struct send_wqe, u) + room);
}
static uint32_t send_depth(const struct qp_caps *caps, bool tm)
{
    return caps->max_send_wr + (tm ? TM_SEND_SLOTS : 0);
}

/* The memory of a QP that only traffic uses. The queues of requests follow it, and the rings of READs and atomics come
 * last, because many QPs never use them. */
struct qp_traffic {
    struct requester req;
    struct responder resp;
    struct dcqcn dcqcn;
    struct report failure;
    struct comp_cntr *cntr[CNTR_OPS];
    struct engine_counters counters;
};
#define TRAFFIC_BYTES ((sizeof(struct qp_traffic) + 63) & ~(size_t)63)
#define RD_ATOMIC_BYTES ((sizeof(struct rd_atomic) + 63) & ~(size_t)63)

static size_t send_bytes(const struct qp_caps *caps, bool tm)
{
    return queue_bytes(send_depth(caps, tm), send_stride(caps, tm));
}
static size_t recv_bytes(const struct qp_caps *caps)
{
    return queue_bytes(caps->max_recv_wr, recv_stride(caps->max_recv_sge));
}

size_t qp_traffic_size(const struct qp_caps *caps, bool tm)
{
    return TRAFFIC_BYTES + send_bytes(caps, tm) + recv_bytes(caps) + RD_ATOMIC_BYTES;
}

void qp_traffic_attach(struct qp *qp, void *mem)
{
    struct qp_traffic *t = mem;
    qp->req = &t->req;
    qp->resp = &t->resp;
    qp->dcqcn = &t->dcqcn;
    qp->failure = &t->failure;
    qp->cntr = t->cntr;
    qp->counters = &t->counters;
}

static void lay_out_queues(struct qp *qp)
{
    uint8_t *at = (uint8_t *)qp->req + TRAFFIC_BYTES;
    bool tm = qp->tm != NULL;
    queue_init(&qp->req->sq, at, send_depth(&qp->caps, tm), send_stride(&qp->caps, tm));
    at += send_bytes(&qp->caps, tm);
    queue_init(&qp->resp->rq, at, qp->caps.max_recv_wr, recv_stride(qp->caps.max_recv_sge));
    at += recv_bytes(&qp->caps);
    struct rd_atomic *rd_atomic = (struct rd_atomic *)(void *)at;
    qp->resp->res = rd_atomic->res;
    qp->req->rd = rd_atomic->rd;
    qp->req->atomic_result = rd_atomic->atomic_result;
    qp->req->board.range = rd_atomic->missing;
}
_Static_assert(offsetof(struct qp_traffic, req) == 0, "the memory begins at qp.req");

void qp_traffic_begin(struct qp *qp)
{
    qp->awake = true;
    lay_out_queues(qp);
    list_init(&qp->resp->held.packets);
    list_init(&qp->req->held.packets);
    list_init(&qp->req->rndv);
    qp->resp->pd = qp->pd;
    qp->resp->srqn = qp->srqn;
    if (qp->attr.state >= QPS_RTR)
        qp_start_responder(qp);
    if (qp->attr.state >= QPS_RTS)
        qp_start_requester(qp);
}

void qp_start_responder(struct qp *qp)
{
    struct responder *r = qp->resp;
    resp_drop_responses(qp);
    reorder_clear(&qp->e->reorder, &r->held);
    r->epsn = r->acked_psn = qp->attr.rq_psn;
    r->plain_psn = psn_add(r->epsn, PSN_MASK);
    r->msn = r->plain_msn = 0;
    r->message = 0;
    r->nak_sent = r->nak_quiet = r->stalled = r->ack_pending = r->comm_est = r->told_none = r->closed = false;
    r->sack_pending = r->dropped = false;
    r->twice = 0;
    r->credit_repeats = 0;
    r->nak = 0;
    r->received = r->remaining = r->longest_read = 0;
    r->tm_rx = (struct tm_rx){0};
    r->ack_deadline = r->ack_due = r->data_at = 0;
    if (r->res_tail)
        memset(r->res, 0, (r->res_mask + 1) * sizeof(r->res[0]));
    r->res_tail = r->res_first = r->res_mask = 0;
    resp_set_resources(qp, qp->attr.max_dest_rd_atomic);
}

void qp_start_requester(struct qp *qp)
{
    struct requester *r = qp->req;
    r->una = r->cur = r->unsent = r->sq.head;
    r->una_psn = r->next_psn = r->sent_psn = r->unsent_psn = qp->attr.sq_psn;
    r->flush_end = r->sq.head;
    r->inflight = 0;
    scoreboard_clear(&r->board);
    r->board.probed_at = 0;
    r->board.twice = r->board.resent = r->board.repeated = 0;
    r->sacked = r->behind = false;
    reorder_clear(&qp->e->reorder, &r->held);
    r->asked = 0;
    r->held_cost = 0;
    r->rd_head = r->rd_count = 0;
    r->fail_status = 0;
    r->retries_left = qp->attr.retry_cnt;
    r->rnr_left = qp->attr.rnr_retry;
    r->probes = r->backoff = r->trusted = 0;
    r->probe_due = false;
    r->rnr_until = r->progress_at = r->timer_at = r->fired_at = r->rewound_at = 0;
    r->rtt_start = 0;
    r->credits = (struct req_credits){
        .state = qp->e->cfg.e2e_credits && qp->type == QPT_RC ? CREDITS_UNKNOWN : CREDITS_UNLIMITED,
        .plain_psn = psn_add(qp->attr.sq_psn, PSN_MASK),
    };
}
