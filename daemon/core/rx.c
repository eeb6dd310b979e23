// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/rx.h"

#include <string.h>

#include "daemon/core/complete.h"
#include "daemon/core/control/exit_check.h"
#include "daemon/core/control/qp_timer.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/time_wait.h"
#include "daemon/core/requester/ack.h"
#include "daemon/core/responder/receive.h"
#include "daemon/core/responder/uc.h"
#include "daemon/core/responder/ud.h"
#include "daemon/core/urgent.h"
#include "wire/pumice/sack.h"

/* --- admission -------------------------------------------------------------------------------- */

static bool is_own_address(const struct engine *e, const uint8_t gid[16])
{
    for (unsigned i = 0; i < e->cfg.num_gids; i++)
        if (memcmp(e->cfg.gids[i], gid, 16) == 0)
            return true;
    return false;
}

static bool is_cnp(uint8_t opcode)
{
    return (opcode & OP_SERVICE_MASK) == OP_SERVICE_CNP;
}

/* Is the opcode one of the QP's service, and for the half that the QP has? */
static bool has_opcode(const struct qp *qp, uint8_t opcode)
{
    bool response = op_table[opcode].properties & OP_IS_RESPONSE;
    if (is_cnp(opcode))
        return qp->type != QPT_UD;
    return (opcode & OP_SERVICE_MASK) == qp->service && qp->type != (response ? QPT_XRC_RECV : QPT_XRC_SEND);
}

/* May packets of this QP of the device go to the QP? All QPs of a device have one address, so it does not tell. */
static bool is_peer(const struct qp *qp, uint32_t src_qpn)
{
    return qp->type == QPT_UD || src_qpn == qp->attr.dest_qpn;
}

/* May the QP take the packet at all (IBA 9.6.1)? DROP_CAUSES: it may. */
static enum drop_cause refusal(const struct qp *qp, const struct pkt *p, const struct rx_meta *meta)
{
    if (!has_opcode(qp, p->opcode))
        return DROP_OPCODE;
    if (!qp_may_receive(qp))
        return DROP_STATE;
    if (!pkey_matches(p->pkey))
        return DROP_PKEY;
    if (qp->type != QPT_UD && memcmp(meta->src_gid, qp->attr.av.dgid, 16) != 0)
        return DROP_SOURCE;
    if (qp->type != QPT_UD && memcmp(meta->dst_gid, qp->e->cfg.gids[qp->attr.av.sgid_index], 16) != 0)
        return DROP_DESTINATION;
    return meta->src_qpn && !is_peer(qp, meta->src_qpn) ? DROP_SOURCE_QP : DROP_CAUSES;
}

static void count_refusal(struct qp *qp, enum drop_cause cause)
{
    switch (cause) {
    case DROP_OPCODE:
        COUNT(qp, rx_bad_opcode);
        break;
    case DROP_STATE:
        COUNT(qp, rx_bad_state);
        break;
    case DROP_PKEY:
        COUNT(qp, rx_bad_pkey);
        break;
    case DROP_SOURCE:
        COUNT(qp, rx_bad_source);
        break;
    case DROP_DESTINATION:
        COUNT(qp, rx_bad_destination);
        break;
    default:
        COUNT(qp, rx_bad_source_qp);
        break;
    }
}

/* Counts the packet, and reports it if the QP may not take it. */
static bool admissible(struct qp *qp, const struct pkt *p, const struct rx_meta *meta)
{
    enum drop_cause cause = refusal(qp, p, meta);
    qp_wake(qp);
    COUNT(qp, rcvd_pkts);
    if (cause == DROP_CAUSES)
        return true;
    if (cause == DROP_STATE && resp_rx_closed(qp, p, meta)) {
        qp->e->counters.rx_time_wait++;
        return false;
    }
    count_refusal(qp, cause);
    report_drop(qp->e, cause, p, meta);
    return false;
}

/* The packet is for no QP here. */
static void drop_unknown(struct engine *e, const struct pkt *p, const struct rx_meta *meta)
{
    e->counters.rx_unknown_qp++;
    report_drop(e, DROP_UNKNOWN_QP, p, meta);
}

/* Packets for QP 1. */
static void to_gsi(struct engine *e, const struct pkt *p, const struct rx_meta *meta)
{
    enum drop_cause cause;
    if (gsi_rx(&e->gsi, p, meta, &cause))
        return;
    e->counters.rx_unknown_qp += cause == DROP_UNKNOWN_QP;
    e->counters.rx_bad_pkey += cause == DROP_PKEY;
    e->counters.rx_bad_qkey += cause == DROP_QKEY;
    report_drop(e, cause, p, meta);
}

/* Each member gets its own copy and makes its own checks (IBA 10.5.2.1). The sender gets no copy. */
static void to_group(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct mcast_member *m = mcast_next(&e->mcast, meta->dst_gid, NULL);
    bool own = is_own_address(e, meta->src_gid);
    if (!m || (p->opcode & OP_SERVICE_MASK) != OP_SERVICE_UD) {
        drop_unknown(e, p, meta);
        return;
    }
    for (; m; m = mcast_next(&e->mcast, meta->dst_gid, m)) {
        if ((own && m->qp->qpn == p->deth.src_qpn) || !admissible(m->qp, p, meta))
            continue;
        ud_rx(m->qp, p, meta, now);
        qp_complete(m->qp, now);
        EXIT_CHECK_QP(m->qp);
    }
}

static void marked(struct qp *qp, uint64_t now)
{
    COUNT(qp, np_ecn_marked_roce_packets);
    if (!dcqcn_marked(qp->dcqcn, &qp->e->cfg, now))
        return;
    urgent_add(qp);
    qp_schedule(qp);
}

/* The CNP for a QP's last packets comes this long after them at most, maybe after their ACK. It is more than a round
 * trip in a network that marks packets. */
#define CNP_LATE_NS 10000000u

/* May packets of the QP have met congestion? A CNP has no PSN, so anybody who can forge the peer's address can send
 * one. It must not slow a QP that has nothing under way. */
static bool awaits_cnp(const struct qp *qp, uint64_t now)
{
    const struct requester *r = qp->req;
    uint64_t last = r->progress_at > qp->resp->data_at ? r->progress_at : qp->resp->data_at;
    return r->una_psn != r->sent_psn || (last && now - last <= CNP_LATE_NS);
}

static void cnp_received(struct qp *qp, uint64_t now)
{
    if (!awaits_cnp(qp, now)) {
        COUNT(qp, rx_idle_cnp);
        return;
    }
    COUNT(qp, rp_cnp_handled);
    dcqcn_cnp(qp->dcqcn, &qp->e->cfg, qp->peer ? qp->peer->congestion.rtt_min : 0, now);
}

void engine_withhold_recv(struct engine *e, bool on)
{
    e->recv_withheld = on;
}

/* Packets for PROBE_QPN that are no probes. */
static void to_requester(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    struct sack s;
    struct qp *qp = e->cfg.selective && datagram_flow_is_own(p) && sack_decode(p->payload, p->payload_len, &s)
                        ? qp_table_find(&e->qps, s.requester)
                        : NULL;
    if (!qp || !qp->awake || !req_rx_sack(qp, &s, meta, now)) {
        drop_unknown(e, p, meta);
        return;
    }
    qp_complete(qp, now);
    qp_set_timer(qp);
    EXIT_CHECK_QP(qp);
}

/* Hands a packet to the half of its QP that it is for. */
static void to_half(struct qp *qp, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    if (is_cnp(p->opcode))
        cnp_received(qp, now);
    else if (qp->type == QPT_UD)
        ud_rx(qp, p, meta, now);
    else if (qp->type == QPT_UC)
        uc_rx(qp, p, now);
    else if (op_table[p->opcode].properties & OP_IS_RESPONSE)
        req_rx(qp, p, now);
    else
        resp_rx(qp, p, now);
}

/* To be called after a QP has taken in packets. */
static void taken(struct qp *qp, uint64_t now)
{
    if (qp->resp->ack_due)
        urgent_add(qp);
    qp_complete(qp, now);
    qp_set_timer(qp);
    EXIT_CHECK_QP(qp);
}

void engine_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now)
{
    if (p->dest_qpn == QPN_MULTICAST) {
        to_group(e, p, meta, now);
        return;
    }
    if (p->dest_qpn == PROBE_QPN) {
        if (!datagram_flow_rx(&e->flows, p, meta, now))
            to_requester(e, p, meta, now);
        return;
    }
    if (p->dest_qpn == MAD_QPN) {
        to_gsi(e, p, meta);
        return;
    }
    struct qp *qp = qp_table_find(&e->qps, p->dest_qpn);
    if (!qp) {
        if (time_wait_rx(&e->time_wait, p, meta))
            e->counters.rx_time_wait++;
        else
            drop_unknown(e, p, meta);
        return;
    }
    if (!admissible(qp, p, meta))
        return;
    sched_charge_received(&qp->sched, p->payload_len + PACKET_COST);
    e->rx_like_pumice = meta->like_pumice;
    if (meta->ce && qp->type != QPT_UD && !is_cnp(p->opcode))
        marked(qp, now);
    to_half(qp, p, meta, now);
    taken(qp, now);
}

/* --- runs --------------------------------------------------------------------------------------- */

static void one_by_one(struct engine *e, const struct pkt_run *r, const struct rx_meta *meta, uint64_t now)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct pkt p;
        pkt_run_packet(r, i, &p);
        engine_rx(e, &p, meta, now);
    }
}

/* Takes in the run as a whole. False: it is to be taken in packet by packet. */
static bool take_run(struct qp *qp, const struct pkt_run *r, const struct rx_meta *meta, uint64_t now)
{
    if (!qp_is_reliable(qp) || meta->ce || refusal(qp, &r->first, meta) != DROP_CAUSES)
        return false;
    qp_wake(qp);
    qp->e->rx_like_pumice = meta->like_pumice;
    if (op_table[r->first.opcode].properties & OP_IS_RESPONSE)
        return req_rx_run(qp, r, now);
    return resp_rx_run(qp, r, now);
}

void engine_rx_run(struct engine *e, const struct pkt_run *r, const struct rx_meta *meta, uint64_t now)
{
    struct qp *qp = qp_table_find(&e->qps, r->first.dest_qpn);
    if (!qp || !take_run(qp, r, meta, now)) {
        one_by_one(e, r, meta, now);
        return;
    }
    COUNT_N(qp, rcvd_pkts, r->n);
    sched_charge_received(&qp->sched, r->payload_len + r->n * PACKET_COST);
    taken(qp, now);
}
