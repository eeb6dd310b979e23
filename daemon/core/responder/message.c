// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/message.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/memory/mw.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/responder/recv_queue.h"

void resp_deliver(struct qp *qp, const struct pkt *p, uint8_t opcode, const uint8_t *inline_data, uint64_t now)
{
    struct completion *c = resp_complete(qp, WC_SUCCESS, now);
    c->opcode = opcode;
    c->byte_len = qp->resp->received;
    c->solicited = p->solicited;
    uint16_t headers = op_table[p->opcode].headers;
    if (headers & OP_HAS_IMMDT) {
        c->flags |= WC_WITH_IMM;
        memcpy(c->imm, p->imm, sizeof(c->imm));
    }
    if (headers & OP_HAS_IETH) {
        c->flags |= WC_WITH_INV;
        c->inv_rkey = p->inv_rkey;
        COUNT(qp, mw_invalidates);
    }
    if (inline_data) {
        c->inline_len = (uint8_t)p->payload_len;
        memcpy(c->data, inline_data, p->payload_len);
    }
    if (qp->tm)
        tm_delivered(qp, c, now);
    COUNT(qp, recvs);
    qp_count_op(qp, CNTR_RECV, true, opcode == WC_RECV ? qp->resp->received : 0);
}

enum rx_verdict resp_send(struct qp *qp, const struct pkt *p, uint16_t props, uint64_t now)
{
    struct responder *r = qp->resp;
    const struct recv_wqe *w = resp_fetch_recv(qp);
    assert(w); /* the caller has seen it, and it stays until the message ends */
    if (props & (OP_IS_FIRST | OP_IS_ONLY)) {
        r->received = 0;
        r->remaining = resp_capacity(w);
    }
    if (p->payload_len > r->remaining)
        return V_LENGTH;
    struct mkey *window = NULL; /* to be invalidated (IBA 9.4.1.1.3) */
    if (op_table[p->opcode].headers & OP_HAS_IETH && !(window = mw_find_bound(&qp->e->keys, qp->qpn, p->inv_rkey)))
        return V_ACCESS;
    const uint8_t *inline_data = NULL;
    if (p->payload_len) {
        struct sge_iter to;
        resp_recv_iter(qp, &to, w, r->received, p->payload_len);
        if (props & OP_IS_ONLY && p->payload_len <= COMPLETION_INLINE && sge_iter_plain(&to))
            inline_data = p->payload;
        else if (sge_iter_write(&to, &qp->e->mem, qp->qpn, p->payload, p->payload_len) != COPIED)
            return V_PROTECTION;
    }
    r->received += p->payload_len;
    r->remaining -= p->payload_len;
    r->message = OP_IS_SEND;
    if (props & (OP_IS_LAST | OP_IS_ONLY)) {
        r->message = 0;
        if (window)
            mw_unbind(&qp->e->keys, window);
        resp_deliver(qp, p, WC_RECV, inline_data, now);
    }
    return V_OK;
}
