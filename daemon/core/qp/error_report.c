// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/error_report.h"

#include <string.h>

#include "daemon/core/qp/qp.h"
#include "wire/syndrome.h"

static void add(struct engine *e, const struct report *r)
{
    struct report_ring *ring = &e->reports;
    if (ring->tail - ring->head == REPORT_SLOTS)
        ring->lost++;
    else
        ring->slot[ring->tail++ % REPORT_SLOTS] = *r;
}

bool engine_pop_report(struct engine *e, struct report *r)
{
    struct report_ring *ring = &e->reports;
    if (ring->head == ring->tail)
        return false;
    *r = ring->slot[ring->head++ % REPORT_SLOTS];
    return true;
}

uint64_t engine_reports_lost(const struct engine *e)
{
    return e->reports.lost;
}

static struct report of_qp(const struct qp *qp, enum report_kind kind)
{
    struct report r = {
        .kind = (uint8_t)kind,
        .qpn = qp->qpn,
        .peer_qpn = qp->attr.dest_qpn,
        .expected = qp->resp->epsn,
    };
    memcpy(r.peer, qp->attr.av.dgid, sizeof(r.peer));
    return r;
}

void report_packet(struct report *r, const struct pkt *p)
{
    uint16_t headers = op_table[p->opcode].headers;
    r->has_packet = true;
    r->opcode = p->opcode;
    r->psn = p->psn;
    r->has_key = headers & (OP_HAS_RETH | OP_HAS_ATOMICETH | OP_HAS_IETH);
    if (headers & OP_HAS_RETH) {
        r->key = p->reth.rkey;
        r->va = p->reth.va;
    } else if (headers & OP_HAS_ATOMICETH) {
        r->key = p->atomic.rkey;
        r->va = p->atomic.va;
    } else if (headers & OP_HAS_IETH) {
        r->key = p->inv_rkey;
    }
}

void report_nak_sent(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p)
{
    struct report r = of_qp(qp, REPORT_NAK_SENT);
    if (p)
        report_packet(&r, p);
    if (p && !r.has_key && qp->resp->message == OP_IS_WRITE) {
        r.has_key = true;
        r.key = qp->resp->rkey;
        r.va = qp->resp->va;
    }
    r.syndrome = syndrome;
    r.psn = psn;
    add(qp->e, &r);
    if ((syndrome & AETH_KIND_MASK) != AETH_NAK || syndrome == NAK_PSN_SEQUENCE || qp->failure->kind != REPORT_NONE)
        return;
    *qp->failure = r; /* with the key and address that the packet named */
    qp->failure->kind = REPORT_ERROR;
    qp->failure->cause = ERROR_REFUSED;
}

void report_nak_rcvd(struct qp *qp, const struct pkt *p)
{
    struct report r = of_qp(qp, REPORT_NAK_RCVD);
    report_packet(&r, p);
    r.syndrome = p->aeth.syndrome;
    add(qp->e, &r);
}

void report_timeout(struct qp *qp)
{
    struct report r = of_qp(qp, REPORT_TIMEOUT);
    r.psn = qp->req->una_psn;
    r.retries_left = qp->req->retries_left;
    add(qp->e, &r);
}

void report_drop(struct engine *e, enum drop_cause cause, const struct pkt *p, const struct rx_meta *meta)
{
    struct report r = {.kind = REPORT_DROP, .cause = (uint8_t)cause, .qpn = p->dest_qpn, .peer_qpn = meta->src_qpn};
    report_packet(&r, p);
    if (op_table[p->opcode].headers & OP_HAS_DETH)
        r.peer_qpn = p->deth.src_qpn;
    memcpy(r.peer, meta->src_gid, sizeof(r.peer));
    add(e, &r);
}

void report_drop_qp(struct qp *qp, enum drop_cause cause, const struct pkt *p)
{
    struct report r = of_qp(qp, REPORT_DROP);
    report_packet(&r, p);
    r.cause = (uint8_t)cause;
    add(qp->e, &r);
}

/* Adds the key and address of the request that the requester's failure is about. */
static void add_request(struct report *r, const struct qp *qp)
{
    const struct requester *req = qp->req;
    r->psn = req->una_psn;
    if (req->una == req->sq.tail)
        return;
    const struct send_wqe *w = req_wqe(req, req->una);
    if (w->wr.opcode == WR_SEND || w->wr.opcode == WR_SEND_WITH_IMM || wqe_is_local(w))
        return;
    r->has_key = true;
    r->key = w->wr.opcode == WR_SEND_WITH_INV ? w->wr.inv_rkey : w->wr.rkey;
    r->va = w->wr.remote_addr;
}

/* Adds the first SGE of the oldest request whose lkey does not allow the access, if there is one. */
static void add_bad_sge(struct report *r, const struct qp *qp)
{
    const struct requester *req = qp->req;
    if (req->una == req->sq.tail)
        return;
    const struct send_wqe *w = req_wqe(req, req->una);
    uint32_t access = wqe_is_read(w) || wqe_is_atomic(w) ? ACCESS_LOCAL_WRITE : 0;
    if (w->offload != OFFLOAD_NONE || w->wr.flags & SEND_INLINE || wqe_is_local(w))
        return;
    for (unsigned i = 0; i < w->wr.num_sge; i++) {
        const struct sge *sge = &w->u.sge[i];
        if (key_open(&qp->e->keys, w->pd, false, 0, sge->lkey, sge->addr, sge->length, access))
            continue;
        r->has_key = true;
        r->key = sge->lkey;
        r->va = sge->addr;
        return;
    }
}

void report_error(struct qp *qp, enum error_cause cause, uint8_t status, uint8_t syndrome)
{
    struct report r = of_qp(qp, REPORT_ERROR);
    if (qp->failure_reported)
        return; /* a consequence of the first error */
    qp->failure_reported = true;
    if (qp->failure->kind != REPORT_NONE) {
        add(qp->e, qp->failure);
        return;
    }
    r.cause = (uint8_t)cause;
    r.status = status;
    r.syndrome = syndrome;
    r.psn = qp->resp->epsn;
    if (cause != ERROR_RECV && cause != ERROR_PROGRAM && cause != ERROR_REFUSED)
        add_request(&r, qp);
    if (status == WC_LOC_PROT_ERR && cause == ERROR_LOCAL)
        add_bad_sge(&r, qp);
    *qp->failure = r;
    add(qp->e, &r);
}

void report_forget(struct qp *qp)
{
    qp->failure->kind = REPORT_NONE;
    qp->failure_reported = false;
}
