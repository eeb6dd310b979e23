// SPDX-License-Identifier: BSD-2-Clause
/* The state of the requester, which is the half of a QP that sends requests, and the entries of its send queue. The
 * code is in daemon/core/requester. */
#ifndef PUMICE_DAEMON_CORE_QP_REQUESTER_STATE_H
#define PUMICE_DAEMON_CORE_QP_REQUESTER_STATE_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/psn.h"
#include "daemon/core/base/reorder.h"
#include "daemon/core/base/types.h"
#include "daemon/core/base/wqe_queue.h"
#include "wire/pumice/sack.h"

struct tm_entry;

/* --- an entry of the send queue --------------------------------------------------------------- */

/* Requests of the tag-matching offload. */
enum offload_request {
    OFFLOAD_NONE = 0, /* the request is the user's */
    OFFLOAD_READ, /* fetches the data of a rendezvous */
    OFFLOAD_FIN, /* tells the sender that the data have arrived */
};
/* An entry of a send queue: a work request of the QP's user, or one of the tag-matching offload, and its place in the
 * PSNs. */
struct send_wqe {
    struct send_wr wr;
    uint32_t length; /* bytes of the message */
    uint32_t first_psn; /* first_psn, npkts, chunk and chunk_base are set when the request gets its place in the PSNs */
    uint32_t npkts; /* number of its PSNs. A local operation takes none */
    uint32_t chunk; /* READ: number of PSNs that each of its request packets asks for … */
    uint32_t chunk_base; /* … from this packet on; there are no outstanding packets before it with another chunk */
    uint32_t pd; /* of its SGEs' keys */
    struct tm_entry *entry; /* OFFLOAD_READ: the entry whose data it fetches */
    uint8_t offload; /* enum offload_request */
    uint8_t local_error; /* enum wc_status that it will complete with once all requests before it are done; 0: none */
    uint8_t local_cause; /* vendor_err of that completion */
    union {
        struct sge sge[1]; /* [wr.num_sge] */
        uint8_t data[1]; /* [wr.inline_len] bytes */
    } u;
};

static inline bool wqe_is_read(const struct send_wqe *w)
{
    return w->wr.opcode == WR_RDMA_READ;
}
static inline bool wqe_is_atomic(const struct send_wqe *w)
{
    return w->wr.opcode == WR_ATOMIC_CMP_AND_SWP || w->wr.opcode == WR_ATOMIC_FETCH_AND_ADD;
}
/* Is the request done only when its own response has come? Until then it takes one of max_rd_atomic credits. */
static inline bool wqe_is_answered(const struct send_wqe *w)
{
    return wqe_is_read(w) || wqe_is_atomic(w) || w->wr.opcode == WR_ATOMIC_WRITE || w->wr.opcode == WR_FLUSH;
}
/* Is the request carried out on this side, without a packet? */
static inline bool wqe_is_local(const struct send_wqe *w)
{
    return w->wr.opcode == WR_BIND_MW || w->wr.opcode == WR_LOCAL_INV;
}
/* Does the message take a receive request of the peer? */
static inline bool wqe_takes_recv(const struct send_wqe *w)
{
    return w->wr.opcode == WR_SEND || w->wr.opcode == WR_SEND_WITH_IMM || w->wr.opcode == WR_SEND_WITH_INV ||
           w->wr.opcode == WR_RDMA_WRITE_WITH_IMM;
}
/* Do the packets of the request carry payload? */
static inline bool wqe_has_payload(const struct send_wqe *w)
{
    return !wqe_is_answered(w) || w->wr.opcode == WR_ATOMIC_WRITE;
}
/* Index in the request of its packet psn, which is not before the first packet of the request. (psn_diff will not do:
 * 2^31 bytes take 2^23 packets of 256 bytes.) */
static inline uint32_t wqe_offset(const struct send_wqe *w, uint32_t psn)
{
    return (psn - w->first_psn) & PSN_MASK;
}
/* The PSN after its last packet. */
static inline uint32_t wqe_end_psn(const struct send_wqe *w)
{
    return psn_add(w->first_psn, w->npkts);
}

/* --- the requester ---------------------------------------------------------------------------- */

enum retrans_cause {
    RETRANS_FAST, /* sequence NAK, or a gap in responses */
    RETRANS_PROBE,
    RETRANS_TIMEOUT,
    RETRANS_RNR,
    RETRANS_SELECTIVE, /* SACK */
    RETRANS_RESPONSES, /* a gap in responses, and those behind it are kept */
};
struct rd_credit { /* an outstanding READ request, atomic, ATOMIC WRITE or FLUSH */
    uint32_t first, end; /* PSNs of its responses, end exclusive */
};

/* End-to-end credits: the peer's receive requests (IBA 9.7.7.2). The messages that take one are counted from 0 on. */
enum credit_state {
    CREDITS_UNLIMITED, /* the peer gives no credits, or they are not used */
    CREDITS_UNKNOWN, /* no ACK has come yet: one message at a time */
    CREDITS_LIMITED, /* the peer has receive requests for the messages before `limit` */
};
struct req_credits {
    uint8_t state; /* enum credit_state */
    bool may_ask; /* the wait for a credit is over: one message may be sent without it */
    bool asked; /* a message was sent without a credit, and is not answered */
    bool untold; /* the peer had receive requests and did not tell: the QP soon asks */
    uint32_t begun; /* messages whose first packet was sent */
    uint32_t done; /* messages that were acknowledged */
    uint32_t limit;
    uint32_t plain_psn; /* the last PSN that was acknowledged, apart from requests with a response of their own */
    uint64_t wait_until; /* end of the wait for a credit, ns; 0: the QP does not wait, or something is in flight */
};

/* A gap that the responder has reported by a SACK, or one in responses: packets [start, end) are missing. */
struct missing_range {
    uint32_t start, end; /* PSNs */
    uint32_t next; /* the next packet of it to be sent again, as long as `due` */
    uint32_t mark; /* sent_psn when it was sent again: if a later packet has arrived, it was lost again */
    uint32_t order; /* of its first packet, see scoreboard.order */
    bool suspected; /* it looks lost … */
    uint64_t since; /* … since this time, ns. Perhaps it is only late. */
    bool due; /* it counts as lost, and is to be sent again */
    bool repeated; /* it was sent again: mark and order are valid */
};
/* The requester notes here which packets the responder has received behind the first missing one, and before these which
 * responses have come. The packets in [range[0].start, end) that are in no range have arrived. count 0: nothing is known.
 * end is not beyond next_psn. */
struct scoreboard {
    uint32_t count;
    uint32_t end; /* PSN */
    /* PSN. Ranges before it lack responses of requests that have arrived, those behind it lack requests. */
    uint32_t executed;
    uint64_t arrived; /* cost of the packets that have arrived … */
    uint64_t lost; /* … and of those that are due: both are not part of requester.inflight */
    uint32_t order; /* counts the PSNs that were sent again, in the order in which they were sent */
    uint32_t order_arrived; /* of those that are known to have arrived, the newest one has the order before this */
    uint64_t probed_at; /* fired_at of the last tail probe whose answer was used */
    bool due; /* some range is */
    uint64_t wake_at; /* when the next range counts as lost if it does not come, ns; 0: none is suspected */
    uint32_t twice; /* as the last SACK said: packets that have come twice. The reason may be one of these: */
    uint32_t resent; /* number of packets that were sent again because of a SACK … */
    uint32_t repeated; /* … and for other reasons, as long as … */
    uint32_t repeated_end; /* … not all packets before this PSN are acknowledged */
    struct missing_range *range; /* [SACK_GAPS_MOST] */
};

/* Indexes of the send queue, in order: sq.head <= una <= cur <= unsent <= sq.tail.
 *   [head, una)   acknowledged; their completions wait for room
 *   una           holds the oldest unacknowledged PSN
 *   cur           holds the next packet to be sent (again)
 *   unsent        the first request without PSNs
 * A local operation (bind, invalidate) is carried out when it gets its place in the PSNs. It takes no PSN. From then on
 * una, cur and a retransmission step over it. If it failed, they stop there. */
struct requester {
    struct queue sq;
    uint32_t una, cur, unsent;
    uint32_t una_psn; /* oldest unacknowledged */
    uint32_t next_psn; /* next to send; before sent_psn during a retransmission */
    uint32_t sent_psn; /* the first PSN that was never sent */
    uint32_t unsent_psn; /* the first PSN that no request has */
    uint32_t flush_end; /* requests before this index that are still in the queue are to be flushed */
    bool sacked; /* a SACK has come: the responder keeps what comes behind a gap */
    bool behind; /* responses before `executed` are missing */
    uint32_t executed; /* PSN; if `behind`: the responder has carried out all requests before it */
    struct reorder_queue held; /* responses that came before a missing one, and ACKs */
    uint64_t held_cost; /* of those responses that the scoreboard was not told of yet */
    uint32_t asked; /* number of responses that were asked for again because of a gap. They are not before … */
    uint32_t asked_start; /* … this PSN, and count as long as … */
    uint32_t asked_end; /* … not all packets before this PSN are acknowledged */
    uint64_t inflight; /* cost of the packets [una_psn, next_psn), without board.arrived and board.lost */
    struct scoreboard board; /* going back forgets it; the next SACK brings it back */

    struct rd_credit *rd; /* ring of ENGINE_MAX_RD_ATOMIC */
    uint32_t rd_head, rd_count;

    uint8_t fail_status; /* enum wc_status with which request una will fail; 0: none */
    uint8_t fail_cause; /* vendor_err of its completion */
    uint8_t retries_left, rnr_left;
    uint8_t probes; /* tail probes since the last progress */
    uint8_t backoff; /* the next probe waits 2^backoff times as long. Stays until a new round trip is known. */
    bool probe_due; /* send the last packet again */
    /* While no round trip was known: how often an answer came after the QP had gone back, and the rest of what was in
     * flight was taken for under way. */
    uint8_t trusted;
    uint8_t cause; /* enum retrans_cause of the retransmission under way */
    struct req_credits credits;
    uint64_t rnr_until; /* end of the RNR wait, ns; 0: not waiting */
    uint64_t progress_at; /* last time that the oldest unacknowledged packet changed or was sent (again) */
    uint64_t timer_at; /* start of the present wait for a probe: the last progress, first packet in flight, or probe */
    uint64_t fired_at; /* time of the last probe or timeout */
    uint64_t rewound_at; /* time of the last retransmission; 0: never */
    uint32_t rewind_psn; /* first PSN of the last retransmission */

    uint32_t rtt_psn; /* packet whose ACK is timed */
    uint64_t rtt_start; /* 0: none */

    /* Tag matching: the offload's requests are in the queue among the user's. */
    uint32_t offload_queued; /* number of such requests */
    uint32_t offload_reads; /* READs among them: for each one a slot is kept for its FIN */
    struct list_node rndv; /* matched entries whose rendezvous wait for a slot: tm_entry.job */

    uint64_t *atomic_result; /* ring of ENGINE_MAX_RD_ATOMIC: sources of writes that may be deferred */
    uint32_t atomic_count; /* free-running index of its next slot */
};

/* To be called when the QP counts nothing as in flight any more. */
static inline void scoreboard_clear(struct scoreboard *b)
{
    b->count = 0;
    b->arrived = b->lost = 0;
    b->due = false;
    b->wake_at = 0;
}

static inline struct send_wqe *req_wqe(const struct requester *r, uint32_t index)
{
    return queue_at(&r->sq, index);
}
/* Has the QP gone back because no answer came, and is there still none? Then it sends one packet and waits. (A loss that
 * a NAK, a SACK or a response reports at the same moment is an answer.) */
static inline bool req_is_unanswered(const struct requester *r)
{
    return r->probes && r->rewound_at == r->fired_at && r->cause != RETRANS_FAST && r->cause != RETRANS_SELECTIVE &&
           r->cause != RETRANS_RESPONSES;
}
/* Do requests wait to be flushed? In ERR and SQE all requests do. */
static inline bool req_is_flushing(const struct requester *r)
{
    return (int32_t)(r->flush_end - r->sq.head) > 0;
}
/* Has some packet of the request ever been sent, or was the local operation tried? Such a request has its place in the
 * PSNs. A request with a place may still wait for a fence, a credit or a window. */
static inline bool req_has_begun(const struct requester *r, const struct send_wqe *w)
{
    return w->npkts == 0 || w->first_psn != r->sent_psn;
}
/* Is every request that has begun complete? */
static inline bool req_is_drained(const struct requester *r)
{
    return r->sq.head == r->una && (r->una == r->unsent || !req_has_begun(r, req_wqe(r, r->una)));
}

#endif
