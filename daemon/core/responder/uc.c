// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/uc.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/responder/execute.h"
#include "daemon/core/responder/receive.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/srq.h"

/* Gives up the message under way. Its receive request serves the next message; with an SRQ, that may be a message of
 * another QP. */
static void give_up(struct qp *qp)
{
    qp->resp->message = 0;
    srq_put_back(qp);
}

static void refuse(struct qp *qp, const struct pkt *p, enum rx_verdict v, uint64_t now)
{
    if (v == V_RNR)
        COUNT(qp, rx_no_recv);
    else
        COUNT(qp, rx_refused);
    report_drop_qp(qp, v == V_RNR ? DROP_NO_RECV : DROP_REFUSED, p);
    if (v == V_PROTECTION) {
        resp_complete(qp, WC_LOC_PROT_ERR, now);
        report_error(qp, ERROR_RECV, WC_LOC_PROT_ERR, 0);
        qp_fail(qp);
    }
    give_up(qp);
}

void uc_rx(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct responder *r = qp->resp;
    uint16_t props = op_table[p->opcode].properties;
    bool begins = props & (OP_IS_FIRST | OP_IS_ONLY);
    int32_t ahead = psn_diff(p->psn, r->epsn);
    if (ahead != 0) {
        COUNT(qp, out_of_seq_request);
        if (ahead > 0)
            COUNT_MAX(qp, max_rcvd_window, (uint32_t)ahead);
    }
    if (begins || ahead != 0)
        give_up(qp); /* an incomplete message before this packet is lost */
    r->epsn = psn_add(p->psn, 1); /* a first packet is accepted with any PSN */
    if (!begins && r->message != (props & (OP_IS_SEND | OP_IS_WRITE))) {
        refuse(qp, p, V_DROP, now);
        return;
    }
    enum rx_verdict v = resp_execute(qp, p, now);
    if (v != V_OK) {
        refuse(qp, p, v, now);
        return;
    }
    COUNT_N(qp, rcvd_bytes, p->payload_len);
    resp_established(qp);
}

/* A WRITE to memory that no longer exists is dropped, as other packets that can't be carried out. A failed receive
 * request moves the QP to ERR. */
void uc_mem_fault(struct qp *qp, bool reported)
{
    give_up(qp);
    if (reported) {
        report_error(qp, ERROR_RECV, WC_LOC_PROT_ERR, 0);
        qp_fail(qp);
    }
}
