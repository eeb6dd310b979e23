// SPDX-License-Identifier: BSD-2-Clause
/* The engine's inside: what its modules share. Nobody outside daemon/core includes it.
 *
 *   engine.c      tables, ready list, dispatch of packets and time
 *   out.c         completions and events
 *   report.c      what went wrong, for the log
 *   linger.c      what remains of destroyed QPs
 *   key.c         memory keys            peer.c  windows per destination       hotel.c  timers
 *   flow.c        flow control of what nobody acknowledges
 *   ecn.c         congestion notification: marks, CNPs, rates
 *   mw.c          memory windows         layout.c  arithmetic of those over non-contiguous memory
 *   pieces.c      from keys and addresses to memory
 *   qp.c          life of a QP, posting  qp_state.c  transitions and attributes
 *   req_send.c    requester: work requests to packets
 *   req_window.c  requester: how much it may send
 *   req_ack.c     requester: ACKs, NAKs, responses, retirement
 *   req_timer.c   requester: timeout, tail probe, RNR wait
 *   resp.c        responder: checks and execution of requests
 *   resp_memext.c responder: ATOMIC WRITE and FLUSH
 *   srq.c         shared receive queues  xrc.c  XRC targets    queue.h  rings of copies of requests
 *   resp_send.c   responder: ACKs, NAKs, READ and atomic responses
 *   uc.c          unreliable connections: the responder
 *   ud.c          datagrams: the responder            mcast.c  multicast groups
 *   tm*.c         tag matching: the list (tm.h); tm_rx.c messages of its QPs, tm_rndv.c its READs and FINs */
#ifndef PUMICE_CORE_ENGINE_PRIV_H
#define PUMICE_CORE_ENGINE_PRIV_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/psn.h"
#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/base/wqe_queue.h"
#include "daemon/core/engine.h"
#include "daemon/core/memory/key.h"
#include "daemon/core/memory/mw.h"
#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/path/dcqcn.h"
#include "daemon/core/path/mcast.h"
#include "daemon/core/path/peer_window.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/time_wait.h"
#include "daemon/core/responder/srq.h"
#include "daemon/core/tm/tag_list.h"
#include "wire/syndrome.h"

/* --- a send request ---------------------------------------------------------------------------------------------------- */

enum own_request {
    OWN_NONE = 0,
    OWN_READ, /* the data of a rendezvous */
    OWN_FIN,
};
struct send_wqe {
    struct send_wr wr;
    uint32_t length; /* bytes of the message */
    uint32_t first_psn; /* set when the requester gets to it */
    uint32_t npkts; /* PSNs that it takes; likewise. Local operations take none */
    uint32_t chunk; /* of a READ: how many of them each of its requests is for; likewise */
    uint32_t pd; /* of its SGEs' keys */
    struct tm_entry *entry; /* OWN_READ: whose data it fetches */
    uint8_t own; /* enum own_request: not the program's, but the tag matching offload's */
    uint8_t local_error; /* enum wc_status that it will complete with once all before it are done; 0: none */
    uint8_t local_cause; /* … and the completion's vendor_err */
    union {
        struct sge sge[1]; /* wr.num_sge of them */
        uint8_t data[1]; /* wr.inline_len bytes */
    } u;
};

/* --- requester --------------------------------------------------------------------------------------------------------- */

enum retrans_cause {
    RETRANS_FAST, /* sequence NAK, or a gap in responses */
    RETRANS_PROBE,
    RETRANS_TIMEOUT,
    RETRANS_RNR,
};
struct rd_credit { /* an outstanding READ request or atomic */
    uint32_t first, end; /* PSNs of its responses, end exclusive */
};

/* Send queue indexes, in order: sq.head <= una <= cur <= fresh <= sq.tail.
 *   [head, una)   acknowledged, waiting for room in the completion queue
 *   una           holds the oldest unacknowledged PSN
 *   cur           holds the next packet to be sent (again)
 *   fresh         first one without PSNs
 * A local operation (bind, invalidate) is carried out when it gets its place in the PSNs, of which it takes none. From
 * then on una, cur and all that goes back steps over it; only if it failed they stop there. */
struct requester {
    struct queue sq;
    uint32_t una, cur, unsent;
    uint32_t una_psn; /* oldest unacknowledged */
    uint32_t next_psn; /* next to send; behind sent_psn while retransmitting */
    uint32_t sent_psn; /* next never sent */
    uint32_t unsent_psn; /* next not given to a request */
    uint32_t flush_end; /* requests before this index that are still in the queue are to be flushed */
    uint64_t inflight; /* cost of the packets [una_psn, next_psn) */
    uint64_t cwnd; /* bound of inflight */
    uint32_t recover_psn; /* the window is not reduced again before this is acknowledged */

    struct rd_credit *rd; /* ring of ENGINE_MAX_RD_ATOMIC */
    uint32_t rd_head, rd_count;

    uint8_t fail_status; /* enum wc_status with which request una will fail; 0: none */
    uint8_t fail_cause;
    uint8_t retries_left, rnr_left;
    uint8_t probes; /* tail probes since the last progress */
    bool probe_due; /* send the last packet again */
    uint8_t cause; /* enum retrans_cause of the retransmission under way */
    uint64_t rnr_until; /* 0: not waiting */
    uint64_t progress_at; /* last time that the oldest unacknowledged packet changed or was sent (again) */
    uint64_t last_tx;
    uint64_t rewound_at; /* when it last went back; 0: never */
    uint32_t rewind_psn; /* and where to */

    uint32_t rtt_psn; /* packet whose ACK is timed */
    uint64_t rtt_start; /* 0: none */
    uint64_t srtt; /* smoothed round trip, ns; 0: not known */
    uint64_t rtt_min; /* the shortest round trip, ns; 0: not known */

    /* Tag matching: requests of the offload's own are in the queue among the program's. */
    uint32_t own_queued; /* how many */
    uint32_t own_reads; /* READs among them: for each one a slot is kept, for its FIN */
    struct list_node rndv; /* matched entries whose rendezvous wait for a slot, by their job */

    uint64_t *atomic_result; /* ring of ENGINE_MAX_RD_ATOMIC: sources of writes that may be deferred */
    uint32_t atomic_count;
};

/* --- responder --------------------------------------------------------------------------------------------------------- */

struct resource { /* a READ, atomic, ATOMIC WRITE or FLUSH: its response, and what is needed to repeat it */
    uint32_t first_psn, npkts;
    uint64_t va; /* READ */
    uint32_t rkey;
    uint32_t pd; /* that its rkey is checked against */
    uint32_t length;
    uint64_t atomic_orig;
    uint32_t msn; /* as of its execution */
    uint32_t next_pkt; /* next response packet to send */
    uint32_t start_pkt; /* first packet of this round: it is the FIRST of the response */
    uint32_t end_pkt; /* one past the last to send in this round */
    uint8_t operation; /* enum op_operation of the request */
    bool pending; /* next_pkt … end_pkt are to be sent */
    bool again; /* … and have been before: the requester may count it as done already */
};
struct responder {
    struct queue rq; /* with an SRQ: the one request that was taken from it */
    uint32_t srqn; /* where requests are taken from: the SRQ's number; XRC: of the message under way or the last one */
    uint32_t pd; /* that rkeys are checked against; XRC: likewise */
    struct list_node held; /* in srq.holders while rq holds a request of it */
    struct tm_rx tm_rx; /* the message under way, if the SRQ matches tags */
    uint32_t epsn;
    uint32_t msn;
    uint8_t message; /* operation under way: 0, OP_IS_SEND or OP_IS_WRITE */
    bool nak_sent; /* a sequence or RNR NAK was sent for epsn, which has not come since */
    bool nak_quiet; /* the sender knows that it has to come back: nothing else is to be told */
    uint32_t nak_last; /* PSN of the last packet that was out of sequence */
    bool ack_pending;
    uint8_t nak; /* syndrome of a NAK to be sent; 0: none */
    uint32_t nak_psn;
    uint32_t acked_psn; /* all before it were acknowledged or answered by something sent */
    bool comm_est;
    uint32_t received; /* bytes of the message so far */
    uint64_t va; /* RDMA WRITE: where the next byte goes */
    uint32_t rkey;
    uint32_t remaining; /* bytes of the RDMA WRITE to come */
    uint64_t ack_deadline; /* 0: none */
    struct resource *res; /* ring of ENGINE_MAX_RD_ATOMIC, oldest overwritten first; 16 divides 2^32 */
    uint32_t res_tail; /* free-running index of the next one */
    uint32_t res_pending; /* how many are pending */
    uint32_t res_again; /* … of them, for a duplicate request */
};

/* What READs and atomics need, at the start of the memory of the queues: not touched before the first one. */
struct rd_atomic {
    struct resource res[ENGINE_MAX_RD_ATOMIC];
    struct rd_credit rd[ENGINE_MAX_RD_ATOMIC];
    uint64_t atomic_result[ENGINE_MAX_RD_ATOMIC];
};

struct qp {
    struct engine *e;
    struct list_node ready; /* in engine.ready while it may have something to send or to complete */
    struct list_node peer_wait; /* in peer.waiting */
    struct timer timer;
    struct list_node groups; /* UD: mcast_member.of_qp of the groups that it is in */
    struct peer_window
        *peer; /* connected QPs: their destination; UD: the one of the last request, if it still has this address */
    void *owner, *send_cq, *recv_cq;
    uint32_t qpn;
    uint32_t pd;
    uint32_t mtu; /* bytes */
    uint8_t type;
    uint8_t service; /* enum op_service */
    bool sq_sig_all;
    bool sq_drained_reported;
    bool last_wqe_reported;
    uint32_t srqn; /* the SRQ that it is attached to; 0: none */
    uint32_t xrcd; /* XRC target: its domain */
    uint32_t windows; /* key index of the first memory window of type 2B that is bound through it; 0: none */
    struct tag_list *tm; /* the SRQ's matching list; NULL: none */
    struct qp_caps caps;
    struct qp_attr attr; /* state included */
    struct requester req;
    struct responder resp;
    struct ecn ecn;
    struct engine_counters counters;
    struct report failure; /* the first cause of its error state; kind REPORT_NONE: none */
    bool failure_reported; /* … stands among the reports */
};

struct engine {
    struct engine_config cfg;
    const struct mem_ops *ops;
    void *ops_ctx;
    struct key_table keys;
    struct qp **qps; /* by qpn & qp_mask */
    uint32_t qp_mask, qp_count, next_qpn;
    struct srq **srqs; /* by number & srq_mask */
    uint32_t srq_mask, srq_count, next_srqn;
    struct peer_window_table peers;
    struct datagram_flow_table flows;
    struct timer_wheel *timers;
    struct time_wait_ring time_wait;
    struct mcast mcast;
    struct list_node ready;
    uint32_t ready_count;
    struct list_node orphans; /* matched entries whose QPs have gone, by their job: to be flushed */
    struct completion *done; /* ring */
    uint32_t done_mask, done_head, done_tail;
    struct event *events; /* ring */
    uint32_t event_mask, event_head, event_tail;
    struct engine_counters counters;
    struct report_ring reports;
};

/* Acknowledged, and sent again when lost: RC and XRC. */
static inline bool qp_is_reliable(const struct qp *qp)
{
    return qp->service == OP_SERVICE_RC || qp->service == OP_SERVICE_XRC;
}

/* Receive requests are posted to the QP itself. */
static inline bool qp_has_rq(const struct qp *qp)
{
    return qp->srqn == 0 && qp->type != QPT_XRC_SEND && qp->type != QPT_XRC_RECV;
}

#define COUNT(qp, name) COUNT_N(qp, name, 1u)
#define COUNT_N(qp, name, n) ((qp)->counters.name += (n), (qp)->e->counters.name += (n))
#define COUNT_MAX(qp, name, n) (raise_to(&(qp)->counters.name, (n)), raise_to(&(qp)->e->counters.name, (n)))
static inline void raise_to(uint64_t *counter, uint64_t n)
{
    if (n > *counter)
        *counter = n;
}

/* --- engine.c ---------------------------------------------------------------------------------------------------------- */

/* The QP may have something to send, to retire or to flush: engine_tx will look at it. */
void engine_ready(struct qp *qp);

/* Payload that a QP may send in its turn: all that the batch takes if nobody waits for his, because one long copy out of client
 * memory costs less than several short ones. more: the QP has something else to send in this turn. */
uint32_t engine_turn_bytes(const struct engine *e, bool more);
/* Registers the QP's next deadline. */
void engine_timer(struct qp *qp);

/* --- out.c ------------------------------------------------------------------------------------------------------------- */

/* Free slots of the completion queue. */
uint32_t completion_room(const struct engine *e);
/* A new completion with all that is the same for every one of the QP; room must have been checked. */
struct completion *completion_add(struct qp *qp, bool is_recv, uint8_t status, uint64_t now);
/* The same for an operation on an SRQ's matching list. */
struct completion *completion_add_srq(struct srq *srq, uint8_t status, uint64_t now);
void completion_forget(struct qp *qp);
void completion_forget_srq(const struct srq *srq);
/* Asynchronous events. Without room they are dropped, and counted. */
bool event_room(const struct engine *e);
void event_add(struct qp *qp, uint8_t type);
void event_add_srq(const struct srq *srq, uint8_t type);

/* --- report.c ---------------------------------------------------------------------------------------------------------- */

/* p: the packet that it answers; NULL: none in particular. A NAK that ends the connection is the QP's failure, too, to be
 * followed by report_error. */
void report_nak_sent(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p);
void report_nak_rcvd(struct qp *qp, const struct pkt *p);
void report_timeout(struct qp *qp);
/* from: the sender's GID. */
void report_drop(struct engine *e, enum drop_cause cause, const struct pkt *p, const uint8_t from[16]);
void report_drop_qp(struct qp *qp, enum drop_cause cause, const struct pkt *p);
/* The QP is about to go to ERR or SQE. Only the first call since the last report_forget counts. status: enum wc_status of
 * the completion that tells it, 0: none does. */
void report_error(struct qp *qp, enum error_cause cause, uint8_t status, uint8_t syndrome);
void report_forget(struct qp *qp); /* it starts anew */

/* --- qp.c, qp_state.c -------------------------------------------------------------------------------------------------- */

/* Moves the QP to ERR: nothing more is sent but a NAK or ACK that is pending; all requests will be flushed. */
void qp_fail(struct qp *qp);
/* UC, UD: moves the QP to SQE: send requests will be flushed, the responder goes on (10.3.1.6). */
void qp_fail_sends(struct qp *qp);
void qp_reset(struct qp *qp);
/* Retires acknowledged requests and flushes those of a failed QP as far as the completion queue has room. True if
 * something is left. */
bool qp_service(struct qp *qp, uint64_t now);

/* --- requester --------------------------------------------------------------------------------------------------------- */

enum tx_result {
    TX_DONE, /* nothing more to send until something happens */
    TX_MORE, /* wants another turn */
    TX_FULL, /* the batch has no room */
};
void req_init(struct qp *qp); /* on entering RTS or RESET: numbering starts at attr.sq_psn */
enum tx_result req_tx(struct qp *qp, struct tx_batch *b, uint64_t now);
void req_rx(struct qp *qp, const struct pkt *p, uint64_t now);
bool req_retire(struct qp *qp, uint64_t now); /* true: something is left to complete */
bool req_flush(struct qp *qp, uint64_t now); /* likewise */
/* Are there requests that wait to be flushed? In ERR and SQE all are. */
static inline bool req_flushing(const struct qp *qp)
{
    return (int32_t)(qp->req.flush_end - qp->req.sq.head) > 0;
}
void req_rewind(struct qp *qp, uint32_t psn); /* the next packet to send is psn, which was sent before */
void req_loss(struct qp *qp, enum retrans_cause cause, uint32_t psn, uint64_t now);
void req_fail(struct qp *qp, uint8_t status, uint8_t cause);
uint64_t req_deadline(const struct qp *qp);
uint64_t req_timeout_ns(const struct qp *qp); /* of attr.timeout, which is not 0 */
bool req_window_full(const struct qp *qp); /* something could be sent but for its own window */
static inline uint32_t min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
/* How many of the packets [off, off + want) of a request the windows let through now. */
uint32_t req_window_allows(struct qp *qp, const struct send_wqe *w, uint32_t off, uint32_t want);
uint32_t req_read_chunk(const struct qp *qp);
uint32_t req_chunk_left(const struct send_wqe *w, uint32_t off); /* packets that a READ asks for */
struct peer_window *req_peer(struct qp *qp, const struct send_wqe *w); /* where its packets go */
void req_expire(struct qp *qp, uint64_t now);
/* Is every request that has begun complete? */
bool req_is_drained(const struct qp *qp);
void req_drained(struct qp *qp); /* tells so once, in SQD */
/* Local operations that were carried out don't stay the oldest unacknowledged request. */
void req_pass_local(struct qp *qp);
/* Cost of packets [from, to) of a request, for windows. */
uint64_t req_cost(const struct qp *qp, const struct send_wqe *w, uint32_t from, uint32_t to);
static inline bool req_is_read(const struct send_wqe *w)
{
    return w->wr.opcode == WR_RDMA_READ;
}
static inline bool req_is_atomic(const struct send_wqe *w)
{
    return w->wr.opcode == WR_ATOMIC_CMP_AND_SWP || w->wr.opcode == WR_ATOMIC_FETCH_AND_ADD;
}
/* Done only when its own response has come, and takes one of max_rd_atomic credits till then. */
static inline bool req_is_answered(const struct send_wqe *w)
{
    return req_is_read(w) || req_is_atomic(w) || w->wr.opcode == WR_ATOMIC_WRITE || w->wr.opcode == WR_FLUSH;
}
/* Carried out here, when its turn comes; nothing is sent. */
static inline bool req_is_local(const struct send_wqe *w)
{
    return w->wr.opcode == WR_BIND_MW || w->wr.opcode == WR_LOCAL_INV;
}
/* Which packet of the request psn is; psn is not before its first one. (psn_diff won't do: 2^31 bytes take 2^23
 * packets of 256.) */
static inline uint32_t req_offset(const struct send_wqe *w, uint32_t psn)
{
    return (psn - w->first_psn) & PSN_MASK;
}
/* Has some packet of the request ever been sent, or was the local operation tried? It has its place in the PSNs, but may
 * still wait for a fence, a credit or a window. */
static inline bool req_has_begun(const struct qp *qp, const struct send_wqe *w)
{
    return w->npkts == 0 || w->first_psn != qp->req.sent_psn;
}
static inline struct send_wqe *req_wqe(const struct qp *qp, uint32_t index)
{
    return queue_at(&qp->req.sq, index);
}

/* --- responder --------------------------------------------------------------------------------------------------------- */

enum rx_verdict { /* of the checks and the execution of a request */
                  V_OK,
                  V_DROP, /* as if the packet had been lost */
                  V_RNR, /* no receive request */
                  V_INVALID, /* invalid request */
                  V_ACCESS, /* the key does not allow it */
                  V_OPERATION, /* the responder's own fault */
                  V_LENGTH, /* longer than the receive request: invalid for the peer, a length error for the consumer */
                  V_PROTECTION, /* the receive request's memory: an operational error for the peer, a protection error for
                                the consumer */
};

void resp_init(struct qp *qp); /* on entering RTR */
void resp_rx(struct qp *qp, const struct pkt *p, uint64_t now);
enum rx_verdict resp_execute(struct qp *qp, const struct pkt *p, uint64_t now);
/* The first packet has come: tells so if the QP is still in RTR. */
void resp_established(struct qp *qp);
/* Bytes that a receive request has room for, at most ENGINE_MAX_MSG. */
uint32_t resp_capacity(const struct recv_wqe *w);
/* Where bytes [off, off + len) of a receive request are; it holds them. */
void resp_recv_iter(const struct qp *qp, struct sge_iter *s, const struct recv_wqe *w, uint32_t off, uint32_t len);
/* Completes the receive request in use; there must be room for it. */
struct completion *resp_complete(struct qp *qp, uint8_t status, uint64_t now);
enum tx_result resp_tx(struct qp *qp, struct tx_batch *b, uint64_t now);
bool resp_has_work(const struct qp *qp);
void resp_stop(struct qp *qp); /* on entering ERR */
void resp_drop(struct qp *qp); /* responses to READs and atomics that wait are not sent any more */
bool resp_urgent(const struct qp *qp); /* more than a plain ACK is to be sent */
bool resp_flush(struct qp *qp,
                uint64_t now); /* true: something is left: requests to flush, or to tell that it was the last */
/* The receive request for the message under way, or the one that begins: the oldest of the QP or of its SRQ, whose owner
 * is asked for more if there is none. It stays the message's own until it is completed. NULL: none. */
struct recv_wqe *resp_recv(struct qp *qp);
/* Refuses what the peer sent last, for good: a NAK goes out and the QP to ERR. p: the packet, for the report; NULL: it is
 * gone. */
void resp_fatal(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p);
/* Requests of this operation are answered by a response of their own, for which a resource is kept. */
static inline bool resp_is_answered(uint8_t operation)
{
    return operation == OP_READ_REQUEST || operation == OP_CMP_SWAP || operation == OP_FETCH_ADD ||
           operation == OP_ATOMIC_WRITE || operation == OP_FLUSH;
}
/* A place for such a request: the oldest one's. NULL: that one is being answered once more. */
struct resource *resp_new_resource(struct qp *qp);
/* Packets [start, end) of its response are to be sent; again: and have been before. */
void resp_answer_later(struct qp *qp, struct resource *res, uint32_t start, uint32_t end, bool again);
/* ATOMIC WRITE and FLUSH: may the peer ask for it at all? */
enum rx_verdict memext_granted(const struct qp *qp, const struct pkt *p);
enum rx_verdict memext_execute(struct qp *qp, const struct pkt *p);
/* What an rkey of the peer opens; pd: the protection domain that the request has to do with. */
void resp_remote_iter(const struct qp *qp, struct sge_iter *s, uint32_t pd, uint32_t key, uint64_t addr, uint32_t len,
                      uint32_t access);
/* The memory of a receive request failed while its message was under way; false if none is. */
bool resp_recv_fault(struct qp *qp, uint64_t now);

/* Carries out a packet of a SEND in a receive request. */
enum rx_verdict resp_send(struct qp *qp, const struct pkt *p, uint64_t now);

/* --- tag matching: tm_rx.c ----------------------------------------------------------------------------------------------- */

/* Carries out a packet of a SEND that came to a QP whose SRQ matches tags. */
enum rx_verdict tm_receive(struct qp *qp, const struct pkt *p, uint64_t now);
/* A receive request of such an SRQ was completed successfully by c. */
void tm_delivered(struct qp *qp, struct completion *c, uint64_t now);
/* The message under way fails: if it has a tagged entry, completes that; false: it has none. There must be room. */
bool tm_fail_message(struct qp *qp, uint8_t status, uint64_t now);
/* The QP is in ERR: what it holds of the matching list is given back. True: completions wait for room. */
bool tm_flush(struct qp *qp, uint64_t now);
/* The QP goes without a further word, or starts anew: its matched entries become orphans. */
void tm_detach(struct qp *qp);
/* Completes orphans as far as there is room. */
void tm_flush_orphans(struct engine *e, uint64_t now);
void tm_forget_orphans(const struct srq *srq);
/* The final completion of a matched entry that will get no more data. */
void tm_complete_entry(struct qp *qp, struct tm_rx *rx, uint8_t status, uint64_t now);
/* A completion of a matched entry; flags: WC_TM_MATCH, WC_TM_DATA_VALID or both. Room must have been checked. */
struct completion *tm_complete(struct qp *qp, const struct tm_rx *rx, uint8_t status, uint8_t flags, uint64_t now);
/* A deferred write failed that c reports: should it become an error? */
bool tm_fault(struct qp *qp, const struct completion *c, uint64_t now);

/* --- tag matching: tm_rndv.c --------------------------------------------------------------------------------------------- */

#define TM_SEND_SLOTS 64u /* requests of the offload's own in a QP's send queue */
#define TM_FIN_LEN (TMH_LEN + RVH_LEN)
/* A rendezvous was matched: moves what the message holds to the requester. True if it needs no READ and its FIN has
 * been queued: then rx holds nothing any more, and the last completion is the caller's. Else the last completion comes
 * later. */
bool rndv_begin(struct qp *qp, struct tm_rx *rx, bool solicited, uint64_t now);
/* Lets those start that wait for slots. A rendezvous without data, which has waited, is complete with its FIN. False:
 * there is no room for its completion. */
bool rndv_start(struct qp *qp, uint64_t now);
/* One of the offload's requests was acknowledged, or answered; false: there is no room for its completion. */
bool rndv_retire(struct qp *qp, const struct send_wqe *w, uint64_t now);
/* It is flushed; status: enum wc_status, the reason if it is the one that failed. There must be room. */
void rndv_flush_request(struct qp *qp, const struct send_wqe *w, uint8_t status, uint64_t now);

/* --- UC ------------------------------------------------------------------------------------------------------------------ */

void uc_rx(struct qp *qp, const struct pkt *p, uint64_t now);
/* A deferred write for this QP failed; told: a completion says so. Also UD. */
void uc_mem_fault(struct qp *qp, bool told);

/* --- UD ------------------------------------------------------------------------------------------------------------------ */

void ud_rx(struct qp *qp, const struct pkt *p, const struct rx_meta *meta, uint64_t now);

/* Of the one partition, whether as a full or as a limited member (10.9.3). */
static inline bool pkey_matches(uint16_t pkey)
{
    return (pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff);
}

/* Common to both halves: reserves room for a packet of headers + payload + pad + ICRC in the batch, NULL if there is
 * none. Writes headers and pad; *payload is where the payload goes. */
struct tx_pkt *qp_append(struct qp *qp, struct tx_batch *b, const struct pkt *p, uint32_t payload_len,
                         uint8_t **payload);
/* The same for who is no QP; av must stay valid as struct tx_pkt says. */
struct tx_pkt *tx_append(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                         uint32_t payload_len, uint8_t **payload);
/* Back to what the batch held before: n packets in so many bytes. */
void tx_take_back(struct tx_batch *b, uint32_t n, size_t used);

#endif
