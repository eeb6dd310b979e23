// SPDX-License-Identifier: BSD-2-Clause
/* The rendezvous of tag matching: the offload fetches the data by an RDMA READ of its own, and tells the sender by a
 * FIN.
 *
 * The offload's requests are in the QP's send queue among the user's, in the order in which they were queued. They have
 * slots of their own there (TM_SEND_SLOTS), so that neither kind starves, and so that rendezvous also work for a QP
 * with max_send_wr 0. The FIN is queued when the READ is done. So READs follow each other as closely as max_rd_atomic
 * allows, and FINs leave in the order in which the READs were done. A rendezvous that finds no free slots waits in its
 * entry (tm_entry.job). */
#ifndef PUMICE_DAEMON_CORE_REQUESTER_RENDEZVOUS_H
#define PUMICE_DAEMON_CORE_REQUESTER_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/qp/qp_traffic.h"

struct qp;
struct send_wqe;
struct tm_rx;

/* A rendezvous was matched: moves the message's entry to the requester. True: it needs no READ, and its FIN has been
 * queued. Then rx holds nothing any more, and the completion that the caller has added is the last one. False: the last
 * completion comes later. */
bool rndv_begin(struct qp *qp, struct tm_rx *rx, bool solicited, uint64_t now);
/* Starts the rendezvous that wait for slots. A rendezvous without data, which has waited, is complete with its FIN.
 * False: there is no room for its completion. */
bool rndv_start(struct qp *qp, uint64_t now);
/* A request of the offload was acknowledged, or answered. False: there is no room for its completion. */
bool rndv_retire(struct qp *qp, const struct send_wqe *w, uint64_t now);
/* A request of the offload is flushed. status: enum wc_status, the reason if it is the request that failed. There must
 * be room. */
void rndv_flush_request(struct qp *qp, const struct send_wqe *w, uint8_t status, uint64_t now);

#endif
