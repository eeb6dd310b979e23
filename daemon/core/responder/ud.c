// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/ud.h"

#include <string.h>

#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/request.h"
#include "daemon/core/responder/srq.h"
#include "wire/grh.h"

static void fill_grh(const struct pkt *p, const struct rx_meta *meta, uint8_t out[GRH_LEN])
{
    struct grh g = {.traffic_class = meta->traffic_class, .hop_limit = meta->hop_limit, .flow_label = meta->flow_label};
    memcpy(g.src, meta->src_gid, sizeof(g.src));
    memcpy(g.dst, meta->dst_gid, sizeof(g.dst));
    g.len = (uint16_t)(op_table[p->opcode].header_len + p->payload_len + pkt_pad(p->payload_len) + ICRC_LEN);
    grh_build(&g, out);
}

/* Finds the receive request for a datagram and writes longer payload to its memory. The beginning of the datagram is
 * its header area, and also the payload if it is small. *direct: the client can write the beginning to the buffer by
 * itself, so it can travel in the completion. */
static enum rx_verdict receive(struct qp *qp, const struct pkt *p, bool small, bool *direct)
{
    struct sge_iter to;
    const struct recv_wqe *w = resp_fetch_recv(qp);
    if (!w)
        return V_RNR;
    if (resp_capacity(w) < GRH_LEN + p->payload_len)
        return V_LENGTH;
    uint32_t beginning = GRH_LEN + (small ? p->payload_len : 0);
    resp_recv_iter(qp, &to, w, 0, beginning);
    *direct = sge_iter_plain(&to);
    if (!*direct && !sge_iter_allowed(&to))
        return V_PROTECTION;
    resp_recv_iter(qp, &to, w, beginning, GRH_LEN + p->payload_len - beginning);
    return sge_iter_write(&to, &qp->e->mem, qp->qpn, p->payload, GRH_LEN + p->payload_len - beginning) == COPIED
               ? V_OK
               : V_PROTECTION;
}

/* The beginning of the datagram is in the completion, but the client can't write it to the buffer: the engine writes
 * it. (The completion stays until deferred writes are done.) */
static void put_beginning(struct qp *qp, const struct recv_wqe *w, struct completion *c)
{
    struct sge_iter to;
    resp_recv_iter(qp, &to, w, 0, c->inline_len);
    if (sge_iter_write(&to, &qp->e->mem, qp->qpn, c->data, c->inline_len) != COPIED) {
        c->status = WC_LOC_PROT_ERR;
        report_error(qp, ERROR_RECV, WC_LOC_PROT_ERR, 0);
        qp_fail(qp);
    }
    c->inline_len = 0;
}

static void deliver(struct qp *qp, const struct pkt *p, const struct rx_meta *meta, bool small, bool direct,
                    uint64_t now)
{
    /* the entry is not overwritten before the next request is posted or taken */
    const struct recv_wqe *w = resp_fetch_recv(qp);
    struct completion *c = resp_complete(qp, WC_SUCCESS, now);
    c->src_qp = p->deth.src_qpn;
    c->byte_len = GRH_LEN + p->payload_len;
    c->flags = WC_GRH;
    c->solicited = p->solicited;
    if (op_table[p->opcode].headers & OP_HAS_IMMDT) {
        c->flags |= WC_WITH_IMM;
        memcpy(c->imm, p->imm, sizeof(c->imm));
    }
    fill_grh(p, meta, c->data);
    c->inline_len = GRH_LEN;
    if (small && p->payload_len) {
        memcpy(c->data + GRH_LEN, p->payload, p->payload_len);
        c->inline_len = (uint8_t)(GRH_LEN + p->payload_len);
    }
    if (!direct)
        put_beginning(qp, w, c);
    COUNT(qp, recvs);
    COUNT_N(qp, rcvd_bytes, p->payload_len);
    qp_count_op(qp, CNTR_RECV, c->status == WC_SUCCESS, p->payload_len);
}

void ud_rx(struct qp *qp, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    bool small = p->payload_len <= COMPLETION_INLINE - GRH_LEN, direct = true;
    if (p->deth.qkey != qp->attr.qkey) {
        COUNT(qp, rx_bad_qkey);
        report_drop(qp->e, DROP_QKEY, p, meta);
        return;
    }
    if (p->payload_len > qp->mtu || completion_room(qp->e) == 0) {
        COUNT(qp, rx_refused);
        report_drop(qp->e, DROP_REFUSED, p, meta);
        return;
    }
    switch (receive(qp, p, small, &direct)) {
    case V_OK:
        deliver(qp, p, meta, small, direct, now);
        break;
    case V_RNR:
        COUNT(qp, rx_no_recv);
        report_drop(qp->e, DROP_NO_RECV, p, meta);
        break;
    case V_PROTECTION: /* the user's own receive request is at fault */
        resp_complete(qp, WC_LOC_PROT_ERR, now);
        report_error(qp, ERROR_RECV, WC_LOC_PROT_ERR, 0);
        qp_fail(qp);
        break;
    /* V_LENGTH: the datagram is longer than the receive request. The request stays for a datagram that fits, because a
     * sender must not be able to use up requests by long datagrams. */
    default:
        COUNT(qp, rx_refused);
        report_drop(qp->e, DROP_REFUSED, p, meta);
        srq_put_back(qp);
        break;
    }
}
