// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/local_ops.h"

#include "daemon/core/memory/mw.h"

bool req_may_run_local(const struct qp *qp, const struct send_wqe *w)
{
    const struct requester *r = qp->req;
    if (w->wr.opcode == WR_LOCAL_INV && qp_is_reliable(qp) && r->una != r->cur)
        return false;
    return !(w->wr.flags & SEND_FENCE && r->rd_count);
}

bool req_run_local(struct qp *qp, struct send_wqe *w)
{
    struct requester *r = qp->req;
    w->first_psn = r->unsent_psn;
    w->npkts = 0;
    r->unsent++;
    if (w->wr.opcode == WR_BIND_MW) {
        struct mw_binder binder = {.qpn = qp->qpn, .pd = qp->pd, .windows = &qp->windows};
        if (!mw_bind(&qp->e->keys, &binder, &w->wr.bind, &w->local_cause))
            w->local_error = WC_MW_BIND_ERR;
    } else {
        struct mkey *window = mw_find_bound(&qp->e->keys, qp->qpn, w->wr.inv_rkey);
        if (window)
            mw_unbind(&qp->e->keys, window);
        else
            w->local_error = WC_LOC_QP_OP_ERR;
    }
    if (w->local_error)
        return false;
    r->cur++;
    req_pass_local(r);
    return true;
}
