// SPDX-License-Identifier: BSD-2-Clause
/* Creates, destroys and resets QPs, and puts them into multicast groups. */
#ifndef PUMICE_DAEMON_CORE_CONTROL_QP_LIFE_H
#define PUMICE_DAEMON_CORE_CONTROL_QP_LIFE_H

#include "daemon/core/base/types.h"

struct engine;
struct qp;
struct sched_share;
struct srq;

struct qp_init {
    uint8_t type; /* enum qp_type */
    bool sq_sig_all; /* every send request is signaled */
    uint32_t pd; /* XRC_RECV: 0 */
    uint32_t xrcd; /* XRC_RECV: the owner's number of the XRC domain; else 0 */
    /* RC, UC, UD: its receive requests come from this SRQ (caps.max_recv_wr is then ignored). NULL: from its own
     * queue. */
    struct srq *srq;
    /* An XRC_SEND has no receive queue, and an XRC_RECV no queue at all: the caps of missing queues are ignored. */
    struct qp_caps caps;
    /* The owner's pointers, returned in completions and never followed. XRC_SEND: no recv_cq; XRC_RECV: none. */
    void *send_cq, *recv_cq;
    void *owner; /* the owner's pointer, for completions, events and owner_ops.refill */
    /* The share whose turns it takes (base/scheduler.h), which must live as long as the QP. NULL: that of all QPs without
     * a share. */
    struct sched_share *share;
    void *queues; /* memory for traffic; NULL: it follows the QP in the memory of qp_create */
};

/* Bytes of zeroed, 64-byte aligned memory that qp_create wants for this QP; 0 if its caps exceed a limit of types.h or
 * 16,384 requests per queue. The first qp_state_size() bytes are the QP itself. The others are for traffic: nothing
 * touches them before the first request or packet. The owner may give them separately, as qp_init.queues. */
size_t qp_size(const struct qp_init *init);
size_t qp_state_size(void);
/* Creates a QP in state RESET in mem. -EINVAL, -ENOMEM (max_qp reached). The caller frees mem after qp_destroy. */
int qp_create(struct engine *e, const struct qp_init *init, void *mem, struct qp **qp);
/* Removes the QP at once. Outstanding requests vanish without completions. Completions of the QP that were not taken
 * yet are dropped; those of an XRC target and of an SRQ that matches tags stay, because they belong to the SRQ, and
 * then have no qp_owner. The pointer is not valid afterwards. The owner must have sent the packets of earlier engine_tx
 * calls, because tx_pkt.av points into the QP. */
void qp_destroy(struct qp *qp);
uint32_t qp_number(const struct qp *qp);
void *qp_owner(const struct qp *qp); /* qp_init.owner */

/* For a QP in ERR: the user has posted receive requests, which the engine gets by owner_ops.refill. Makes the engine
 * ask for them and flush them. */
void qp_kick(struct qp *qp);
/* With engine_config.e2e_credits: the user has posted receive requests, which the engine gets by owner_ops.refill. A peer
 * that waits for them is told. */
void qp_recv_posted(struct qp *qp);

/* UD QPs: joins a multicast group (mapped 224.0.0.0/4 or ff00::/8), and leaves it. -EINVAL: not a UD QP or not a group;
 * -ENOMEM: no room; -ENOENT (detach): the QP is no member. Joining twice counts once. A destroyed QP has left all
 * groups. */
int mcast_attach(struct qp *qp, const uint8_t gid[16]);
int mcast_detach(struct qp *qp, const uint8_t gid[16]);

/* --- inside the engine ------------------------------------------------------------------------ */

/* To RESET: all requests vanish without completions (IBA 10.3.1.1). */
void qp_reset(struct qp *qp);

#endif
