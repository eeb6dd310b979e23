// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/resource.h"

#include "daemon/core/base/psn.h"

struct resource *resp_new_resource(struct qp *qp)
{
    struct responder *r = qp->resp;
    struct resource *res = resp_resource(r, r->res_tail);
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
    while (r->res_first != r->res_tail && !resp_resource(r, r->res_first)->pending)
        r->res_first++;
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
