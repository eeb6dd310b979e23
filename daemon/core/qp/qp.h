// SPDX-License-Identifier: BSD-2-Clause
/* A queue pair: its attributes, and the state of its two halves. */
#ifndef PUMICE_DAEMON_CORE_QP_QP_H
#define PUMICE_DAEMON_CORE_QP_QP_H

#include <string.h>

#include "daemon/core/base/scheduler.h"
#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/base/tx_batch.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/core/qp/comp_cntr_state.h"
#include "daemon/core/qp/engine_state.h"
#include "daemon/core/qp/requester_state.h"
#include "daemon/core/qp/responder_state.h"

struct qp {
    struct engine *e;
    struct sched_entity sched; /* ready: it may have something to send or to complete; waiting: for its peer's window */
    struct timer timer;
    struct list_node urgent; /* in engine.urgent: perhaps a CNP, a NAK or an ACK is due */
    struct list_node taker; /* in srq.takers while resp->rq holds a request of it */
    struct list_node groups; /* UD: mcast_member.of_qp of the groups that it is in */
    /* Connected QPs: the window of their destination. UD: that of the last request, if the entry still has this
     * address. */
    struct peer_window *peer;
    void *owner, *send_cq, *recv_cq;
    uint32_t qpn;
    uint32_t pd;
    uint32_t mtu; /* bytes */
    uint8_t type;
    uint8_t service; /* enum op_service */
    uint16_t send_ops; /* requests that may be posted: bits of enum send_op */
    uint8_t cntr_ops; /* bits of enum cntr_op: requests that completion counters count */
    bool awake; /* its requester, responder and queues are set up */
    bool sq_sig_all;
    bool sq_drained_reported;
    bool last_wqe_reported;
    uint32_t srqn; /* number of the SRQ that it is attached to; 0: none */
    uint32_t xrcd; /* XRC target: its domain */
    struct list_node windows; /* mkey.mw.of_qp of the memory windows of type 2B that are bound through it */
    struct tag_list *tm; /* the SRQ's matching list; NULL: none */
    struct qp_caps caps;
    struct qp_attr attr; /* state included */
    /* Only traffic uses these (qp_traffic.h). Nothing touches their memory before the QP is awake. */
    struct requester *req;
    struct responder *resp;
    struct dcqcn *dcqcn;
    struct engine_counters *counters;
    struct comp_cntr **cntr; /* [CNTR_OPS]: valid where cntr_ops has the bit */
    struct report *failure; /* the first cause of its error state; kind REPORT_NONE: none */
    bool failure_reported; /* a report of the failure was made */
};

/* Are the packets of the QP acknowledged, and sent again when they are lost? True for RC and XRC. */
static inline bool qp_is_reliable(const struct qp *qp)
{
    return qp->service == OP_SERVICE_RC || qp->service == OP_SERVICE_XRC;
}

/* May the QP take packets? In SQE and SQD the responder goes on. */
static inline bool qp_may_receive(const struct qp *qp)
{
    return qp->attr.state >= QPS_RTR && qp->attr.state != QPS_ERR;
}

/* Are receive requests posted to the QP itself? */
static inline bool qp_has_rq(const struct qp *qp)
{
    return qp->srqn == 0 && qp->type != QPT_XRC_SEND && qp->type != QPT_XRC_RECV;
}

/* The QP that a window of type 2B must be bound to, for a request that this QP has received. 0: no such window is
 * allowed, because over XRC the QP that receives a packet is not the QP that bound the window. */
static inline uint32_t qp_window_qpn(const struct qp *qp)
{
    return qp->type == QPT_XRC_RECV ? 0 : qp->qpn;
}

/* The QP may have something to send, to retire or to flush: engine_tx will look at it. */
static inline void qp_schedule(struct qp *qp)
{
    sched_make_ready(&qp->sched);
}

/* Counters of the QP and of the engine. */
#define COUNT(qp, name) COUNT_N(qp, name, 1u)
#define COUNT_N(qp, name, n) ((qp)->counters->name += (n), (qp)->e->counters.name += (n))
#define COUNT_MAX(qp, name, n) (raise_to(&(qp)->counters->name, (n)), raise_to(&(qp)->e->counters.name, (n)))
static inline void raise_to(uint64_t *counter, uint64_t n)
{
    if (n > *counter)
        *counter = n;
}

/* Counts a request of this kind that has completed, if a completion counter counts such requests. */
static inline void qp_count_op(struct qp *qp, enum cntr_op op, bool ok, uint64_t bytes)
{
    if (__builtin_expect(qp->cntr_ops & 1u << op, 0))
        comp_cntr_add(qp->cntr[op], &qp->e->changed_cntrs, ok, bytes);
}

/* Cost of packets [from, to) of a request, for windows: their payload and PACKET_OVERHEAD for each. */
static inline uint64_t req_cost(const struct qp *qp, const struct send_wqe *w, uint32_t from, uint32_t to)
{
    uint64_t end = (uint64_t)to * qp->mtu;
    if (end > w->length)
        end = w->length;
    return end - (uint64_t)from * qp->mtu + (uint64_t)(to - from) * PACKET_OVERHEAD;
}

/* Cost of a full packet. */
static inline uint64_t req_packet_cost(const struct qp *qp)
{
    return qp->mtu + PACKET_OVERHEAD;
}

/* More bytes of the QP are in flight to its peer. Connected QPs only. */
static inline void qp_charge(struct qp *qp, uint64_t cost)
{
    qp->req->inflight += cost;
    peer_window_charge(qp->peer, cost);
}
/* Fewer bytes of the QP are in flight to its peer. */
static inline void qp_release(struct qp *qp, uint64_t cost)
{
    qp->req->inflight -= cost;
    if (qp->peer)
        peer_window_release(qp->peer, cost);
}

/* Do packets of the QP to its peer stay within the device, unseen? The peer is another QP of the device, at the same
 * address. */
static inline bool qp_hands_over(const struct qp *qp, const struct tx_batch *b)
{
    const struct av *av = &qp->attr.av;
    return b->hand_over && qp->type != QPT_UD &&
           memcmp(av->dgid, qp->e->cfg.gids[av->sgid_index], sizeof(av->dgid)) == 0;
}

/* As tx_append, for a packet of this QP to its own destination. */
static inline struct tx_pkt *qp_append(struct qp *qp, struct tx_batch *b, const struct pkt *p, uint32_t payload_len,
                                       uint8_t **payload)
{
    struct tx_pkt *t = qp_hands_over(qp, b) ? tx_append_plain(b, p, &qp->attr.av, qp->qpn, payload_len, payload)
                                            : tx_append(b, p, &qp->attr.av, qp->qpn, payload_len, payload);
    if (t) {
        COUNT(qp, sent_pkts);
        COUNT_N(qp, sent_bytes, payload_len);
    }
    return t;
}

/* As tx_append_run, for packets of this QP to its own destination. */
static inline struct pkt_run *qp_append_run(struct qp *qp, struct tx_batch *b, const struct pkt_run *r,
                                            uint8_t **payload)
{
    struct pkt_run *run = tx_append_run(b, r, &qp->attr.av, qp->qpn, payload);
    if (run) {
        COUNT_N(qp, sent_pkts, run->n);
        COUNT_N(qp, sent_bytes, run->payload_len);
    }
    return run;
}

#endif
