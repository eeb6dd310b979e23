// SPDX-License-Identifier: BSD-2-Clause
/* Local operations of the send queue: bind and invalidate. They are carried out on this side and take no PSNs. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_LOCAL_OPS_H
#define PUMICE_DAEMON_CORE_REQUESTER_LOCAL_OPS_H

#include "daemon/core/qp/qp.h"

/* Moves una over local operations that were carried out, because nothing acknowledges them. */
static inline void req_pass_local(struct requester *r)
{
    while (r->una != r->unsent && req_wqe(r, r->una)->npkts == 0 && !req_wqe(r, r->una)->local_error)
        r->una++;
}

/* May the local operation at cur, which has no place in the PSNs yet, be carried out now? It begins after all requests
 * before it have begun. An invalidation begins after they are done, because nothing may use the window after it. */
bool req_may_run_local(const struct qp *qp, const struct send_wqe *w);
/* Gives the local operation at cur its place in the PSNs, carries it out, and moves cur over it. False: it failed
 * (local_error), and the queue stops there. */
bool req_run_local(struct qp *qp, struct send_wqe *w);

#endif
