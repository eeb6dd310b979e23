// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/exit_check.h"

#include <assert.h>

#include "daemon/core/control/qp_timer.h"
#include "daemon/core/qp/qp_check.h"

static bool can_send(const struct qp *qp)
{
    return qp->attr.state == QPS_RTS || qp->attr.state == QPS_SQD;
}

void exit_check_qp(const struct qp *qp)
{
    const struct requester *r = qp->req;
    qp_check(qp);
    bool waits = sched_is_waiting(&qp->sched) || !list_empty(&qp->sched.ready) || qp->dcqcn->waiting;
    if (can_send(qp) && r->una_psn != r->sent_psn && !(waits && r->next_psn == r->una_psn))
        assert(qp_deadline(qp) != NEVER);
    assert(qp->timer.when <= qp_deadline(qp));
}

void exit_check_turn(const struct qp *qp)
{
    const struct requester *r = qp->req;
    exit_check_qp(qp);
    if (qp->attr.state != QPS_RTS || r->cur == r->sq.tail)
        return;
    bool ready = !list_empty(&qp->sched.ready);
    assert(ready || sched_is_waiting(&qp->sched) || qp->dcqcn->waiting || r->rnr_until || r->credits.wait_until ||
           r->una_psn != r->sent_psn);
}
