// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/ack_order.h"

#include "daemon/core/responder/reply.h"
#include "wire/icrc.h"

/* Are the QP's data one packet, not shorter than an ACK? */
static bool is_short_answer(const struct requester *r, uint32_t mtu)
{
    return r->sq.tail - r->cur == 1 && req_wqe(r, r->cur)->length - 1 < mtu;
}

/* Does the batch have room for an answer and an ACK behind it in one GSO send that arrives whole? */
static bool arrives_whole(const struct tx_batch *b, uint32_t mtu)
{
    return b->gso.whole && b->n + 2 <= b->gso.pkts && b->used + 2 * (PKT_HEADERS_MAX + ICRC_LEN) + mtu <= b->gso.bytes;
}

bool ack_order_may_wait(const struct qp *qp, const struct tx_batch *b)
{
    if (resp_is_urgent(qp->resp))
        return false;
    return qp->req->cur == qp->req->sq.tail ||
           (is_short_answer(qp->req, qp->mtu) && (!qp->resp->ack_of_receive || arrives_whole(b, qp->mtu)));
}
