// SPDX-License-Identifier: BSD-2-Clause
/* Posts send requests: checks them and puts them into the send queue of a QP. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_POST_H
#define PUMICE_DAEMON_CORE_REQUESTER_POST_H

#include "daemon/core/base/types.h"

struct qp;

/* A free entry of a QP's send queue. The memory belongs to the engine, so nobody changes the request after its
 * validation. */
struct send_slot {
    struct send_wr *wr;
    /* [max_sge] and [max_inline] bytes, in the same place: the SGEs of the request, or its inline data if
     * SEND_INLINE. */
    struct sge *sge;
    uint8_t *data;
    uint32_t max_sge, max_inline;
};

/* Posting in place: qp_send_reserve gives a free entry, the caller fills it in, and qp_send_commit validates it and
 * posts it. No other call for the QP may come between the two. An entry that is not committed stays free. Reserving
 * counts as posting a request for the validity of tx_pkt.av.
 *
 * qp_send_reserve: -EINVAL (state RESET, INIT or RTR; an XRC target; a profile with owns_send_queue), -ENOMEM (queue
 * full). qp_send_commit: -EINVAL (more SGEs or inline data than the QP's caps; opcode not of the QP's type; message
 * over 2^31 bytes; UD destination or FLUSH operands out of range). In ERR the request is accepted and flushed. */
int qp_send_reserve(struct qp *qp, struct send_slot *slot);
int qp_send_commit(struct qp *qp);

/* Posts a copy of a request. sge: wr->num_sge entries, or data: wr->inline_len bytes if SEND_INLINE. 0, or an error of
 * the calls above. */
int qp_post_send(struct qp *qp, const struct send_wr *wr, const struct sge *sge, const void *data);
/* Free entries of the private send queue. */
uint32_t qp_send_room(const struct qp *qp);

#endif
