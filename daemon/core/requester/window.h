// SPDX-License-Identifier: BSD-2-Clause
/* Limits how much the requester may send: its own window of packets and bytes, the destination's window, which it
 * shares with other QPs, and the size of a READ request. */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_WINDOW_H
#define PUMICE_DAEMON_CORE_REQUESTER_WINDOW_H

#include "daemon/core/base/min.h"
#include "daemon/core/qp/qp.h"

/* Packets of the READ chunk that holds packet off, from off to the chunk's end. The bounds of chunks do not change while
 * packets are outstanding. So a repeated request never reaches beyond the first one's responses. */
static inline uint32_t req_chunk_left(const struct send_wqe *w, uint32_t off)
{
    return min32(w->chunk - (off - w->chunk_base) % w->chunk, w->npkts - off);
}

/* Number of packets that each request packet of a READ that begins now asks for. */
uint32_t req_read_chunk(const struct qp *qp, const struct send_wqe *w);
/* A READ is about to ask for the chunk that begins at packet off: chooses the length of this chunk and the following
 * ones by the present windows, if it may change. False: the QP first has to wait for the responses that are outstanding,
 * because chunks should become longer. */
bool req_choose_chunk(const struct qp *qp, struct send_wqe *w, uint32_t off);
/* The window of the request's destination. */
struct peer_window *req_find_peer(struct qp *qp, const struct send_wqe *w);
/* How many of the packets [off, off + want) of a request the windows let through now. 0: none; the QP becomes ready
 * when that changes. */
uint32_t req_window_allows(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want, uint64_t now);
/* The same for packets that are sent again alone: they are within the own window already. */
uint32_t req_window_allows_again(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want, uint64_t now);
/* Is it only its own window that keeps the QP from sending? */
bool req_window_full(const struct qp *qp);

#endif
