// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/requester/window.h"

#include <string.h>

#include "daemon/core/base/min.h"

/* Bytes that one READ request asks for. The maximum is large, because each request costs both ends some work. Also, its
 * first and last response each leave in a GSO run of their own. It is a little above half a megabyte, because UCX asks
 * in aligned parts of that size. A request asks for fewer bytes after a loss, when the window is small, or when other
 * QPs fill the peer's window. So it does not exceed the window by far. A QP with nothing else in flight never waits for
 * these windows. */
#define READ_CHUNK_MIN (128u << 10)
#define READ_CHUNK_MAX (640u << 10)
/* A short READ is one request as long as the path has lost nothing, and a READ of a few packets always is. */
#define READ_WHOLE (16u << 10)
#define READ_WHOLE_PKTS 4u
/* While the congestion window is small, a request asks for the window's part of one credit, but the window is not divided
 * into more than READS_MOST parts. The responses to one request leave in one burst, and a path with a small buffer
 * loses a part of a burst. */
#define READS_MOST 8u
/* How long the window of a destination may be full without an answer, before a round trip is known. */
#define BLOCKED_UNKNOWN_NS 20000000u

/* The part of the peer's window that other QPs leave. */
static uint64_t left_by_others(const struct qp *qp)
{
    uint64_t others = qp->peer->inflight - qp->req->inflight, window = qp->e->cfg.peer_window_bytes;
    return others < window ? window - others : 0;
}

static uint64_t part_of_window(const struct qp *qp)
{
    uint32_t credits = min32(qp->attr.max_rd_atomic, READS_MOST);
    return qp->peer->congestion.cwnd / (credits ? credits : 1);
}

/* Number of packets that each request packet of a READ that begins now asks for. */
uint32_t req_read_chunk(const struct qp *qp, const struct send_wqe *w)
{
    const struct engine_config *cfg = &qp->e->cfg;
    const struct congestion *c = &qp->peer->congestion;
    uint64_t least = c->cwnd < CWND_CAPACITY_MOST ? part_of_window(qp) : READ_CHUNK_MIN;
    bool whole = w->npkts <= READ_WHOLE_PKTS || (c->loss_at == 0 && w->length <= READ_WHOLE);
    if (whole && least < w->npkts * req_packet_cost(qp))
        least = w->npkts * req_packet_cost(qp);
    uint64_t bytes = congestion_is_free(c, cfg) ? READ_CHUNK_MAX : least;
    if (bytes > left_by_others(qp))
        bytes = left_by_others(qp);
    if (bytes < least)
        bytes = least;
    if (bytes > cfg->peer_window_bytes / 2)
        bytes = cfg->peer_window_bytes / 2;
    uint32_t chunk = min32((uint32_t)(bytes / req_packet_cost(qp)), cfg->window_pkts / 2);
    return chunk ? chunk : 1;
}

bool req_choose_chunk(const struct qp *qp, struct send_wqe *w, uint32_t off)
{
    const struct requester *r = qp->req;
    if (r->next_psn != r->sent_psn || (off - w->chunk_base) % w->chunk)
        return true;
    if (r->una_psn == r->next_psn) {
        w->chunk = req_read_chunk(qp, w);
        w->chunk_base = off;
        return true;
    }
    uint64_t bytes = w->chunk * req_packet_cost(qp);
    return bytes >= READ_CHUNK_MIN / 2 || part_of_window(qp) < 2 * bytes;
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

/* The QP is woken at this time, or earlier. */
static void wait_until(struct qp *qp, uint64_t when)
{
    struct timer *t = &qp->peer->congestion.timer;
    wait_for_peer(qp, qp->peer);
    if (when < t->when)
        timer_wheel_set(qp->e->timers, t, when);
}

/* The window is full, or the pace lets nothing through before this time (NEVER: it does). Has nothing come back for so
 * long that the packets in flight must be lost, or their QPs stuck? Then a QP with nothing in flight may send one packet.
 * Returns the number of packets. */
static uint32_t pass_if_blocked(struct qp *qp, uint64_t pace_at, uint64_t now)
{
    struct congestion *c = &qp->peer->congestion;
    uint64_t since = c->progress_at > c->passed_at ? c->progress_at : c->passed_at;
    uint64_t answer = congestion_rto(c), wait = answer ? answer : BLOCKED_UNKNOWN_NS;
    bool idle = qp->req->inflight == 0;
    if (idle && now - since >= wait) {
        c->passed_at = now;
        return 1;
    }
    wait_until(qp, idle ? min64(pace_at, since + wait) : pace_at);
    return 0;
}

/* Does a QP of another user, which had less of the processor, wait for room? The QPs of the user with the lowest cost have
 * their turns first, so such a QP is the first in the list. */
static bool another_user_waits(const struct qp *qp, const struct peer_window *p)
{
    const struct sched_share *own = qp->sched.share, *first;
    if (list_empty(&p->waiting))
        return false;
    first = list_entry(p->waiting.next, struct sched_entity, waiting)->share;
    return first != own && first->cost < own->cost;
}

/* How many of n packets the destination's window has room for while it is at its largest. If only a few of many fit, the
 * QP waits: when the peer acknowledges a few packets, it makes room for only a few again. A QP with nothing in flight
 * may send a burst without room: so no QP waits forever behind others that are stuck. But not before a waiting QP of
 * another user: otherwise a user with many QPs would always fill the window beyond its end. */
static uint32_t fits_peer(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t n, uint64_t now)
{
    struct peer_window *p = qp->peer;
    uint64_t room = peer_window_room(p, qp->e->cfg.peer_window_bytes);
    if (req_cost(qp, w, off, off + n) <= room)
        return n;
    uint32_t fit = (uint32_t)(room / req_packet_cost(qp)); /* fewer than n */
    uint32_t burst = qp->e->cfg.burst_bytes / qp->mtu;
    bool idle = qp->req->inflight == 0;
    if (idle && !another_user_waits(qp, p))
        return fit > burst ? fit : min32(burst, n);
    if (fit >= min32(n, burst / 4))
        return fit;
    return pass_if_blocked(qp, NEVER, now);
}

/* How many of n packets the congestion window and the pace let through while the window is smaller. The pace is for
 * packets that others follow on the path. With none in flight, a packet leaves at once: otherwise one READ that is longer
 * than the window would hold up all QPs for many round trips. */
static uint32_t fits_path(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t n, uint64_t now)
{
    struct peer_window *p = qp->peer;
    struct congestion *c = &p->congestion;
    uint64_t pace = congestion_pace(c, &qp->e->cfg, now), room = peer_window_room(p, c->cwnd);
    if (pace == 0 && p->inflight)
        return pass_if_blocked(qp, congestion_pace_at(c), now);
    if (pace == 0)
        return 1;
    if (pace < room && !wqe_is_read(w)) /* a request of a READ leaves as a whole */
        room = pace > req_packet_cost(qp) ? pace : min64(room, req_packet_cost(qp));
    if (req_cost(qp, w, off, off + n) <= room)
        return n;
    uint32_t fit = (uint32_t)(room / req_packet_cost(qp)); /* fewer than n */
    if (fit)
        return fit;
    if (p->inflight == 0)
        return 1;
    return pass_if_blocked(qp, NEVER, now);
}

/* A request of a READ: all or nothing, because the bounds of a chunk are fixed. A QP with nothing in flight may send it
 * although it is too long for the windows. */
static uint32_t read_allowed(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want, uint64_t now)
{
    const struct requester *r = qp->req;
    const struct engine_config *cfg = &qp->e->cfg;
    bool idle = r->inflight == 0;
    uint32_t most = cfg->window_pkts, out = (uint32_t)psn_diff(r->next_psn, r->una_psn);
    if (r->behind) /* all responses may have to be kept until the missing one comes */
        most = min32(most, reorder_room(&qp->e->reorder, &r->held));
    if (!idle && out + want > most)
        return 0;
    uint32_t n = congestion_is_free(&qp->peer->congestion, cfg) ? fits_peer(qp, w, off, want, now)
                                                                : fits_path(qp, w, off, want, now);
    if (n == want || (idle && n))
        return want;
    if (n)
        wait_for_peer(qp, qp->peer);
    return 0;
}

/* How many of the packets [off, off + want) the windows let through now. */
uint32_t req_window_allows(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want, uint64_t now)
{
    const struct requester *r = qp->req;
    const struct engine_config *cfg = &qp->e->cfg;
    uint32_t out = (uint32_t)psn_diff(r->next_psn, r->una_psn), most = req_is_unanswered(r) ? 1 : cfg->window_pkts, n;
    if (!qp_is_reliable(qp))
        return datagram_flow_allows(qp, w, off, want);
    if (out >= most)
        n = 0;
    else if (wqe_is_read(w))
        n = read_allowed(qp, w, off, want, now);
    else if (congestion_is_free(&qp->peer->congestion, cfg))
        n = fits_peer(qp, w, off, min32(want, most - out), now);
    else
        n = fits_path(qp, w, off, min32(want, most - out), now);
    if (n == 0 && req_window_full(qp))
        COUNT(qp, window_full);
    return n;
}

uint32_t req_window_allows_again(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want, uint64_t now)
{
    bool idle = qp->req->inflight == 0;
    uint32_t n = congestion_is_free(&qp->peer->congestion, &qp->e->cfg) ? fits_peer(qp, w, off, want, now)
                                                                        : fits_path(qp, w, off, want, now);
    if (!wqe_is_read(w) || n == want || n == 0)
        return n;
    if (idle)
        return want;
    wait_for_peer(qp, qp->peer);
    return 0;
}

bool req_window_full(const struct qp *qp)
{
    const struct requester *r = qp->req;
    const struct engine_config *cfg = &qp->e->cfg;
    uint32_t out = (uint32_t)psn_diff(r->next_psn, r->una_psn);
    if (req_is_unanswered(r) && r->next_psn != r->sent_psn) /* the lost packets fill the window, too */
        return r->unsent != r->sq.tail && (uint32_t)psn_diff(r->sent_psn, r->una_psn) >= cfg->window_pkts;
    if (!qp_is_reliable(qp) || r->cur == r->sq.tail || r->inflight == 0)
        return false;
    const struct send_wqe *w = req_wqe(qp->req, r->cur);
    uint32_t off = r->cur == r->unsent ? 0 : wqe_offset(w, r->next_psn), n = 1;
    if (wqe_is_local(w) || (r->cur == r->unsent && wqe_is_read(w)))
        return false;
    if (wqe_is_read(w))
        n = req_chunk_left(w, off);
    uint64_t cost = r->cur == r->unsent ? min32(w->length, qp->mtu) + PACKET_OVERHEAD : req_cost(qp, w, off, off + n);
    return out + n > cfg->window_pkts || r->inflight + cost > qp->peer->congestion.cwnd;
}
