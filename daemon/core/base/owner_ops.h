// SPDX-License-Identifier: BSD-2-Clause
/* The functions by which the engine asks its owner for work requests that the owner has not posted yet. The owner may
 * leave requests in its rings until the engine needs them: then an idle queue costs no copies.
 *
 * The engine calls an entry from within engine_rx and engine_tx. The entry may call back into the engine, but only the
 * functions that are named beside it. Every other call of the engine is forbidden until the entry returns. */
#ifndef PUMICE_DAEMON_CORE_BASE_OWNER_OPS_H
#define PUMICE_DAEMON_CORE_BASE_OWNER_OPS_H

#include <stdbool.h>

struct pkt;

struct owner_ops {
    /* A message needs a receive request and the private receive queue of the QP is empty. The owner posts the requests
     * that it has. With engine_config.e2e_credits, the engine also calls it to count the requests for the peer. It may call
     * qp_post_recv and qp_recv_room. NULL: the owner always posts at once. */
    void (*refill)(void *ctx, void *qp_owner);

    /* The engine calls it in two cases: a message needs a receive request and the private queue of the SRQ is empty; or
     * the engine is about to count the requests for the limit event. The owner posts all requests that the queue has
     * room for, because the limit event counts them. It may call srq_post_recv, srq_room and srq_fail. NULL: the owner
     * always posts at once. */
    void (*refill_srq)(void *ctx, void *srq_owner);

    /* A message to an SRQ with tag matching is about to be matched. The owner carries out all list operations that it
     * has. It may call srq_carry_out and srq_post_op. NULL: the owner always does so at once. */
    void (*list_ops)(void *ctx, void *srq_owner);

    /* Only while engine_withhold_recv is on: the packet, which is the next of its QP, needs a receive request. True: it finds
     * none. It may call nothing. NULL: all packets find none. */
    bool (*withholds)(void *ctx, const struct pkt *p);
};

/* The table and its ctx, as the owner gave them to engine_init. */
struct owner_calls {
    const struct owner_ops *ops;
    void *ctx;
};

#endif
