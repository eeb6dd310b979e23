// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/resource.h"

#include "daemon/core/base/psn.h"

struct resource *resp_new_resource(struct qp *qp)
{
    struct responder *r = &qp->resp;
    struct resource *res = &r->res[r->res_tail % ENGINE_MAX_RD_ATOMIC];
    if (res->pending)
        return NULL;
    r->res_tail++;
    return res;
}

void resp_answer_later(struct qp *qp, struct resource *res, uint32_t start, uint32_t end, bool again)
{
    if (!res->pending) {
        res->pending = true;
        res->again = again;
        qp->resp.res_pending++;
        qp->resp.res_again += again;
    }
    res->start_pkt = res->next_pkt = start;
    res->end_pkt = end;
}

/* Looks at the newest resource first: older ones may have the same PSNs of an earlier round. */
struct resource *resp_find_resource(struct qp *qp, uint32_t psn, uint8_t operation)
{
    for (uint32_t i = 0; i < ENGINE_MAX_RD_ATOMIC; i++) {
        struct resource *res = &qp->resp.res[(qp->resp.res_tail - 1 - i) % ENGINE_MAX_RD_ATOMIC];
        int32_t off = psn_diff(psn, res->first_psn);
        if (res->npkts && res->operation == operation && off >= 0 && (uint32_t)off < res->npkts)
            return res;
    }
    return NULL;
}
