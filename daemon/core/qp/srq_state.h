// SPDX-License-Identifier: BSD-2-Clause
/* The state of a shared receive queue. The code is in daemon/core/responder/srq.c. */
#ifndef PUMICE_DAEMON_CORE_QP_SRQ_STATE_H
#define PUMICE_DAEMON_CORE_QP_SRQ_STATE_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/wqe_queue.h"

struct engine;
struct tag_list;

struct srq {
    struct engine *e;
    struct queue rq; /* requests that no message has taken */
    struct list_node takers; /* qp.taker of QPs that have taken a request */
    uint32_t taken; /* number of taken requests. They count for the queue's depth, so that each can be put back */
    uint32_t users; /* QPs attached to it */
    void *owner, *cq;
    uint32_t number;
    uint32_t pd; /* of its receive requests' keys, whatever the QP's is. XRC: of remote access, too */
    uint32_t xrcd; /* 0: basic */
    uint32_t max_sge;
    uint32_t limit; /* 0: not armed */
    bool failed; /* no request is taken from it any more */
    struct tag_list *tm; /* NULL: it does not match tags */
};

#endif
