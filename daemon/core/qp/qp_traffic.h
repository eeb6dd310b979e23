// SPDX-License-Identifier: BSD-2-Clause
/* The part of a QP that only traffic uses: its requester, its responder, its queues and counters. It lies in memory of
 * its own, which nothing touches before the first request or packet. So a QP that is only connected takes no memory for
 * it, if its owner maps that memory. */
#ifndef PUMICE_DAEMON_CORE_QP_QP_TRAFFIC_H
#define PUMICE_DAEMON_CORE_QP_QP_TRAFFIC_H

#include "daemon/core/qp/qp.h"
#include "wire/tmh.h"

/* With an SRQ that matches tags: */
#define TM_SEND_SLOTS 64u /* requests of the offload in a QP's send queue */
#define TM_FIN_LEN (TMH_LEN + RVH_LEN) /* bytes of inline data of such a request */

/* Bytes of that memory for a QP of these caps, a multiple of 64. tm: its SRQ matches tags. */
size_t qp_traffic_size(const struct qp_caps *caps, bool tm);
/* Gives the QP its memory, which is zeroed, and does not touch it. */
void qp_traffic_attach(struct qp *qp, void *mem);
/* Sets up queues, requester and responder, as the state and the attributes of the QP want them. */
void qp_traffic_begin(struct qp *qp);

/* To be called before the QP takes a packet, a request or a state in which it works. */
static inline void qp_wake(struct qp *qp)
{
    if (__builtin_expect(!qp->awake, 0))
        qp_traffic_begin(qp);
}

/* On entering RTR: the responder starts at attr.rq_psn. */
void qp_start_responder(struct qp *qp);
/* On entering RTS: the requester starts at attr.sq_psn. */
void qp_start_requester(struct qp *qp);

#endif
