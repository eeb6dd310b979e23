// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/credits.h"

#include "wire/syndrome.h"

/* The peer repeats the ACK that tells of receive requests for some milliseconds. So the QP asks only if the peer sends no
 * such ACKs, or if its program posts nothing. */
#define ASK_NS 500000000u

bool req_has_credit(const struct qp *qp, const struct send_wqe *w)
{
    const struct requester *r = qp->req;
    const struct req_credits *c = &r->credits;
    if (c->state == CREDITS_UNLIMITED || !wqe_takes_recv(w) || r->next_psn != r->sent_psn ||
        r->next_psn != w->first_psn || c->may_ask)
        return true;
    return c->state == CREDITS_UNKNOWN ? c->begun == c->done : req_credits_left(c) > 0;
}

void req_credit_used(struct qp *qp, const struct send_wqe *w)
{
    struct req_credits *c = &qp->req->credits;
    if (c->state == CREDITS_UNLIMITED || !wqe_takes_recv(w))
        return;
    if (c->may_ask && req_credits_left(c) == 0) {
        c->asked = true;
        COUNT(qp, credit_asks);
    }
    c->may_ask = false;
    c->wait_until = 0;
    c->begun++;
}

void req_credit_done(struct qp *qp, const struct send_wqe *w)
{
    struct req_credits *c = &qp->req->credits;
    if (c->state == CREDITS_UNLIMITED || !wqe_takes_recv(w))
        return;
    c->done++;
    c->untold |= c->asked; /* nothing else was in flight with it */
    c->asked = false;
}

bool req_credits_received(struct qp *qp, const struct pkt *p)
{
    struct req_credits *c = &qp->req->credits;
    uint8_t code = p->aeth.syndrome & AETH_VALUE_MASK;
    if (c->state == CREDITS_UNLIMITED)
        return false;
    if (code == AETH_NO_CREDITS) {
        c->state = CREDITS_UNLIMITED;
        c->wait_until = 0;
        return true;
    }
    /* Credits are counted from the messages that are done. The responder may know of later messages: then it counted the
     * receive requests that they left, which are fewer. */
    uint32_t limit = c->done + aeth_credits(code);
    bool more = c->state == CREDITS_UNKNOWN || (int32_t)(limit - c->limit) > 0;
    if (more)
        c->limit = limit;
    c->state = CREDITS_LIMITED;
    if (req_credits_left(c) == 0)
        return false;
    c->wait_until = 0;
    c->may_ask = false;
    return more;
}

bool req_credits_unasked(struct qp *qp, const struct pkt *p)
{
    struct req_credits *c = &qp->req->credits;
    if (c->state == CREDITS_UNLIMITED || p->psn != c->plain_psn || (p->aeth.syndrome & AETH_KIND_MASK) != AETH_ACK ||
        !req_credits_received(qp, p))
        return false;
    c->untold = false;
    qp_schedule(qp);
    return true;
}

void req_credit_wait(struct qp *qp, uint64_t soon_ns, uint64_t now)
{
    struct requester *r = qp->req;
    struct req_credits *c = &r->credits;
    if (r->una_psn != r->sent_psn || c->wait_until)
        return;
    COUNT(qp, credit_waits);
    c->wait_until = now + (c->untold ? soon_ns : ASK_NS);
}

void req_credit_ask(struct qp *qp)
{
    qp->req->credits.wait_until = 0;
    qp->req->credits.may_ask = true;
    qp_schedule(qp);
}
