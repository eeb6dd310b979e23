// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/xrc.h"

enum rx_verdict xrc_check(struct qp *qp, const struct pkt *p)
{
    struct responder *r = qp->resp;
    if (r->message && p->srqn != r->srqn)
        return V_INVALID;
    const struct srq *srq = srq_find(qp->e, p->srqn);
    if (!srq || srq->xrcd != qp->xrcd)
        return V_ACCESS;
    r->srqn = srq->number;
    r->pd = srq->pd;
    return V_OK;
}
