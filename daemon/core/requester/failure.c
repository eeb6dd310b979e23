// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/failure.h"

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_fail.h"

void req_fail(struct qp *qp, uint8_t status, uint8_t cause)
{
    static const uint8_t cause_of[] = {
        [WC_LOC_LEN_ERR] = ERROR_LOCAL,       [WC_LOC_QP_OP_ERR] = ERROR_LOCAL,
        [WC_LOC_PROT_ERR] = ERROR_LOCAL,      [WC_MW_BIND_ERR] = ERROR_LOCAL,
        [WC_BAD_RESP_ERR] = ERROR_RESPONSE,   [WC_REM_INV_REQ_ERR] = ERROR_PEER_NAK,
        [WC_REM_ACCESS_ERR] = ERROR_PEER_NAK, [WC_REM_OP_ERR] = ERROR_PEER_NAK,
        [WC_RETRY_EXC_ERR] = ERROR_RETRY,     [WC_RNR_RETRY_EXC_ERR] = ERROR_RNR_RETRY,
    };
    enum error_cause why = status < sizeof(cause_of) ? (enum error_cause)cause_of[status] : ERROR_PROGRAM;
    report_error(qp, why == ERROR_PROGRAM ? ERROR_LOCAL : why, status, why == ERROR_PEER_NAK ? cause : 0);
    qp->req->fail_status = status;
    qp->req->fail_cause = cause;
    if (qp_is_reliable(qp))
        qp_fail(qp);
    else
        qp_fail_sends(qp);
}
