// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues (IBA 10.2.9): receive requests for the messages of several QPs.
 *
 * A QP that uses one has a receive queue of its own that is one entry deep. When a message needs a receive request and
 * that entry is empty, the oldest request of the SRQ moves into it (srq_take), and stays with the message until it
 * completes; so all that the responder knows of receive requests holds for both. The requests that QPs have taken are
 * counted (held) and their QPs listed (holders): one whose QP goes away without having used it is put back, as the
 * first to be taken, and an SRQ that is destroyed takes those under way with it. */
#ifndef PUMICE_CORE_SRQ_H
#define PUMICE_CORE_SRQ_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/wqe_queue.h"
#include "daemon/core/engine.h"

struct srq {
    struct engine *e;
    struct queue rq; /* requests that no message has taken */
    struct list_node holders; /* responder.held of QPs that have taken one */
    uint32_t held; /* how many; they count for the queue's depth, so that each can be put back */
    uint32_t users; /* QPs attached to it */
    void *owner, *cq;
    uint32_t number;
    uint32_t pd; /* of its receive requests' keys, whatever the QP's is; XRC: of remote access, too */
    uint32_t xrcd; /* 0: basic */
    uint32_t max_sge;
    uint32_t limit; /* 0: not armed */
    bool failed; /* nothing is taken from it any more */
    struct tag_list *tm; /* NULL: it matches no tags */
};

struct srq *srq_find(const struct engine *e, uint32_t number); /* NULL: none */
/* Moves its oldest request to the QP's own receive queue, which is empty; false: there is none. May give the limit
 * event. */
bool srq_take(struct srq *srq, struct qp *qp);
/* Has the owner post what it has. */
void srq_ask_owner(struct srq *srq);
/* The QP has no use for the request that it took, if it did: it is the first to be taken again. */
void srq_put_back(struct qp *qp);
/* The QP's request was completed by c: says where it came from. */
void srq_completed(struct qp *qp, struct completion *c);

#endif
