// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/window.h"

#include <string.h>

#include "daemon/core/base/min.h"
#include "daemon/core/requester/congestion.h"

/* Bytes that one READ request asks for. The maximum is large, because each request costs both ends some work. Also, its
 * first and last response each leave in a GSO run of their own. It is a little above half a megabyte, because UCX asks
 * in aligned parts of that size. A request asks for fewer bytes after a loss, when the window is small, or when other
 * QPs fill the peer's window. So it does not exceed the window by far. A QP with nothing else in flight never waits for
 * these windows. */
#define READ_CHUNK_MIN (128u << 10)
#define READ_CHUNK_MAX (640u << 10)

/* The part of the peer's window that other QPs leave. */
static uint64_t left_by_others(const struct qp *qp)
{
    uint64_t others = qp->peer->inflight - qp->req.inflight, window = qp->e->cfg.peer_window_bytes;
    return others < window ? window - others : 0;
}

/* Number of packets that each request packet of a READ that begins now asks for. */
uint32_t req_read_chunk(const struct qp *qp)
{
    const struct engine_config *cfg = &qp->e->cfg;
    uint64_t bytes = cwnd_is_full_size(&qp->req, cfg) ? READ_CHUNK_MAX : READ_CHUNK_MIN;
    if (bytes > left_by_others(qp))
        bytes = left_by_others(qp);
    if (bytes < READ_CHUNK_MIN)
        bytes = READ_CHUNK_MIN;
    if (bytes > cfg->peer_window_bytes / 2)
        bytes = cfg->peer_window_bytes / 2;
    uint32_t chunk = min32((uint32_t)bytes / (qp->mtu + PACKET_OVERHEAD), cfg->window_pkts / 2);
    return chunk ? chunk : 1;
}

/* The window of the last datagram is remembered, because consecutive datagrams mostly have the same destination. */
struct peer_window *req_find_peer(struct qp *qp, const struct send_wqe *w)
{
    if (qp->type == QPT_UD && (!qp->peer || memcmp(qp->peer->gid, w->wr.ud.av.dgid, 16) != 0))
        qp->peer = peer_window_find(&qp->e->peers, w->wr.ud.av.dgid);
    return qp->peer;
}

/* The QP is woken when its peer's window has more room. */
static void wait_for_peer(struct qp *qp, struct peer_window *p)
{
    if (sched_wait(&qp->sched, &p->waiting))
        COUNT(qp, peer_window_full);
}

/* READs: may responses of so many bytes be requested from the QP's peer? If not, the QP is woken when that changes. A
 * QP with nothing in flight may always send its request: so no QP waits forever behind others that are stuck. */
static bool peer_admits(struct qp *qp, uint64_t cost)
{
    if (qp->req.inflight == 0 || qp->peer->inflight + cost <= qp->e->cfg.peer_window_bytes)
        return true;
    wait_for_peer(qp, qp->peer);
    return false;
}

/* UC and UD, whose packets are never acknowledged: the destination's window is the only one. */
static uint32_t datagram_flow_allows(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want)
{
    struct peer_window *p = req_find_peer(qp, w);
    uint64_t room = peer_window_room(p, qp->e->cfg.peer_window_bytes);
    if (room >= req_cost(qp, w, off, off + want))
        return want;
    uint32_t n = (uint32_t)(room / (qp->mtu + PACKET_OVERHEAD)); /* fewer than want */
    if (n == 0 && p->inflight == 0)
        return 1;
    if (n == 0)
        wait_for_peer(qp, p);
    return n;
}

/* How many of n packets the destination's window has room for. If only a few of many fit, the QP waits: when the peer
 * acknowledges a few packets, it makes room for only a few again. A QP with nothing in flight may always send a burst:
 * so no QP waits forever behind others that are stuck. */
static uint32_t fits_peer(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t n)
{
    uint64_t room = peer_window_room(qp->peer, qp->e->cfg.peer_window_bytes);
    if (req_cost(qp, w, off, off + n) <= room)
        return n;
    uint32_t fit = (uint32_t)(room / (qp->mtu + PACKET_OVERHEAD)); /* fewer than n */
    uint32_t burst = qp->e->cfg.burst_bytes / qp->mtu;
    if (qp->req.inflight == 0)
        fit = fit > burst ? fit : min32(burst, n);
    else if (fit < min32(n, burst / 4))
        fit = 0;
    if (fit == 0)
        wait_for_peer(qp, qp->peer);
    return fit;
}

/* How many of the packets [off, off + want) the windows let through now. */
uint32_t req_window_allows(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want)
{
    struct requester *r = &qp->req;
    const struct engine_config *cfg = &qp->e->cfg;
    uint32_t out = (uint32_t)psn_diff(r->next_psn, r->una_psn);
    bool idle = r->inflight == 0;
    if (!qp_is_reliable(qp))
        return datagram_flow_allows(qp, w, off, want);
    if (wqe_is_read(w)) { /* all or nothing: a chunk's bounds are fixed */
        uint64_t cost = req_cost(qp, w, off, off + want);
        if (!idle && (out + want > cfg->window_pkts || r->inflight + cost > r->cwnd)) {
            COUNT(qp, window_full);
            return 0;
        }
        return peer_admits(qp, cost) ? want : 0;
    }
    uint32_t n = out < cfg->window_pkts ? min32(want, cfg->window_pkts - out) : 0;
    uint64_t cost = n ? req_cost(qp, w, off, off + n) : 0;
    if (n && r->inflight + cost > r->cwnd) {
        uint64_t room = r->cwnd > r->inflight ? r->cwnd - r->inflight : 0;
        uint64_t fit = room / (qp->mtu + PACKET_OVERHEAD);
        n = fit < n ? (uint32_t)fit : n;
    }
    if (n == 0 && idle)
        n = 1;
    if (n == 0) {
        COUNT(qp, window_full);
        return 0;
    }
    return fits_peer(qp, w, off, n);
}

bool req_window_full(const struct qp *qp)
{
    const struct requester *r = &qp->req;
    const struct engine_config *cfg = &qp->e->cfg;
    uint32_t out = (uint32_t)psn_diff(r->next_psn, r->una_psn);
    if (!qp_is_reliable(qp) || r->cur == r->sq.tail || r->inflight == 0)
        return false;
    const struct send_wqe *w = req_wqe(&qp->req, r->cur);
    uint32_t off = r->cur == r->unsent ? 0 : wqe_offset(w, r->next_psn), n = 1;
    if (wqe_is_local(w) || (r->cur == r->unsent && wqe_is_read(w)))
        return false;
    if (wqe_is_read(w))
        n = req_chunk_left(w, off);
    uint64_t cost = r->cur == r->unsent ? min32(w->length, qp->mtu) + PACKET_OVERHEAD : req_cost(qp, w, off, off + n);
    return out + n > cfg->window_pkts || r->inflight + cost > r->cwnd;
}
