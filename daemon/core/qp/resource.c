// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/resource.h"

#include "daemon/core/base/min.h"
#include "daemon/core/base/psn.h"

struct resource *resp_new_resource(struct qp *qp)
{
    struct responder *r = qp->resp;
    struct resource *res = resp_resource(r, r->res_tail);
    /* The requester has the first answer. Otherwise it could not have one more request outstanding. */
    if (res->pending && res->again)
        resp_response_done(qp, res);
    if (res->pending)
        return NULL;
    r->res_tail++;
    return res;
}

uint32_t resp_resource_index(const struct responder *r, const struct resource *res)
{
    uint32_t newest = r->res_tail - 1;
    return newest - ((newest - (uint32_t)(res - r->res)) & r->res_mask);
}

static void put_copy(struct qp *qp, struct resource *res)
{
    read_copies_put(&qp->e->copies);
    res->copied = false;
}

void resp_answer_later(struct qp *qp, struct resource *res, uint32_t start, uint32_t end, bool again)
{
    struct responder *r = qp->resp;
    if (res->pending) {
        if (res->copied && start < res->copy_pkt) {
            put_copy(qp, res);
            r->res_unread += resource_is_unread(res);
        }
    } else {
        uint32_t index = resp_resource_index(r, res);
        if (r->res_pending == 0 || (int32_t)(index - r->res_first) < 0)
            r->res_first = index;
        res->pending = true;
        res->again = again;
        r->res_pending++;
        r->res_again += again;
        r->res_unread += resource_is_unread(res);
    }
    res->start_pkt = res->next_pkt = start;
    res->end_pkt = end;
}

/* Are packets [start, end) in a part that is still to be sent? */
static bool is_waiting(const struct resource *res, uint32_t start, uint32_t end)
{
    bool found = res->next_pkt <= start && end <= res->end_pkt;
    for (uint32_t i = 0; i < res->repeats && !found; i++)
        found = res->repeat[i].start <= start && end <= res->repeat[i].end;
    return found;
}

void resp_answer_again(struct qp *qp, struct resource *res, uint32_t start, uint32_t end)
{
    if (res->pending && is_waiting(res, start, end))
        return;
    if (!res->pending || (start < res->next_pkt && end >= res->end_pkt)) {
        resp_answer_later(qp, res, start, end, true);
    } else if (res->repeats < REPEATS_MOST) {
        res->repeat[res->repeats].start = start;
        res->repeat[res->repeats++].end = end;
    } else { /* with what is between */
        uint32_t last = REPEATS_MOST - 1;
        res->repeat[last].start = min32(start, res->repeat[last].start);
        res->repeat[last].end = end > res->repeat[last].end ? end : res->repeat[last].end;
    }
}

void resp_set_copy(struct qp *qp, struct resource *res, uint8_t *copy)
{
    qp->resp->res_unread -= resource_is_unread(res);
    res->copied = true;
    res->copy = copy;
    res->copy_pkt = res->next_pkt;
}

void resp_set_kept(struct qp *qp, struct resource *res)
{
    qp->resp->res_unread -= resource_is_unread(res);
    res->kept = true;
}

void resp_response_done(struct qp *qp, struct resource *res)
{
    struct responder *r = qp->resp;
    r->res_unread -= resource_is_unread(res);
    if (res->copied)
        put_copy(qp, res);
    r->res_pending--;
    r->res_again -= res->again;
    res->pending = false;
    res->repeats = 0;
    while (r->res_first != r->res_tail && !resp_resource(r, r->res_first)->pending)
        r->res_first++;
}

void resp_round_done(struct qp *qp, struct resource *res)
{
    uint8_t left = res->repeats;
    resp_response_done(qp, res);
    if (left == 0)
        return;
    resp_answer_later(qp, res, res->repeat[0].start, res->repeat[0].end, true);
    res->repeats = (uint8_t)(left - 1);
    for (uint8_t i = 0; i < res->repeats; i++)
        res->repeat[i] = res->repeat[i + 1];
}

void resp_drop_responses(struct qp *qp)
{
    while (qp->resp->res_pending)
        resp_response_done(qp, resp_resource(qp->resp, qp->resp->res_first));
}

/* Looks at the newest resource first: older ones may have the same PSNs of an earlier round. */
struct resource *resp_find_resource(struct qp *qp, uint32_t psn, uint8_t operation)
{
    const struct responder *r = qp->resp;
    for (uint32_t i = 0; i <= r->res_mask; i++) {
        struct resource *res = resp_resource(r, r->res_tail - 1 - i);
        int32_t off = psn_diff(psn, res->first_psn);
        if (res->npkts && res->operation == operation && off >= 0 && (uint32_t)off < res->npkts)
            return res;
    }
    return NULL;
}

void resp_set_resources(struct qp *qp, uint32_t n)
{
    struct responder *r = qp->resp;
    uint32_t old = r->res_mask + 1;
    uint32_t size = pow2_at_least(n < RESOURCES_LEAST ? RESOURCES_LEAST : n);
    if (size <= old && r->res_mask)
        return;
    r->res_mask = size - 1;
    if (r->res_tail == 0)
        return;
    /* Each entry stays, or moves to the new part of the ring, which is empty. */
    for (uint32_t i = r->res_tail - old; i != r->res_tail; i++) {
        struct resource *from = &r->res[i & (old - 1)], *to = resp_resource(r, i);
        if (from == to)
            continue;
        *to = *from;
        *from = (struct resource){0};
    }
}
