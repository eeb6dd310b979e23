// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/post.h"

#include <errno.h>
#include <inttypes.h>

#include "src/check/base/finding.h"
#include "src/check/connect/late.h"
#include "src/check/connect/peers.h"
#include "src/check/objects/dead_keys.h"
#include "src/check/requests/access.h"

static bool is_read(int opcode)
{
    return opcode == IBV_WR_RDMA_READ;
}

static bool is_atomic(int opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Does the device read the buffers of the request? */
static bool sends_data(int opcode)
{
    switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return true;
    default:
        return false;
    }
}

/* Does the message take a receive request of the peer? */
static bool takes_receive_request(int opcode)
{
    return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || (sends_data(opcode) && opcode != IBV_WR_RDMA_WRITE);
}

/* Must the buffer stay as it is until a completion was polled? A datagram without a completion is an exception: it is never
 * sent again, so an answer of its receiver also says that the device is done with the buffer. UCX relies on that. */
static bool is_lent_until_completion(const struct qp_record *q, const struct request *r)
{
    return q->qp->qp_type != IBV_QPT_UD || r->signaled;
}

/* A CQ that may get this many completions more. */
static void expect(struct cq_record *cq, const struct trace *where)
{
    if (!cq)
        return;
    cq->coming++;
    if (cq->coming == (uint32_t)cq->cq->cqe + 1 && rule_is_on(RULE_CQ_SIZE))
        finding_add(RULE_CQ_SIZE,
                    &(const struct finding_place){.where = where, .other = cq->r.where, .whose = "the CQ was made"},
                    "%u completions may come to a CQ that has room for %d: it can overflow", cq->coming, cq->cq->cqe);
}

static void expect_less(struct cq_record *cq)
{
    if (cq && cq->coming)
        cq->coming--;
}

/* --- rules ------------------------------------------------------------------------------------- */

static void check_keys(const struct request *r, const struct ibv_context *context)
{
    struct finding_place place = {.where = r->where, .whose = "the region was deregistered"};

    for (unsigned i = 0; i < r->num_sge; i++) {
        bool alive = !r->sge[i].length || record_of_lkey(context, r->sge[i].lkey);

        if (!alive && dead_keys_has(context, r->sge[i].lkey, &place.other))
            finding_add(RULE_DEAD_KEY, &place,
                        "the %s with wr_id %" PRIu64 " has the key 0x%x of a region that was deregistered",
                        request_kind(r->opcode), r->wr_id, r->sge[i].lkey);
    }
}

static bool needs_targets(void)
{
    return rule_is_on(RULE_OVERLAP) || rule_is_on(RULE_READ_FENCE) || rule_is_on(RULE_TOUCH);
}

static void check_overlap(struct request *r)
{
    const struct request *other = request_add_targets(r);

    if (other && rule_is_on(RULE_OVERLAP))
        finding_add(
            RULE_OVERLAP,
            &(const struct finding_place){.where = r->where, .other = other->where, .whose = "the outstanding request"},
            "the %s with wr_id %" PRIu64 " and the outstanding %s with wr_id %" PRIu64
            " have memory in common: its contents will be those of either",
            request_kind(r->opcode), r->wr_id, request_kind(other->opcode), other->wr_id);
}

static void check_fence(const struct qp_record *q, const struct request *r)
{
    for (unsigned i = 0; i < r->num_sge; i++) {
        const struct request *w = request_writing(&r->sge[i]);

        if (w && w->owner == q->qp && (is_read(w->opcode) || is_atomic(w->opcode)))
            finding_add(
                RULE_READ_FENCE,
                &(const struct finding_place){.where = r->where, .other = w->where, .whose = "the earlier request"},
                "QP 0x%x: the %s with wr_id %" PRIu64 " sends memory that the %s with wr_id %" PRIu64
                " still fills; IBV_SEND_FENCE makes it wait",
                q->qp->qp_num, request_kind(r->opcode), r->wr_id, request_kind(w->opcode), w->wr_id);
    }
}

/* The first 40 bytes of a datagram's buffer are for the GRH, also if there is none. */
static void check_room_for_grh(const struct request *r)
{
    uint64_t length = 0;

    for (unsigned i = 0; i < r->num_sge; i++)
        length += r->sge[i].length;
    if (length < sizeof(struct ibv_grh))
        finding_add(RULE_GRH, FINDING_AT(r->where),
                    "the receive request with wr_id %" PRIu64 " of a datagram QP has %" PRIu64
                    " bytes, but the first 40 bytes are for the GRH: no message has "
                    "room",
                    r->wr_id, length);
}

static void check_state(const struct qp_record *q, const struct trace *where)
{
    if (q->failed && rule_is_on(RULE_AFTER_ERROR))
        finding_add(
            RULE_AFTER_ERROR,
            &(const struct finding_place){.where = where, .other = q->failed_at, .whose = "the error was polled"},
            "QP 0x%x: the program posts a request after a completion with an error; it will fail, too, until the QP "
            "is reset",
            q->qp->qp_num);
}

static void check_send(struct qp_record *q, struct request *r, unsigned flags)
{
    if (rule_is_on(RULE_DEAD_KEY))
        check_keys(r, q->qp->context);
    if (sends_data(r->opcode)) {
        if (rule_is_on(RULE_READ_FENCE) && !(flags & IBV_SEND_FENCE))
            check_fence(q, r);
        if (rule_is_on(RULE_SEND_BUFFER) && is_lent_until_completion(q, r))
            fingerprint_take(&r->sent, r->sge, r->num_sge);
    } else if ((is_read(r->opcode) || is_atomic(r->opcode)) && needs_targets()) {
        check_overlap(r);
    }
}

static void note_remote(struct request *r, const struct ibv_send_wr *wr)
{
    if (is_atomic(r->opcode)) {
        r->rkey = wr->wr.atomic.rkey;
        r->remote_addr = wr->wr.atomic.remote_addr;
    } else if (is_read(r->opcode) || r->opcode == IBV_WR_RDMA_WRITE || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        r->rkey = wr->wr.rdma.rkey;
        r->remote_addr = wr->wr.rdma.remote_addr;
    }
}

/* --- posting ----------------------------------------------------------------------------------- */

void post_sends(struct qp_record *q, const struct ibv_send_wr *wr, const struct trace *where)
{
    struct cq_record *cq = record_find(KIND_CQ, q->qp->send_cq, NULL);

    check_state(q, where);
    for (; wr; wr = wr->next) {
        bool signaled = (wr->send_flags & IBV_SEND_SIGNALED) || q->all_signaled;
        const struct request like = {
            .wr_id = wr->wr_id, .opcode = (int)wr->opcode, .signaled = signaled, .owner = q->qp, .where = where};
        struct request *r =
            request_add(&q->sends, &like, wr->sg_list, wr->send_flags & IBV_SEND_INLINE ? 0 : (unsigned)wr->num_sge);

        if (!r)
            return;
        note_remote(r, wr);
        if (signaled)
            expect(cq, where);
        access_locate(r, q->qp->context, is_read(r->opcode) || is_atomic(r->opcode));
        check_send(q, r, wr->send_flags);
    }
}

/* Takes back the last request, and returns whether there was one. */
static struct request *last(struct request_queue *queue)
{
    return TAILQ_LAST(queue, request_queue);
}

void post_last_refused(struct qp_record *q, unsigned n, int rc, const struct trace *where)
{
    struct cq_record *cq = record_find(KIND_CQ, q->qp->send_cq, NULL);
    const struct request *r;
    bool signaled = false;

    for (; n && last(&q->sends); n--) {
        if (last(&q->sends)->signaled)
            expect_less(cq);
        request_remove(&q->sends, last(&q->sends));
    }
    TAILQ_FOREACH (r, &q->sends, link)
        signaled |= r->signaled;
    if (rc == ENOMEM && !signaled && !TAILQ_EMPTY(&q->sends) && rule_is_on(RULE_UNSIGNALED))
        finding_add(
            RULE_UNSIGNALED, FINDING_AT(where),
            "QP 0x%x: the send queue is full of requests without IBV_SEND_SIGNALED: no completion will come to make "
            "room",
            q->qp->qp_num);
}

void post_sends_refused(struct qp_record *q, const struct ibv_send_wr *bad, int rc, const struct trace *where)
{
    unsigned n = 0;

    for (; bad; bad = bad->next)
        n++;
    post_last_refused(q, n, rc, where);
}

void post_sends_taken(struct qp_record *q, const struct ibv_send_wr *wr, const struct ibv_send_wr *bad,
                      const struct trace *where)
{
    for (; q->own && wr && wr != bad; wr = wr->next) {
        if (takes_receive_request((int)wr->opcode))
            peers_sent(q->own, where);
    }
}

/* NULL: no memory. */
static struct request *add_receive(struct request_queue *queue, const void *owner, const struct ibv_context *context,
                                   const struct ibv_recv_wr *wr, const struct trace *where)
{
    const struct request like = {
        .wr_id = wr->wr_id, .opcode = OPCODE_RECV, .signaled = true, .owner = owner, .where = where};
    struct request *r = request_add(queue, &like, wr->sg_list, (unsigned)wr->num_sge);

    if (!r)
        return NULL;
    access_locate(r, context, true);
    if (rule_is_on(RULE_DEAD_KEY))
        check_keys(r, context);
    if (needs_targets())
        check_overlap(r);
    return r;
}

void post_receives(struct qp_record *q, const struct ibv_recv_wr *wr, const struct trace *where)
{
    struct cq_record *cq = record_find(KIND_CQ, q->qp->recv_cq, NULL);
    const struct request *r;

    for (; wr && (r = add_receive(&q->receives, q->qp, q->qp->context, wr, where)); wr = wr->next) {
        expect(cq, where);
        if (q->qp->qp_type == IBV_QPT_UD && rule_is_on(RULE_GRH))
            check_room_for_grh(r);
        if (rule_is_on(RULE_LATE_RECEIVE))
            late_check(q, r);
        q->receives_posted++;
    }
}

void post_receives_refused(struct qp_record *q, const struct ibv_recv_wr *bad)
{
    struct cq_record *cq = record_find(KIND_CQ, q->qp->recv_cq, NULL);

    for (; bad && last(&q->receives); bad = bad->next) {
        expect_less(cq);
        q->receives_posted--;
        request_remove(&q->receives, last(&q->receives));
    }
}

void post_srq_receives(struct srq_record *s, const struct ibv_recv_wr *wr, const struct trace *where)
{
    const struct ibv_srq *srq = s->r.object;

    while (wr && add_receive(&s->queue, srq, srq->context, wr, where))
        wr = wr->next;
}

void post_srq_receives_refused(struct srq_record *s, const struct ibv_recv_wr *bad)
{
    for (; bad && last(&s->queue); bad = bad->next)
        request_remove(&s->queue, last(&s->queue));
}
