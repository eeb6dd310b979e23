// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/completion.h"

#include <inttypes.h>

#include "src/check/base/finding.h"
#include "src/check/connect/tables.h"

static void check_buffer(const struct qp_record *q, const struct request *r)
{
    uint64_t from, to;

    if (!fingerprint_matches(&r->sent, r->sge, r->num_sge, &from, &to))
        finding_add(RULE_SEND_BUFFER, FINDING_AT(r->where),
                    "QP 0x%x: the buffer of the %s with wr_id %" PRIu64
                    " changed before its completion was polled: bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64,
                    q->qp->qp_num, request_kind(r->opcode), r->wr_id, from, to - 1, r->sent.length);
}

/* A completion of the send queue. The earlier requests without completions are done, too. */
static void sent(struct qp_record *q, const struct completion *c)
{
    bool failed = c->status != IBV_WC_SUCCESS;
    struct request *r;

    while ((r = TAILQ_FIRST(&q->sends))) {
        bool its = r->wr_id == c->wr_id && (r->signaled || failed);

        if (!its && r->signaled)
            return; /* the checker has missed something */
        if (!failed)
            check_buffer(q, r);
        else if (its && c->status != IBV_WC_WR_FLUSH_ERR)
            tables_failed(q, r, c->status);
        request_remove(&q->sends, r);
        if (its)
            return;
    }
}

static void received(struct request_queue *queue, uint64_t wr_id)
{
    struct request *r = request_find(queue, wr_id);

    if (r)
        request_remove(queue, r);
}

struct domain_search {
    const struct ibv_cq *cq;
    uint64_t wr_id;
    bool found;
};

static void look_in_domain(void *record, void *arg)
{
    struct srq_record *s = record;
    struct domain_search *search = arg;

    if (search->found || s->cq != search->cq || !request_find(&s->queue, search->wr_id))
        return;
    received(&s->queue, search->wr_id);
    search->found = true;
}

/* A completion of a target queue pair of an XRC domain, perhaps of another process: the peer has named the SRQ. */
static void received_in_domain(const struct cq_record *cq, const struct completion *c)
{
    struct domain_search search = {cq->cq, c->wr_id, false};

    if (c->opcode >= 0 && c->opcode & IBV_WC_RECV)
        records_each(KIND_SRQ, look_in_domain, &search);
}

/* Completions with errors don't say which queue they are of. */
static bool is_receive(const struct qp_record *q, const struct completion *c)
{
    const struct request *r;

    if (c->opcode >= 0)
        return c->opcode & IBV_WC_RECV;
    r = TAILQ_FIRST(&q->receives);
    if (r && r->wr_id == c->wr_id)
        return true;
    return !request_find(&q->sends, c->wr_id);
}

/* A rendezvous that did not fit, or an entry of the tag list: the queue pair works on. A flush follows an error. */
static bool fails_queue(enum ibv_wc_status status)
{
    return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && status != IBV_WC_TM_RNDV_INCOMPLETE &&
           status != IBV_WC_TM_ERR;
}

void completion_polled(struct cq_record *cq, const struct completion *c)
{
    struct qp_record *q = record_of_qpn(cq->cq->context, c->qpn);
    struct srq_record *srq;

    if (cq->coming)
        cq->coming--;
    if (!q || q->qp->qp_type == IBV_QPT_XRC_RECV) {
        received_in_domain(cq, c);
        return;
    }
    if (fails_queue(c->status)) {
        q->failed = true;
        q->failed_at = trace_of(c->caller, c->frame);
    }
    if (!is_receive(q, c)) {
        sent(q, c);
        return;
    }
    srq = q->qp->srq ? record_find(KIND_SRQ, q->qp->srq, NULL) : NULL;
    received(srq ? &srq->queue : &q->receives, c->wr_id);
}
