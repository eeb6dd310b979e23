// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/tm_receive.h"

#include <string.h>

#include "daemon/core/memory/mw.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/qp/tm_entry.h"
#include "daemon/core/requester/rendezvous.h"
#include "daemon/core/responder/message.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/srq.h"
#include "daemon/core/tm/tag_list.h"

static struct srq *srq_of(const struct qp *qp)
{
    return srq_find(qp->e, qp->srqn);
}

/* Adds the fields of the message's last packet to its completion: solicited event, immediate data, invalidated window.
 * window: the window to be invalidated; NULL: none. */
static void add_extras(struct qp *qp, struct completion *c, const struct pkt *p, struct mkey *window)
{
    c->solicited = p->solicited;
    if (op_table[p->opcode].headers & OP_HAS_IMMDT) {
        c->flags |= WC_WITH_IMM;
        memcpy(c->imm, p->imm, sizeof(c->imm));
    }
    if (window) {
        mw_unbind(&qp->e->keys, window);
        c->flags |= WC_WITH_INV;
        c->inv_rkey = p->inv_rkey;
        COUNT(qp, mw_invalidates);
    }
    COUNT(qp, recvs);
}

/* Finds the memory window that the packet invalidates (IBA 9.4.1.1.3). *window is NULL if it invalidates none. False:
 * the window does not exist. */
static bool find_invalidated(struct qp *qp, const struct pkt *p, struct mkey **window)
{
    *window = NULL;
    return !(op_table[p->opcode].headers & OP_HAS_IETH) ||
           (*window = mw_find_bound(&qp->e->keys, qp->qpn, p->inv_rkey)) != NULL;
}

/* --- the first packet ------------------------------------------------------------------------- */

static void decide(struct qp *qp, const struct pkt *p, bool whole, struct tm_decision *d)
{
    const struct tm_msg m = {.data = p->payload,
                             .len = p->payload_len,
                             .whole = whole,
                             .can_read = qp->attr.max_rd_atomic > 0,
                             .qpn = qp->qpn};
    tm_decide(qp->tm, &m, d);
    if (d->action != TM_ACT_WAIT)
        return;
    srq_ask_owner(srq_of(qp)); /* the program may have posted the buffers that the profile requires */
    tm_decide(qp->tm, &m, d);
}

/* Decides on a message and, if its buffer is available, commits. */
static enum rx_verdict begin(struct qp *qp, const struct pkt *p, bool whole, uint64_t now)
{
    struct tm_decision d;
    decide(qp, p, whole, &d);
    enum rx_verdict v = V_OK;
    if (d.action == TM_ACT_WAIT)
        v = V_RNR;
    else if (d.action == TM_ACT_REFUSE)
        v = V_INVALID;
    else if (d.action == TM_ACT_BUFFER && !resp_fetch_recv(qp))
        v = srq_of(qp)->failed ? V_OPERATION : V_RNR;
    if (v != V_OK) {
        tm_refuse(qp->tm, &d, now);
        return v;
    }
    tm_commit(qp->tm, &d, &qp->resp->tm_rx, now);
    if (d.entry) {
        qp->resp->received = 0;
        qp->resp->remaining = d.entry->capacity;
    }
    return V_OK;
}

/* --- matched messages ------------------------------------------------------------------------- */

static bool store(struct qp *qp, const uint8_t *data, uint32_t len)
{
    const struct tm_entry *e = qp->resp->tm_rx.entry;
    struct sge_iter to;
    sge_iter_sgl(&to, &qp->e->keys, srq_of(qp)->pd, e->sge, qp->resp->received, len, ACCESS_LOCAL_WRITE);
    return sge_iter_write(&to, &qp->e->mem, qp->qpn, data, len) == COPIED;
}

static enum rx_verdict receive_eager(struct qp *qp, const struct pkt *p, uint16_t props, uint64_t now)
{
    struct responder *r = qp->resp;
    struct tm_rx *rx = &r->tm_rx;
    const struct tm_wc *wc = &tm_wc_table[TM_ACT_EAGER];
    uint32_t skip = props & (OP_IS_FIRST | OP_IS_ONLY) ? TMH_LEN : 0;
    uint32_t len = p->payload_len - skip;
    struct mkey *window;
    r->message = OP_IS_SEND;
    if (props & OP_IS_FIRST)
        tm_complete(qp, rx, WC_SUCCESS, wc->first, now);
    if (len > r->remaining)
        return V_LENGTH;
    if (!find_invalidated(qp, p, &window))
        return V_ACCESS;
    if (!store(qp, p->payload + skip, len))
        return V_PROTECTION;
    r->received += len;
    r->remaining -= len;
    if (!(props & (OP_IS_LAST | OP_IS_ONLY)))
        return V_OK;
    r->message = 0;
    struct completion *c = tm_complete(qp, rx, wc->status, props & OP_IS_ONLY ? wc->whole : wc->last, now);
    c->byte_len = r->received;
    add_extras(qp, c, p, window);
    tm_done(qp->tm, rx, now);
    return V_OK;
}

/* The rendezvous request itself goes to the program, as far as it fits into the buffer. */
static enum rx_verdict receive_incomplete(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    const struct tm_wc *wc = &tm_wc_table[TM_ACT_INCOMPLETE];
    uint32_t len = p->payload_len < rx->entry->capacity ? p->payload_len : rx->entry->capacity;
    struct mkey *window;
    if (!find_invalidated(qp, p, &window))
        return V_ACCESS;
    if (!store(qp, p->payload, len))
        return V_PROTECTION;
    struct completion *c = tm_complete(qp, rx, wc->status, wc->whole, now);
    c->byte_len = len;
    add_extras(qp, c, p, window);
    tm_done(qp->tm, rx, now);
    return V_OK;
}

static enum rx_verdict receive_rndv(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct tm_rx *rx = &qp->resp->tm_rx;
    struct mkey *window;
    if (!find_invalidated(qp, p, &window))
        return V_ACCESS;
    struct completion *c = tm_complete(qp, rx, WC_SUCCESS, tm_wc_table[TM_ACT_READ].first, now);
    add_extras(qp, c, p, window);
    if (rndv_begin(qp, rx, p->solicited, now))
        c->flags |= tm_wc_table[TM_ACT_FIN].whole;
    return V_OK;
}

/* A packet may make two completions: that of the match, and that of the message's end. */
#define COMPLETIONS 2u

enum rx_verdict tm_receive(struct qp *qp, const struct pkt *p, uint64_t now)
{
    uint16_t props = op_table[p->opcode].properties;
    if (props & (OP_IS_FIRST | OP_IS_ONLY) && qp->e->owner.ops->list_ops)
        qp->e->owner.ops->list_ops(qp->e->owner.ctx, srq_of(qp)->owner);
    if (completion_room(qp->e) < COMPLETIONS)
        return V_DROP;
    if (props & (OP_IS_FIRST | OP_IS_ONLY)) {
        enum rx_verdict v = begin(qp, p, props & OP_IS_ONLY, now);
        if (v != V_OK)
            return v;
    }
    switch (qp->resp->tm_rx.action) {
    case TM_ACT_EAGER:
    case TM_ACT_OVERFLOW:
        return receive_eager(qp, p, props, now);
    case TM_ACT_INCOMPLETE:
        return receive_incomplete(qp, p, now);
    case TM_ACT_READ:
    case TM_ACT_FIN:
        return receive_rndv(qp, p, now);
    default:
        return resp_send(qp, p, props, now);
    }
}
