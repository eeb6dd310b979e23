// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues (IBA 10.2.9): receive requests for the messages of several QPs.
 *
 * A QP with an SRQ has a receive queue of its own that is one entry deep. When a message needs a receive request and
 * that entry is empty, the oldest request of the SRQ moves into it (srq_take). It stays with the message until it
 * completes. So the responder's code for receive requests holds for both kinds of queue. The SRQ counts the requests
 * that QPs have taken (taken) and lists their QPs (takers). If a QP is destroyed or reset before it has used its
 * request, the request goes back and is the next to be taken. When an SRQ is destroyed, the requests that QPs have
 * taken are dropped, too. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_SRQ_H
#define PUMICE_DAEMON_CORE_RESPONDER_SRQ_H

#include "daemon/core/base/types.h"

struct engine;
struct qp;
struct srq;
struct tag_list;
struct tm_op;
struct tm_op_result;

/* The first packet of a SEND takes the oldest request of the SRQ. For an RDMA WRITE with immediate data, the last
 * packet takes it. The message keeps the request until it completes. Each request completes once, with two exceptions:
 * requests of an SRQ that is destroyed, and requests whose completions were not taken yet when their QP was destroyed.
 * (So take completions first, to know that a slot is free again.) When a QP is destroyed or reset, the request that it
 * had taken goes back to the front of the SRQ. A QP with an SRQ that goes to ERR flushes the request that it has taken,
 * and then gives EVENT_QP_LAST_WQE_REACHED, once. The event waits in engine_tx until the event queue has room. */

struct srq_init {
    uint32_t pd;
    uint32_t xrcd; /* the owner's number of the XRC domain; 0: a basic SRQ */
    uint32_t max_wr; /* at most 16,384 */
    uint32_t max_sge; /* at most ENGINE_MAX_SGE */
    void *cq; /* XRC, tags: the CQ of its completions. Completions of a basic SRQ go to the QP's receive CQ */
    /* Not NULL: the SRQ matches tags by this list, which tm_init made for it. The owner frees the memory of the list
     * after srq_destroy. */
    struct tag_list *tm;
    void *owner; /* the owner's pointer, for completions, events and refill_srq */
};
/* Bytes of zeroed, 64-byte aligned memory that srq_create wants; 0: beyond a limit. */
size_t srq_size(uint32_t max_wr, uint32_t max_sge);
/* -EINVAL, -ENOMEM (max_srq reached). The caller frees mem after srq_destroy. */
int srq_create(struct engine *e, const struct srq_init *init, void *mem, struct srq **srq);
/* Removes the SRQ and its requests at once. A basic SRQ must have no QP (-EBUSY). Later XRC packets that name the SRQ
 * are refused. Completions of the SRQ that were not taken yet are dropped. */
int srq_destroy(struct srq *srq);
/* Carries out an operation on the matching list. Its completion, if it has one, goes to the SRQ's CQ. -EINVAL: the SRQ
 * matches no tags. -EAGAIN: there is no room for the completion, and nothing was done. */
int srq_post_op(struct srq *srq, const struct tm_op *op, uint64_t now);
/* As srq_post_op. *result says what was done, with or without a completion. */
int srq_carry_out(struct srq *srq, const struct tm_op *op, struct tm_op_result *result, uint64_t now);
uint32_t srq_number(const struct srq *srq); /* 24 bits, unique on the device, not 0 */
/* -EINVAL (too many SGEs), -ENOMEM (full). */
int srq_post_recv(struct srq *srq, const struct recv_wr *wr, const struct sge *sge);
/* Free entries. A request that a message has taken keeps its entry until it completes. */
uint32_t srq_room(const struct srq *srq);
uint32_t srq_posted(const struct srq *srq); /* requests in the private queue */
/* Arms the limit event. The engine gives it once, when a message has wanted a request and fewer requests than limit are
 * left, and disarms it (limit becomes 0). Before it counts, it asks the owner for more by owner_ops.refill_srq. While
 * the event queue has no room, the limit stays armed. */
void srq_set_limit(struct srq *srq, uint32_t limit);
uint32_t srq_limit(const struct srq *srq); /* 0: not armed */
/* The owner can't supply requests any more, because their ring is broken: gives EVENT_SRQ_ERR, once. A connected QP
 * whose next message needs a request sends a NAK for a remote operational error and goes to ERR. owner_ops.refill_srq
 * may call it. */
void srq_fail(struct srq *srq);
/* Moves the queue to new memory of srq_size(max_wr, same max_sge) bytes. -EINVAL: more than max_wr requests are in it,
 * or taken from it by messages that are not complete. The old memory is the caller's again. */
int srq_resize(struct srq *srq, uint32_t max_wr, void *mem, struct srq **out);

/* --- inside the engine ------------------------------------------------------------------------ */

/* Moves the oldest request of the SRQ to the QP's own receive queue, which is empty. False: there is none. May give the
 * limit event. */
bool srq_take(struct srq *srq, struct qp *qp);
/* Has the owner post the requests that it has (owner_ops.refill_srq). */
void srq_ask_owner(struct srq *srq);
/* If the QP holds a request of its SRQ, gives it back. This request is then the first to be taken. */
void srq_put_back(struct qp *qp);
/* To be called when c completes the request in the QP's receive queue. If the request came from the SRQ, fills in the
 * SRQ in c. */
void srq_completed(struct qp *qp, struct completion *c);

#endif
