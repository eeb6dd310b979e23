// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/urgent.h"

#include <string.h>

#include "daemon/core/control/exit_check.h"
#include "daemon/core/control/qp_timer.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/responder/reply.h"

void urgent_add(struct qp *qp)
{
    if (list_empty(&qp->urgent))
        list_append(&qp->e->urgent, &qp->urgent);
}

bool urgent_cnp(struct qp *qp, struct tx_batch *b)
{
    struct pkt p = {
        .opcode = OP_CNP,
        .migreq = true,
        .becn = true,
        .pkey = PKEY_DEFAULT,
        .dest_qpn = qp->attr.dest_qpn,
    };
    uint8_t *payload;
    if (!qp->dcqcn->cnp_due)
        return true;
    if (qp->attr.state < QPS_RTR || qp->attr.state == QPS_ERR) {
        qp->dcqcn->cnp_due = false;
        return true;
    }
    struct tx_pkt *t = qp_append(qp, b, &p, PKT_CNP_LEN, &payload);
    if (!t)
        return false;
    t->cnp = true;
    memset(payload, 0, PKT_CNP_LEN);
    COUNT(qp, np_cnp_sent);
    qp->dcqcn->cnp_due = false;
    return true;
}

static bool send_control(struct qp *qp, struct tx_batch *b, uint64_t now)
{
    if (!urgent_cnp(qp, b))
        return false;
    bool alone = resp_has_work(qp->resp) && !qp->resp->res_pending;
    if (alone && resp_tx(qp, b, now) == TX_FULL)
        return false;
    qp_set_timer(qp);
    EXIT_CHECK_QP(qp);
    return true;
}

bool urgent_tx(struct engine *e, struct tx_batch *b, uint64_t now)
{
    while (!list_empty(&e->urgent)) {
        struct qp *qp = list_entry(e->urgent.next, struct qp, urgent);
        if (!send_control(qp, b, now))
            return false;
        list_remove(&qp->urgent);
    }
    return true;
}
