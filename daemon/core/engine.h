// SPDX-License-Identifier: BSD-2-Clause
/* The protocol engine of one device: what a NIC does in hardware, without any I/O, clock, thread, allocation or randomness.
 *
 * Its owner (the daemon's device loop, or the simulator) drives it:
 *
 *     for each received batch:  engine_rx(packet) …            packets in
 *     work requests:            qp_post_send, qp_post_recv     copies in
 *     timers:                   engine_expire when now >= engine_deadline
 *     then, until all are empty:
 *         carry out deferred memory writes
 *         engine_pop_completion, engine_pop_event              what the users are to see
 *         engine_tx                                            packets out
 *
 * Nothing is called back but struct mem_ops. Packets out are made by engine_tx alone, completions by any call; when the
 * completion queue has no room left, work stops (nothing is lost) until the owner has taken some and calls engine_tx again.
 *
 * All functions of one engine must be called by one thread. Time is CLOCK_MONOTONIC-like nanoseconds and never runs backwards. */
#ifndef PUMICE_CORE_ENGINE_H
#define PUMICE_CORE_ENGINE_H

#include "daemon/core/base/mem_ops.h"
#include "daemon/core/base/types.h"
#include "daemon/core/qp/error_report.h"
#include "wire/pkt.h"

struct engine; /* opaque */
struct qp; /* opaque */
struct srq; /* opaque */
struct tag_list; /* opaque, see tm.h */
struct tm_op;
struct tm_op_result;

/* --- life ----------------------------------------------------------------------------------------------------------- */

struct engine_config {
    uint32_t max_qp; /* QPs that can exist at once; at most 1 << 20 */
    uint32_t max_mr; /* memory keys that can exist at once, regions and windows together; at most 1 << 22 */
    uint32_t max_srq; /* SRQs that can exist at once; at most 1 << 20 */
    uint32_t max_mcast; /* multicast groups times QPs in each, at most 1 << 20 */
    uint32_t max_peers; /* distinct destination addresses; more share one window */
    uint32_t completion_slots; /* of the outgoing completion queue; a power of two, at least 64 */
    uint32_t
        event_slots; /* of the event queue; a power of two. What finds no room is dropped, where not told otherwise */
    uint32_t window_pkts; /* packets that a QP may have unacknowledged, at most 1 << 22 (row D1) */
    uint64_t peer_window_bytes; /* bytes in flight to one destination: its socket's receive buffer */
    bool ecn; /* packets with ECN marks are answered with CNPs, and CNPs lower a QP's rate (row E28). The owner sends
               * what RC, UC and XRC QPs send as ECT(0): the low bits of the IP header's traffic class are 2 */
    uint64_t cnp_interval_ns; /* least time between two CNPs of one QP */
    uint64_t line_rate; /* bytes per second that a QP may send at without a limit: where rates start and end */
    uint64_t flow_wait_ns; /* how long the answer to a probe of datagrams' flow is waited for at first */
    uint64_t
        ack_delay_ns; /* longest time that a received packet without AckReq stays unacknowledged; 0: off (row D3) */
    uint64_t min_timeout_ns; /* lower clamp of the QP's timeout (row D6) */
    uint64_t crowd_timeout_ns; /* shorter timeouts are stretched to this, at most four times (9.7.6.1.3); 0: none is */
    uint64_t probe_min_ns; /* earliest tail probe after the last transmission, however short the round trips are */
    uint32_t burst_bytes; /* payload that one QP sends in its turn, per engine_tx pass, while others wait for theirs */
    uint8_t active_mtu; /* enum ibv_mtu: the largest path_mtu that modify accepts */
    uint32_t
        first_qpn; /* QP numbers are given out from here to 0xfffffe, then from 17 upwards; 17 ... 0xfffffe (E30) */
    uint8_t gids[8][16]; /* own addresses, by sgid_index */
    uint8_t num_gids;
};

/* Sensible values for everything but gids. */
void engine_config_defaults(struct engine_config *cfg);

/* Bytes of zeroed, 64-byte aligned memory that engine_init wants; mostly touched only when used. */
size_t engine_size(const struct engine_config *cfg);
/* mem stays the caller's and is freed by it after the last call. Returns NULL if cfg breaks a bound above. */
struct engine *engine_init(void *mem, const struct engine_config *cfg, const struct mem_ops *ops, void *ops_ctx);

const struct engine_counters *engine_counters(const struct engine *e);

/* --- keys ----------------------------------------------------------------------------------------------------------- */

struct mr_init {
    uint32_t pd; /* the owner's number of the protection domain; not 0 */
    uint32_t space; /* address space of va */
    uint64_t va; /* where the memory is */
    uint64_t
        iova; /* address of its first byte in work requests and on the wire; == va unless reg_mr_iova or zero-based */
    uint64_t length; /* bytes; 0 is legal */
    uint32_t access; /* enum access_flags */
};

/* Registers memory; *key receives lkey and rkey (they are the same number). -EINVAL: access flags that contradict
 * each other (REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE) or iova (ZERO_BASED, and it is not 0), a range that
 * wraps, or FLUSH_PERSISTENT, which the engine can't give. -ENOMEM: max_mr reached. */
int mr_register(struct engine *e, const struct mr_init *init, uint32_t *key);
/* Changes an existing registration in place, all or nothing; same errors, the keys stay as they are. -ENOENT: no
 * such key. -EBUSY: a memory window is bound to it, and it would get another place, length or domain, or lose
 * LOCAL_WRITE, MW_BIND or FLUSH_GLOBAL. */
int mr_reregister(struct engine *e, uint32_t key, const struct mr_init *init);
/* -ENOENT: no such key. -EBUSY: a memory window is bound to it. Accesses of packets that come later fail. */
int mr_deregister(struct engine *e, uint32_t key);

/* --- memory windows ------------------------------------------------------------------------------------------------- */

enum mw_type { /* enum ibv_mw_type */
               MW_TYPE_1 = 1,
               MW_TYPE_2 = 2,
};
/* Windows (IBA 10.6.7) share the key table with regions; they are bound by WR_BIND_MW and invalidated by WR_LOCAL_INV
 * and WR_SEND_WITH_INV (row E18). They give remote access only, they are no lkeys
 * (but see mw_alloc_layout).
 *
 * Which rkey a window has. The tag of a type 2 window is its user's: mw_bind.mw_key brings it. A type 1 window gets its
 * next rkey when the bind is posted, long before it runs, because ibv_bind_mw returns it at once: so its owner (the
 * client library) adds 1 to the tag of the rkey that it believes the window to have, and passes the result as
 * mw_bind.new_key. The engine takes over this key if the bind succeeds, and looks at the index alone to know the window,
 * never at the tag of mw_key. So both agree again with the next bind that succeeds, whatever became of those before:
 * one that failed, or was flushed, has or has not changed the key, and its user may or may not have put the old rkey
 * back into struct ibv_mw, as the manual asks. Until then the owner's idea of the rkey may open nothing, which is what
 * a failed bind means. A request that is flushed may have been carried out.
 *
 * A bind is refused (WC_MW_BIND_ERR, QP to ERR) unless: the window, the region and the QP have the same pd; the region
 * has ACCESS_MW_BIND, LOCAL_WRITE if the window is to have REMOTE_WRITE or REMOTE_ATOMIC, FLUSH_GLOBAL if it is to have
 * that; the range lies within it;
 * type 1: not ZERO_BASED, new_key of the same index; type 2: the window is free, the length is not 0, the QP is not
 * XRC_SEND. Type 2 windows can be used and invalidated through the QP alone that bound them, and are free again when it
 * is destroyed.
 *
 * Makes an unbound window of protection domain pd; *key receives its rkey. -EINVAL: no such type; -ENOMEM: max_mr
 * reached. */
int mw_alloc(struct engine *e, uint32_t pd, uint8_t type, uint32_t *key);
/* The same for a window that can also be bound to layouts of up to max_entries entries (layout.h; at most
 * LAYOUT_MAX_ENTRIES), and that has an lkey, the same as its rkey, while it is bound with ACCESS_LOCAL_WRITE. mem:
 * mw_layout_size(max_entries) bytes, aligned as malloc does; the owner's, to be freed after mw_dealloc. */
size_t mw_layout_size(uint32_t max_entries);
int mw_alloc_layout(struct engine *e, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key);
/* Unbinds it, whatever its type, and removes it; key: its present rkey or any of its index. -ENOENT: no such window. */
int mw_dealloc(struct engine *e, uint32_t key);

/* --- shared receive queues ------------------------------------------------------------------------------------------ */

/* A message takes the oldest request of the SRQ with its first packet (an RDMA WRITE with immediate data with its last),
 * and keeps it until it completes. Each request completes once, but for those of an SRQ that is destroyed, and those
 * whose completions were not popped yet when their QP was destroyed (so pop first, if the request's slot is to be known
 * free again). A request that a QP had taken when it was destroyed or reset is back in the SRQ, in front. A QP with an
 * SRQ that goes to ERR flushes what it has taken, and then gives EVENT_QP_LAST_WQE_REACHED, once, however many others do
 * so, too: it waits in engine_tx until the event queue has room. */

struct srq_init {
    uint32_t pd;
    uint32_t xrcd; /* the owner's number of the XRC domain; 0: a basic SRQ */
    uint32_t max_wr; /* at most 16,384 */
    uint32_t max_sge; /* at most ENGINE_MAX_SGE */
    void *cq; /* XRC, tags: where its completions go; a basic SRQ's go to the QP's receive CQ */
    struct tag_list
        *tm; /* makes it an SRQ that matches tags: a list of its own, made by tm_init (tm.h), whose memory the
                      owner frees after srq_destroy; NULL: none */
    void *owner; /* the owner's pointer, for completions, events and refill_srq */
};
/* Bytes of zeroed, 64-byte aligned memory that srq_create wants; 0: beyond a limit. */
size_t srq_size(uint32_t max_wr, uint32_t max_sge);
/* -EINVAL, -ENOMEM (max_srq reached). mem is the caller's, to be freed after srq_destroy. */
int srq_create(struct engine *e, const struct srq_init *init, void *mem, struct srq **srq);
/* Removes it at once; requests in it vanish. A basic SRQ must have no QP (-EBUSY); packets of XRC that name it later
 * are refused. Completions of it that were not popped yet are dropped. */
int srq_destroy(struct srq *srq);
/* Carries out an operation on the matching list; its completion, if it has one, goes to the SRQ's CQ. -EINVAL: the SRQ
 * matches no tags. -EAGAIN: there is no room for the completion, nothing was done. */
int srq_post_op(struct srq *srq, const struct tm_op *op, uint64_t now);
/* The same, which says what became of it, completion or not. */
int srq_carry_out(struct srq *srq, const struct tm_op *op, struct tm_op_result *result, uint64_t now);
uint32_t srq_number(const struct srq *srq); /* 24 bits, unique on the device, not 0 */
/* -EINVAL (too many SGEs), -ENOMEM (full). */
int srq_post_recv(struct srq *srq, const struct recv_wr *wr, const struct sge *sge);
uint32_t srq_room(const struct srq *srq); /* a request that a message has taken keeps its place until it completes */
uint32_t srq_posted(const struct srq *srq); /* requests in the private queue */
/* Arms the limit event, which is given once when fewer requests than limit are left after a message wanted one, and
 * disarms it (limit becomes 0). The owner is asked for more by refill_srq before the engine counts. While the event queue
 * has no room, it stays armed. */
void srq_set_limit(struct srq *srq, uint32_t limit);
uint32_t srq_limit(const struct srq *srq); /* 0: not armed */
/* Says that the requests can't be had any more, because the ring that they are in is broken: EVENT_SRQ_ERR, once. A
 * connected QP whose next message needs one gives a remote operational error and goes to ERR. May be called by
 * refill_srq. */
void srq_fail(struct srq *srq);
/* Moves the queue to new memory (srq_size(max_wr, same max_sge)): -EINVAL if more than max_wr requests are in it or
 * taken from it by messages that are not complete. The
 * old memory is the caller's again. */
int srq_resize(struct srq *srq, uint32_t max_wr, void *mem, struct srq **out);

/* --- queue pairs ---------------------------------------------------------------------------------------------------- */

struct qp_init {
    uint8_t type; /* enum qp_type */
    bool sq_sig_all; /* every send request is signaled */
    uint32_t pd; /* XRC_RECV: 0 */
    uint32_t xrcd; /* XRC_RECV: the owner's number of the XRC domain; else 0 */
    struct srq *
        srq; /* RC, UC, UD: where its receive requests come from (caps.max_recv_wr is then ignored); NULL: its own queue */
    struct qp_caps caps; /* XRC_SEND has no receive side, XRC_RECV no side of its own: theirs are ignored */
    void *send_cq,
        *recv_cq; /* the owner's, returned in completions; never looked into. XRC_SEND: no recv_cq; XRC_RECV: none */
    void *owner; /* likewise, for completions, events and refill */
    void *queues; /* memory for the queues, if it does not follow in qp_create's; NULL: it does */
};

/* Bytes of zeroed, 64-byte aligned memory that qp_create wants for this QP; 0 if its caps exceed a limit of types.h
 * or 16,384 requests per queue. The first qp_state_size() of them are the QP itself; the others are its queues, which an
 * idle QP does not touch. They may be given apart, as qp_init.queues. */
size_t qp_size(const struct qp_init *init);
size_t qp_state_size(void);
/* Creates a QP in state RESET in mem. -EINVAL, -ENOMEM (max_qp reached). mem is the caller's, to be freed after
 * qp_destroy. */
int qp_create(struct engine *e, const struct qp_init *init, void *mem, struct qp **qp);
/* Removes the QP at once; outstanding requests vanish without completions, completions of it that were not popped
 * yet are dropped (but not those of an XRC target: they are their SRQs', and then have no qp_owner). The pointer is dead afterwards; no packet made by an earlier engine_tx refers to it. */
void qp_destroy(struct qp *qp);
uint32_t qp_number(const struct qp *qp);
struct qp *qp_find(struct engine *e, uint32_t qpn); /* NULL: none */
void *qp_owner(const struct qp *qp); /* qp_init.owner */

/* Changes attributes and state by the table of state transitions (IBA 11.2.5.2), all or nothing: -EINVAL leaves the
 * QP as it was. *why, if not NULL, receives a static text that says which rule was broken. */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask, uint64_t now, const char **why);
void qp_query(const struct qp *qp, struct qp_attr *attr);
enum qp_state qp_state(const struct qp *qp);

/* Posts a copy of a request. sge: wr->num_sge entries, or data: wr->inline_len bytes if SEND_INLINE. 0, -EINVAL
 * (state RESET, INIT or RTR; more SGEs or inline data than the QP's caps; opcode not of the QP's type; message over
 * 2^31 bytes), -ENOMEM (queue full). In ERR the request is accepted and flushed. */
int qp_post_send(struct qp *qp, const struct send_wr *wr, const struct sge *sge, const void *data, uint64_t now);
/* -EINVAL (state RESET, too many SGEs), -ENOMEM (queue full). In ERR: accepted and flushed. */
int qp_post_recv(struct qp *qp, const struct recv_wr *wr, const struct sge *sge);
/* Entries free in the private queues. */
uint32_t qp_send_room(const struct qp *qp);
uint32_t qp_recv_room(const struct qp *qp);
/* In ERR, the owner calls it after it learned of new requests that it posts by refill. */
void qp_kick(struct qp *qp);

/* For `status` and `why`: a snapshot of what a QP is about. */
struct qp_info {
    uint32_t qpn, dest_qpn;
    uint8_t type, state;
    uint32_t sq_posted, rq_posted; /* requests in the private queues */
    uint32_t una_psn; /* oldest unacknowledged PSN */
    uint32_t next_psn; /* next PSN to send */
    uint32_t max_psn; /* next PSN never sent */
    uint32_t epsn; /* next expected PSN */
    uint32_t msn;
    uint8_t retries_left, rnr_retries_left;
    uint32_t reads_outstanding;
    uint64_t deadline; /* NEVER: no timer runs */
    uint64_t srtt_ns;
    uint64_t
        progress_at; /* ns; when the oldest unacknowledged packet was sent first, or since when it is that; 0: never */
    uint64_t rnr_until; /* ns; 0: it does not wait for the peer's RNR timer */
    uint64_t timeout_ns; /* that of the QP as it is carried out; 0: none */
    uint8_t probes; /* tail probes since the last progress */
    bool retransmitting; /* what it sends next was sent before */
    uint64_t window_bytes; /* present congestion window of the QP */
    uint64_t inflight_bytes;
    uint64_t rate; /* bytes per second that CNPs have lowered it to; 0: no limit */
    bool waiting_rate; /* … and it waits for that */
    bool waiting_rnr;
    uint32_t waiting_srqn; /* XRC: … for a receive request in this SRQ of the peer's (row B11) */
    bool waiting_fence;
    bool waiting_reads; /* no READ or atomic credit */
    bool waiting_window; /* something could be sent, but its own window is full (bytes or packets) */
    bool waiting_peer; /* … or the window of the destination address, shared with other QPs */
    bool waiting_drain; /* SQD: requests wait, and some that began before are not done yet */
    bool windowless; /* unreliable: it has no window of its own */
    struct report failure; /* why it is in ERR or SQE: the first cause; kind REPORT_NONE: it is not */
    struct engine_counters counters; /* this QP's */
};
void qp_info(const struct qp *qp, struct qp_info *info);

/* --- packets -------------------------------------------------------------------------------------------------------- */

/* Joins a UD QP to a multicast group (mapped 224.0.0.0/4 or ff00::/8), and takes it out. -EINVAL: not a UD QP or not a
 * group; -ENOMEM: no place left; -ENOENT (detach): it is no member. Joining twice counts once. A destroyed QP has left
 * all groups. */
int mcast_attach(struct qp *qp, const uint8_t gid[16]);
int mcast_detach(struct qp *qp, const uint8_t gid[16]);
bool mcast_is_group(const uint8_t gid[16]);

struct rx_meta {
    uint8_t src_gid[16]; /* from the IP header; v4 as ::ffff:a.b.c.d */
    uint8_t dst_gid[16]; /* likewise: one of the device's addresses, or a multicast group */
    uint8_t traffic_class; /* TOS or traffic class */
    uint8_t hop_limit; /* 0: not known */
    bool ce; /* ECN congestion experienced */
};
/* Takes in a packet whose ICRC was found right. The payload must stay valid until deferred writes were carried out.
 *
 * Multicast: a packet for QP 0xffffff to a group goes to each UD QP in it, but to the one that sent it. The engine can't
 * send to itself, so the owner gives each packet to a group (tx_pkt.av->dgid is one, mcast_is_group) to the socket and
 * back to its own engine, as a packet of the device's own address, whether or not some QP here has joined; and it must
 * see to it that its own packets don't come in from the network a second time: the kernel's loop of multicast, which
 * other devices on the same machine need, brings them back to a socket that has joined, and what comes in from the
 * device's own address to a group is to be dropped. The owner joins the group on its socket while a QP is in it. */
void engine_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now);

#define TX_BATCH_PKTS 128
struct tx_pkt {
    const struct av *
        av; /* destination; valid until the QP is modified or destroyed or (UD) a request posted to it, that is, until the
             * owner's next call but engine_tx and those for results; packets of the batch may be given back to
             * engine_rx, if its mem_ops.refill posts receive requests only */
    uint32_t
        off; /* of the packet in batch->buf: BTH, headers, payload, pad, then 4 bytes that the owner fills with the ICRC */
    uint32_t len; /* including those 4 bytes */
    uint32_t src_qpn, psn; /* for traces and faults */
    uint64_t wr_id; /* for traces: of the work request, if has_wr */
    uint16_t header_len;
    bool has_wr; /* a request's packet */
    bool cnp; /* a CNP, for which its owner may have another traffic class than av's */
    bool retransmit;
};
/* What the owner sends at once: packets of one length, the last of which may be shorter. */
struct gso_run {
    uint32_t bytes, pkts; /* at most; 0: it sends each alone */
};
struct tx_batch {
    uint8_t *buf; /* the caller's; packets are laid out in it without gaps, so that equal ones can go out by GSO */
    size_t cap; /* bytes */
    size_t used; /* in and out */
    uint32_t n; /* packets, in and out */
    bool
        hold_acks; /* in: plain ACKs of QPs with nothing else to send stay back; for owners who expect that such follows at once */
    bool held; /* out: set when one stayed back */
    struct gso_run row; /* in: a row for the whole of which there is no room is left for the next batch */
    struct { /* the last row, if n > 0 */
        uint32_t len, bytes, pkts; /* len: of its packets; 0: no more go in */
    } last;
    struct tx_pkt pkt[TX_BATCH_PKTS];
};
/* Appends packets that are due, the QPs taking turns, until nothing is due or the batch has no room for another
 * burst. Returns how many were added; 0: nothing is due (or nothing can be until completions have been taken). */
uint32_t engine_tx(struct engine *e, struct tx_batch *batch, uint64_t now);

/* A deferred memory write for this QP failed (see mem_ops.write): its completions of this batch turn to
 * WC_LOC_PROT_ERR, the peer gets a NAK, the QP goes to ERR. */
void engine_mem_fault(struct engine *e, uint32_t qpn, uint64_t now);

/* --- connectivity checks --------------------------------------------------------------------------------------------- */

/* A probe (wire/probe.h) that its owner sends to find out whether packets of a size arrive, and the answer; also what
 * others ask, which the engine answers by itself. */
struct check {
    bool answer; /* else somebody's probe */
    uint8_t peer[16]; /* where the packet came from */
    uint32_t sequence, size; /* of the probe, as engine_check had them */
    uint64_t token; /* likewise: a number that nobody can guess tells answers from forged ones */
};
/* Lets the next engine_tx send one. size: of the UDP packet's payload behind the headers, PROBE_LEN … 4096. -EINVAL: beyond
 * that, or to a multicast group; -EAGAIN: too many wait. */
int engine_check(struct engine *e, const struct av *av, uint32_t size, uint32_t sequence, uint64_t token);
/* The oldest check or answer that came in and was not taken yet; false: none. If nobody takes them, new ones are
 * forgotten. */
bool engine_pop_check(struct engine *e, struct check *c);

/* --- time ----------------------------------------------------------------------------------------------------------- */

uint64_t engine_deadline(
    const struct engine *e); /* next moment at which engine_expire has something to do, or NEVER; may be early */
void engine_expire(struct engine *e, uint64_t now);

/* --- results -------------------------------------------------------------------------------------------------------- */

/* Oldest completion not yet taken, NULL if none; valid until engine_drop_completion, which removes it. */
const struct completion *engine_peek_completion(struct engine *e);
void engine_drop_completion(struct engine *e);
bool engine_pop_event(struct engine *e, struct event *ev);
/* Oldest report not yet taken; false: none. When nobody takes them, those that find no room are counted. */
bool engine_pop_report(struct engine *e, struct report *r);
uint64_t engine_reports_lost(const struct engine *e);

#endif
