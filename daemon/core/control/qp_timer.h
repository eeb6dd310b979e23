// SPDX-License-Identifier: BSD-2-Clause
/* The timer of a QP: the earliest of its deadlines. */
#ifndef PUMICE_DAEMON_CORE_CONTROL_QP_TIMER_H
#define PUMICE_DAEMON_CORE_CONTROL_QP_TIMER_H

#include "daemon/core/base/min.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/requester/retry.h"

static inline uint64_t qp_deadline(const struct qp *qp)
{
    uint64_t d = req_deadline(qp);
    if (qp->resp->ack_deadline && qp->resp->ack_deadline < d)
        d = qp->resp->ack_deadline;
    return min64(d, dcqcn_deadline(qp->dcqcn));
}

/* To be called when the deadline may have changed. A deadline mostly moves to a later time, for example with each ACK.
 * Then the timer stays as it is, and is set again when it expires. */
static inline void qp_set_timer(struct qp *qp)
{
    uint64_t d = qp_deadline(qp);
    if (d < qp->timer.when)
        timer_wheel_set(qp->e->timers, &qp->timer, d);
}

#endif
