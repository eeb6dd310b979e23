// SPDX-License-Identifier: BSD-2-Clause
/* The state of the responder, which is the half of a QP that carries out the peer's requests. The code is in
 * daemon/core/responder. */
#ifndef PUMICE_DAEMON_CORE_QP_RESPONDER_STATE_H
#define PUMICE_DAEMON_CORE_QP_RESPONDER_STATE_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/reorder.h"
#include "daemon/core/base/wqe_queue.h"
#include "daemon/core/qp/requester_state.h"
#include "daemon/core/tm/types.h"

/* Bytes of a READ that are copied into its resource. They stay the answer to its duplicates, as for an atomic. */
#define READ_SMALL 64u

#define REPEATS_MOST 7u
struct resource { /* a READ, atomic, ATOMIC WRITE or FLUSH: its response, and the state to repeat it */
    uint32_t first_psn, npkts;
    uint64_t va; /* READ */
    uint32_t rkey;
    uint32_t pd; /* that its rkey is checked against */
    uint32_t length;
    union {
        uint64_t atomic_orig;
        uint8_t data[READ_SMALL]; /* READ of at most READ_SMALL bytes */
        uint8_t *copy; /* longer READ, if `copied`: bytes in engine.copies, from packet copy_pkt to the end */
    };
    uint32_t copy_pkt;
    uint32_t msn; /* as of its execution */
    uint32_t next_pkt; /* next response packet to send */
    uint32_t start_pkt; /* first packet of this round: it is the FIRST of the response */
    uint32_t end_pkt; /* one past the last to send in this round */
    struct {
        uint32_t start, end;
    } repeat[REPEATS_MOST]; /* parts that are to be sent once more after this round */
    uint8_t repeats; /* number of them; only while pending */
    uint8_t operation; /* enum op_operation of the request */
    bool pending; /* next_pkt … end_pkt are to be sent */
    bool counted; /* READ: all its packets were sent once, and it counts as done */
    bool again; /* the packets were sent before: the requester may count the request as done already */
    bool copied; /* only while pending */
    bool kept; /* READ of at most READ_SMALL bytes: they are in `data` */
};
struct responder {
    struct queue rq; /* with an SRQ: the one request that was taken from it */
    uint32_t srqn; /* the SRQ that requests are taken from. XRC: that of the message under way, or of the last one */
    uint32_t pd; /* that rkeys are checked against. XRC: that of the message under way, or of the last one */
    struct tm_rx tm_rx; /* the message under way, if the SRQ matches tags */
    uint32_t epsn;
    uint64_t data_at; /* time when READ responses with data were last sent, ns; 0: never */
    uint32_t longest_read; /* packets of the longest READ response so far */
    uint32_t msn;
    uint8_t message; /* operation under way: 0, OP_IS_SEND or OP_IS_WRITE */
    bool nak_sent; /* a sequence or RNR NAK was sent for epsn, which has not come since */
    bool nak_quiet; /* the sender knows that it has to go back: the responder sends no other NAK */
    struct reorder_queue held; /* requests behind epsn, if the peer understands SACKs */
    uint32_t held_newest; /* while something is held: no packet has come from this PSN on */
    bool sack_pending; /* a SACK is to be sent, unless nothing is missing any more */
    bool dropped; /* since the last SACK, requests were dropped because there was no room for them … */
    uint32_t dropped_end; /* … all of them before this PSN */
    uint32_t twice; /* number of requests that came twice */
    uint32_t nak_last; /* PSN of the last packet that was out of sequence */
    bool ack_pending;
    bool ack_of_receive; /* the ACK that is due is for a message that took a receive request */
    /* A plain ACK names the last packet that was executed and has no response of its own. An ACK that names a READ
     * or an atomic would tell some requesters that its response has come (IBA C9-105). */
    uint32_t plain_psn, plain_msn;
    uint8_t nak; /* syndrome of a NAK to be sent; 0: none */
    uint32_t nak_psn;
    uint32_t acked_psn; /* packets before this PSN were acknowledged or answered by a packet that is in a batch */
    bool comm_est; /* EVENT_COMM_EST was given */
    bool closed; /* its program moved the QP to ERR: the QP still acknowledges duplicates (time_wait.h) */
    uint32_t received; /* bytes of the message so far */
    uint64_t va; /* RDMA WRITE: address of the next byte */
    uint32_t rkey;
    uint32_t remaining; /* bytes of the RDMA WRITE to come */
    uint64_t ack_deadline; /* 0: none */
    uint64_t ack_due; /* since when an ACK or NAK is due, ns; 0: none is */
    bool told_none; /* the last packet with credits said that there is no receive request */
    /* How often the ACK that told of receive requests after that will be repeated. Then ack_deadline is the time of the
     * next repetition. */
    uint8_t credit_repeats;
    /* Ring of res_mask + 1, oldest overwritten first. It is as long as max_dest_rd_atomic asks for, because entries that
     * are never used take no memory. */
    struct resource *res;
    uint32_t res_mask; /* size - 1; the size is a power of two */
    uint32_t res_tail; /* free-running index of the next one */
    uint32_t res_first; /* none before this index is pending */
    uint32_t res_pending; /* number of pending ones */
    uint32_t res_again; /* number of pending ones that answer a duplicate request */
    /* Number of pending READs whose data are still to be read for the first time. Requests that change memory, or that
     * the user sees, must not overtake them. */
    uint32_t res_unread;
    bool stalled; /* such a request came and was dropped, because there was no room for a copy */
};

/* The rings of READs and atomics, at the end of the memory for traffic. They are not touched before the first READ or
 * atomic. Those that may stay unused for the most part come last. */
struct rd_atomic {
    struct rd_credit rd[ENGINE_MAX_RD_ATOMIC];
    uint64_t atomic_result[ENGINE_MAX_RD_ATOMIC];
    struct missing_range missing[SACK_GAPS_MOST];
    struct resource res[ENGINE_MAX_RD_ATOMIC];
};

/* Is a response, a NAK, a SACK or an ACK to be sent? */
static inline bool resp_has_work(const struct responder *r)
{
    return r->res_pending || r->nak || r->sack_pending || r->ack_pending;
}
/* Is more than a plain ACK to be sent? */
static inline bool resp_is_urgent(const struct responder *r)
{
    return r->res_pending || r->nak || r->sack_pending;
}
/* An ACK or NAK is due now, unless one was due before. */
static inline void resp_ack_is_due(struct responder *r, uint64_t now)
{
    if (r->ack_due == 0 && (r->nak || r->ack_pending))
        r->ack_due = now;
}
static inline struct resource *resp_resource(const struct responder *r, uint32_t index)
{
    return &r->res[index & r->res_mask];
}
/* Is it a READ whose data are still to be read for the first time? */
static inline bool resource_is_unread(const struct resource *res)
{
    return res->pending && !res->again && !res->copied && !res->kept && res->length > 0 &&
           res->operation == OP_READ_REQUEST;
}

#endif
