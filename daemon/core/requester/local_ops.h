// SPDX-License-Identifier: BSD-2-Clause
/* Local operations of the send queue: bind and invalidate. They are carried out on this side and take no PSNs. */
#ifndef PUMICE_CORE_REQUESTER_LOCAL_OPS_H
#define PUMICE_CORE_REQUESTER_LOCAL_OPS_H

#include "daemon/core/qp/qp.h"

/* Local operations that were carried out do not stay the oldest unacknowledged request. */
static inline void req_pass_local(struct requester *r)
{
    while (r->una != r->unsent && req_wqe(r, r->una)->npkts == 0 && !req_wqe(r, r->una)->local_error)
        r->una++;
}

/* Carries out the local operation at cur, which has no place in the PSNs yet. It begins after all requests before it have begun. An
 * invalidation begins after they are done, because nothing may use the window after it. False: it has to wait, or it failed
 * (local_error). */
bool req_run_local(struct qp *qp, struct send_wqe *w);

#endif
