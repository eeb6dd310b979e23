// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/complete.h"

#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/requester/failure.h"
#include "daemon/core/requester/rendezvous.h"
#include "daemon/core/requester/retire.h"
#include "daemon/core/responder/recv_queue.h"

bool qp_complete(struct qp *qp, uint64_t now)
{
    bool left = req_retire(qp, now);
    if (left)
        return true;
    if (qp->tm && qp->attr.state != QPS_ERR && !rndv_start(qp, now))
        return true;
    if (req_is_flushing(qp->req))
        left = req_flush(qp, now);
    if (qp->attr.state != QPS_ERR)
        return left;
    left |= qp->tm && tm_flush(qp, now);
    return resp_flush(qp, now) || left;
}
