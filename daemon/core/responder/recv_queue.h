// SPDX-License-Identifier: BSD-2-Clause
/* Receive requests of a QP: its own, or those that it takes from its SRQ. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_RECV_QUEUE_H
#define PUMICE_DAEMON_CORE_RESPONDER_RECV_QUEUE_H

#include "daemon/core/base/types.h"
#include "daemon/core/base/wqe_queue.h"
#include "daemon/core/qp/responder_state.h"

struct completion;
struct qp;
struct sge_iter;

/* Posts a copy of a receive request. -EINVAL (state RESET, too many SGEs, no receive queue of its own), -ENOMEM (queue
 * full). In ERR it is accepted and flushed. */
int qp_post_recv(struct qp *qp, const struct recv_wr *wr, const struct sge *sge);
/* Free entries of the private receive queue. */
uint32_t qp_recv_room(const struct qp *qp);

/* --- inside the engine ------------------------------------------------------------------------ */

/* The receive request for the message under way, or for the one that begins: the oldest request of the QP or of its
 * SRQ. If there is none, the engine asks the owner for more. The request belongs to the message until it is completed.
 * NULL: there is none. */
struct recv_wqe *resp_fetch_recv(struct qp *qp);
/* Bytes that a receive request has room for, at most ENGINE_MAX_MSG. */
uint32_t resp_capacity(const struct recv_wqe *w);
/* Iterates over bytes [off, off + len) of a receive request. The request must have these bytes. */
void resp_recv_iter(const struct qp *qp, struct sge_iter *s, const struct recv_wqe *w, uint32_t off, uint32_t len);
/* Completes the receive request in use. There must be room for the completion. */
struct completion *resp_complete(struct qp *qp, uint8_t status, uint64_t now);
/* Flushes the receive requests of a failed QP. Then a QP with an SRQ gives EVENT_QP_LAST_WQE_REACHED. True: completions
 * or the event wait for room. */
bool resp_flush(struct qp *qp, uint64_t now);
/* The memory of a receive request failed while its message was under way: completes it. False: no SEND is under way, or
 * there is no room for the completion. */
bool resp_recv_fault(struct qp *qp, uint64_t now);

/* The code for an AETH: how many messages of the peer find a receive request (IBA 9.7.7.2); AETH_NO_CREDITS if the QP
 * gives no credits. The caller sends it. */
uint8_t resp_give_credits(struct qp *qp);
/* The owner has receive requests. If the peer was told that there are none, an ACK tells it. */
void resp_recv_posted(struct qp *qp);
/* A plain ACK was sent. news: it tells of receive requests, and the packet before it said that there are none. It may be
 * lost, so it is repeated some times, until a request of the peer comes. */
void resp_credit_ack_sent(struct qp *qp, bool news, uint64_t now);
/* A request of the peer was accepted: it has heard of the receive requests. */
static inline void resp_credits_arrived(struct responder *r)
{
    if (r->credit_repeats)
        r->ack_deadline = 0;
    r->credit_repeats = 0;
}

#endif
