// SPDX-License-Identifier: BSD-2-Clause
/* End-to-end credits at the requester (IBA 9.7.7.2). ACKs and responses say how many receive requests the peer has. A
 * message that takes one is sent only if the peer has one for it. The first message needs no credit, because no ACK has
 * told the number yet.
 *
 * A QP without a credit waits until the peer tells of new receive requests by an ACK that nothing asked for. This ACK may
 * be lost, and some peers send none. So after some time the QP sends one message without a credit, as the specification
 * allows. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_CREDITS_H
#define PUMICE_DAEMON_CORE_REQUESTER_CREDITS_H

#include "daemon/core/qp/qp.h"

struct pkt;

/* May the message begin that is next? True for requests that take no receive request, and for messages that have begun. */
bool req_has_credit(const struct qp *qp, const struct send_wqe *w);
/* A new message begins: its first packet was planned. */
void req_credit_used(struct qp *qp, const struct send_wqe *w);
/* A message was acknowledged. */
void req_credit_done(struct qp *qp, const struct send_wqe *w);
/* A packet gave credits with its AETH: an ACK or response of the packets before una_psn, or an ACK that nothing asked
 * for. True: more messages may be sent. */
bool req_credits_received(struct qp *qp, const struct pkt *p);
/* The ACK is for packets that were acknowledged before. Takes the credits of an ACK that nothing asked for. False: it is
 * none. */
bool req_credits_unasked(struct qp *qp, const struct pkt *p);
/* The next message has no credit. Starts the wait for one, unless the answer to a packet in flight will tell. soon_ns: the
 * wait if the peer does not tell. */
void req_credit_wait(struct qp *qp, uint64_t soon_ns, uint64_t now);
/* The wait is over: one message may be sent without a credit. */
void req_credit_ask(struct qp *qp);

/* The peer had no receive request for the message that was sent without a credit. */
static inline void req_credit_refused(struct requester *r)
{
    r->credits.asked = false;
}
/* Messages that may still be sent. */
static inline uint32_t req_credits_left(const struct req_credits *c)
{
    int32_t left = (int32_t)(c->limit - c->begun);
    return left > 0 ? (uint32_t)left : 0;
}

#endif
