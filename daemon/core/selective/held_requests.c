// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/selective/held_requests.h"

#include "daemon/core/path/peer_sacks.h"
#include "daemon/core/qp/qp.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

/* Number of PSNs that a request packet takes; 0: its length is not legal. */
static uint32_t psns_of(const struct qp *qp, const struct pkt *p)
{
    if ((p->opcode & OP_OPERATION_MASK) != OP_READ_REQUEST)
        return 1;
    return p->reth.length > ENGINE_MAX_MSG ? 0 : psn_count(p->reth.length, qp->mtu);
}

/* A packet has come whose PSNs end before `end`. */
static void note_newest(struct responder *r, bool first, uint32_t end)
{
    if (first || psn_diff(end, r->held_newest) > 0)
        r->held_newest = end;
}

/* There is no room for a request. The next SACK says that it is missing. */
static void drop(struct qp *qp, uint32_t end)
{
    struct responder *r = qp->resp;
    COUNT(qp, reorder_no_room);
    if (!r->dropped || psn_diff(end, r->dropped_end) > 0)
        r->dropped_end = end;
    r->dropped = true;
}

static void count_twice(struct qp *qp)
{
    COUNT(qp, duplicate_request);
    qp->resp->twice++;
}

bool resp_hold(struct qp *qp, const struct pkt *p, uint64_t now)
{
    struct responder *r = qp->resp;
    /* After an RNR NAK, and when the expected packet found no room, the peer goes back to it and sends all again. */
    if ((r->nak_sent && r->nak_quiet) ||
        !peer_takes_sacks(&qp->e->flows, qp->peer, &qp->attr.av, qp->e->rx_like_pumice, now))
        return false;
    /* A packet that a third party has forged must not wait until its PSN comes. So no more is kept than the peer's window
     * can hold, as far as it is known: that of another Pumice device is as large as the own. */
    uint32_t psns = psns_of(qp, p);
    if (psns == 0 || p->payload_len > qp->mtu || (uint32_t)psn_diff(p->psn, r->epsn) > qp->e->cfg.window_pkts)
        return false;
    bool first = qp->resp->held.count == 0;
    enum reorder_result result = reorder_hold(&qp->e->reorder, &r->held, p, psns, r->epsn);
    if (result == REORDER_NO_ROOM && r->held.count == 0)
        return false;
    note_newest(r, first, psn_add(p->psn, psns));
    COUNT(qp, out_of_seq_request);
    COUNT_MAX(qp, max_rcvd_window, (uint32_t)psn_diff(p->psn, r->epsn));
    if (result == REORDER_NO_ROOM)
        drop(qp, psn_add(p->psn, psns));
    else if (result == REORDER_TWICE)
        count_twice(qp);
    else
        COUNT(qp, reordered_requests);
    /* Each gap is reported once it shows, and the state whenever the peer asks. It asks with the last packet of a burst, and
     * with a tail probe. */
    if (result == REORDER_GAP || result == REORDER_TWICE || p->ackreq)
        r->sack_pending = true;
    return true;
}

/* Lists the gaps before the packets that are held. If packets were dropped, those behind them are a gap, too. False: there
 * is no gap. */
static bool make_sack(const struct qp *qp, struct sack *s)
{
    const struct reorder_queue *q = &qp->resp->held;
    *s = (struct sack){
        .requester = qp->attr.dest_qpn, .responder = qp->qpn, .expected = qp->resp->epsn, .twice = qp->resp->twice};
    s->end = s->expected;
    for (const struct list_node *l = q->packets.next; l != &q->packets; l = l->next) {
        const struct held_packet *h = list_entry(l, struct held_packet, link);
        if (psn_diff(h->p.psn, s->end) > 0) {
            if (s->gaps == SACK_GAPS_MOST)
                break;
            s->gap[s->gaps++] = (struct sack_gap){.start = s->end, .end = h->p.psn};
        }
        s->end = h->end;
    }
    if (s->gaps && s->gaps < SACK_GAPS_MOST && qp->resp->dropped && psn_diff(qp->resp->dropped_end, s->end) > 0) {
        s->gap[s->gaps++] = (struct sack_gap){.start = s->end, .end = qp->resp->dropped_end};
        s->end = qp->resp->dropped_end;
    }
    s->newest = psn_diff(qp->resp->held_newest, s->end) > 0 ? qp->resp->held_newest : s->end;
    return s->gaps > 0;
}

bool resp_send_sack(struct qp *qp, struct tx_batch *b)
{
    struct sack s;
    struct pkt p = {
        .opcode = OP_SERVICE_UD | OP_SEND_ONLY,
        .migreq = true,
        .pkey = PKEY_DEFAULT,
        .dest_qpn = PROBE_QPN,
        .psn = qp->resp->epsn,
        .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
    };
    uint8_t *payload;
    if (!make_sack(qp, &s)) {
        qp->resp->sack_pending = qp->resp->dropped = false;
        return true;
    }
    p.pad = (uint8_t)pkt_pad(sack_len(&s));
    if (!tx_append(b, &p, &qp->attr.av, PROBE_QPN, sack_len(&s), &payload))
        return false;
    sack_encode(&s, payload);
    COUNT(qp, sacks_sent);
    qp->resp->sack_pending = qp->resp->dropped = false;
    return true;
}
