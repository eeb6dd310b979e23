// SPDX-License-Identifier: BSD-2-Clause
/* The types that the engine and its owner (the daemon, the simulator) exchange: work requests, completions, events,
 * attributes. Numbers that exist in the verbs API (enum ibv_wc_status, ibv_wc_opcode, ibv_qp_state, ibv_qp_attr_mask,
 * ibv_access_flags, ibv_event_type) have the same values here, so no translation is needed.
 * tests/unit/core/base/test_verbs_numbers.c checks this. */
#ifndef PUMICE_DAEMON_CORE_BASE_TYPES_H
#define PUMICE_DAEMON_CORE_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX /* no deadline */

#define ENGINE_MAX_SGE 32 /* SGEs per work request */
#define ENGINE_MAX_INLINE 1024 /* bytes of inline data per work request */
#define ENGINE_MAX_MSG (1u << 31) /* bytes of a message: the largest one of IBA */
#define ENGINE_MAX_GIDS 16 /* addresses of a device */
#define ENGINE_MAX_RD_ATOMIC 128 /* a power of two: outstanding READs and atomics per QP and direction */
#define COMPLETION_INLINE 64 /* bytes of a small received SEND that travel in the completion */

/* --- addresses -------------------------------------------------------------------------------- */

/* The destination of a QP's packets: the part of an address vector that RoCEv2 uses. */
struct av {
    uint8_t dgid[16]; /* IPv6 address or ::ffff:a.b.c.d */
    uint8_t sgid_index;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint32_t flow_label;
};

/* --- work requests ---------------------------------------------------------------------------- */

/* As struct ibv_sge. */
struct sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* As enum ibv_wr_opcode. */
enum send_op {
    WR_RDMA_WRITE = 0,
    WR_RDMA_WRITE_WITH_IMM = 1,
    WR_SEND = 2,
    WR_SEND_WITH_IMM = 3,
    WR_RDMA_READ = 4,
    WR_ATOMIC_CMP_AND_SWP = 5,
    WR_ATOMIC_FETCH_AND_ADD = 6,
    WR_LOCAL_INV = 7,
    WR_BIND_MW = 8,
    WR_SEND_WITH_INV = 9,
    WR_FLUSH = 14, /* from later versions of the verbs API */
    WR_ATOMIC_WRITE = 15,
};
/* As enum ibv_send_flags. */
enum send_flags {
    SEND_FENCE = 1 << 0,
    SEND_SIGNALED = 1 << 1,
    SEND_SOLICITED = 1 << 2,
    SEND_INLINE = 1 << 3,
};

/* The destination of one UD request. */
struct ud_dest {
    struct av av;
    uint32_t qpn; /* 0xffffff: all members of the multicast group av.dgid */
    uint32_t qkey; /* if its top bit is set, the QP's own Q_Key is sent instead (IBA 10.2.5) */
};

/* The new binding of a memory window, for BIND_MW. length 0 unbinds a window of type 1. */
struct mw_bind {
    /* Type 1: the window's current rkey. Type 2: the new rkey (same index; the user chooses the low byte). */
    uint32_t mw_key;
    /* Type 1: the rkey after the bind, which the owner has already returned to its user. Type 2: 0. */
    uint32_t new_key;
    uint32_t mr_key; /* lkey of the region to bind to */
    uint32_t access; /* enum access_flags: REMOTE_*, ZERO_BASED */
    uint64_t addr; /* address of the first byte, in the region's iova */
    uint64_t length;
    /* Not NULL: the window is bound to this layout, whose objects are keys. Then mr_key, addr and length are not
     * used. The owner's memory; it must stay until the request is completed or flushed. */
    const struct layout_desc *layout;
};

/* As enum ibv_placement_type. */
enum flush_placement {
    FLUSH_GLOBAL = 1 << 0, /* make earlier changes of the memory visible to everybody */
    FLUSH_PERSISTENT = 1 << 1, /* make earlier changes of the memory survive a loss of power */
};
/* As enum ibv_selectivity_level. */
enum flush_selectivity {
    FLUSH_RANGE = 0,
    FLUSH_REGION = 1,
};
/* The operands of FLUSH (IBA A19). */
struct flush {
    uint32_t length; /* bytes from send_wr.remote_addr on; not used by FLUSH_REGION */
    uint8_t placement; /* enum flush_placement, one or both */
    uint8_t selectivity; /* enum flush_selectivity */
};

struct send_wr {
    uint64_t wr_id;
    uint32_t slot; /* the owner's index of the request; comes back in the completion */
    uint8_t opcode; /* enum send_op */
    uint8_t flags; /* enum send_flags */
    uint8_t num_sge; /* 0 if SEND_INLINE */
    uint32_t inline_len; /* bytes of inline data if SEND_INLINE */
    uint8_t imm[4]; /* opaque, like imm_data (__be32) in the verbs API */
    uint32_t inv_rkey; /* SEND_WITH_INV, LOCAL_INV */
    uint64_t remote_addr; /* WRITE, READ, atomics, ATOMIC_WRITE, FLUSH */
    uint32_t rkey;
    /* Atomics: compare (CAS) or add (FAA) operand. ATOMIC_WRITE without SGEs: the 8 bytes as in memory. */
    uint64_t compare_add;
    uint64_t swap;
    uint32_t srqn; /* XRC: SRQ number at the peer */
    union {
        struct ud_dest ud; /* UD */
        struct mw_bind bind; /* BIND_MW */
        struct flush flush; /* FLUSH */
    };
};

struct recv_wr {
    uint64_t wr_id;
    uint32_t slot; /* the owner's index of the request; comes back in the completion */
    uint8_t num_sge;
};

/* --- completions and events ------------------------------------------------------------------- */

/* As enum ibv_wc_status. */
enum wc_status {
    WC_SUCCESS = 0,
    WC_LOC_LEN_ERR = 1,
    WC_LOC_QP_OP_ERR = 2,
    WC_LOC_PROT_ERR = 4,
    WC_WR_FLUSH_ERR = 5,
    WC_MW_BIND_ERR = 6,
    WC_BAD_RESP_ERR = 7,
    WC_LOC_ACCESS_ERR = 8,
    WC_REM_INV_REQ_ERR = 9,
    WC_REM_ACCESS_ERR = 10,
    WC_REM_OP_ERR = 11,
    WC_RETRY_EXC_ERR = 12,
    WC_RNR_RETRY_EXC_ERR = 13,
    WC_FATAL_ERR = 19,
    WC_GENERAL_ERR = 21,
    WC_TM_ERR = 22,
    WC_TM_RNDV_INCOMPLETE = 23,
};
/* As enum ibv_wc_opcode. */
enum wc_opcode {
    WC_SEND = 0,
    WC_RDMA_WRITE = 1,
    WC_RDMA_READ = 2,
    WC_COMP_SWAP = 3,
    WC_FETCH_ADD = 4,
    WC_BIND_MW = 5,
    WC_LOCAL_INV = 6,
    WC_FLUSH = 8,
    WC_ATOMIC_WRITE = 9,
    WC_RECV = 128,
    WC_RECV_RDMA_WITH_IMM = 129,
    WC_TM_ADD = 130,
    WC_TM_DEL = 131,
    WC_TM_SYNC = 132,
    WC_TM_RECV = 133,
    WC_TM_NO_TAG = 134,
};
/* As enum ibv_wc_flags. */
enum wc_flags {
    WC_GRH = 1 << 0,
    WC_WITH_IMM = 1 << 1,
    WC_WITH_INV = 1 << 3,
    WC_TM_SYNC_REQ = 1 << 4,
    WC_TM_MATCH = 1 << 5,
    WC_TM_DATA_VALID = 1 << 6,
};

/* The meaning of a completion's slot. */
enum completion_of {
    /* A send or receive request of a QP or SRQ, see is_recv and srq_owner. */
    OF_REQUEST,
    OF_TM_BUFFER, /* a receive request of an SRQ that matches tags */
    OF_TM_UNEXPECTED, /* like OF_TM_BUFFER; the message counts as unexpected */
    OF_TM_ENTRY, /* the entry of the matching list with this slot (TM_SLOT of its handle) */
    OF_TM_OP, /* an operation on the matching list */
};
struct completion {
    void *cq; /* the owner's pointer from qp_create */
    void *qp_owner; /* the owner's pointer of the QP */
    /* Receives: the owner's pointer of the SRQ that the request came from. NULL: the QP's own receive queue. */
    void *srq_owner;
    uint64_t wr_id;
    uint64_t timestamp; /* `now` of the call that made the completion, ns */
    uint32_t slot; /* of the work request; see `of` */
    uint32_t qpn;
    uint32_t src_qp; /* receives: the peer's QP number */
    uint32_t byte_len; /* receives, READs, atomics */
    uint32_t inv_rkey; /* WC_WITH_INV */
    uint64_t tm_tag; /* WC_TM_MATCH: tag of the message, host byte order; else 0 */
    uint32_t tm_priv; /* WC_TM_MATCH: app_ctx of the message, host byte order; else 0 */
    uint8_t of; /* enum completion_of */
    uint8_t imm[4]; /* WC_WITH_IMM */
    uint8_t status; /* enum wc_status */
    uint8_t opcode; /* enum wc_opcode; also set in error completions */
    uint8_t flags; /* enum wc_flags */
    bool is_recv; /* slot belongs to the receive queue */
    /* Also wakes users that wait for solicited completions only. It is set in all error completions. */
    bool solicited;
    /* Bytes in data[], which the poller copies to the start of the receive request's SGEs. 0: none. Less than
     * byte_len for a UD datagram: its first 40 bytes (the GRH) are always here, and the rest may already be in
     * memory. */
    uint8_t inline_len;
    /* WC_MW_BIND_ERR of a window over a layout: the broken rule, enum layout_error. Else 0. */
    uint32_t vendor_err;
    uint8_t data[COMPLETION_INLINE];
};

/* As enum ibv_event_type. */
enum event_type {
    EVENT_QP_FATAL = 1,
    EVENT_QP_REQ_ERR = 2,
    EVENT_QP_ACCESS_ERR = 3,
    EVENT_COMM_EST = 4,
    EVENT_SQ_DRAINED = 5,
    EVENT_SRQ_ERR = 14,
    EVENT_SRQ_LIMIT_REACHED = 15,
    EVENT_QP_LAST_WQE_REACHED = 16,
};
struct event {
    void *qp_owner; /* NULL: the event belongs to an SRQ */
    void *srq_owner; /* NULL: the event belongs to a QP */
    uint32_t qpn;
    uint8_t type; /* enum event_type */
};

/* --- QP attributes ---------------------------------------------------------------------------- */

/* As enum ibv_qp_type. */
enum qp_type {
    QPT_RC = 2,
    QPT_UC = 3,
    QPT_UD = 4,
    QPT_XRC_SEND = 9, /* initiator: no receive side */
    QPT_XRC_RECV = 10, /* target: no send side, no PD, no CQs */
};
/* As enum ibv_qp_state. */
enum qp_state {
    QPS_RESET = 0,
    QPS_INIT = 1,
    QPS_RTR = 2,
    QPS_RTS = 3,
    QPS_SQD = 4,
    QPS_SQE = 5,
    QPS_ERR = 6,
};
/* As enum ibv_qp_attr_mask. */
enum qp_attr_mask {
    QPA_STATE = 1 << 0,
    QPA_CUR_STATE = 1 << 1,
    QPA_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    QPA_ACCESS_FLAGS = 1 << 3,
    QPA_PKEY_INDEX = 1 << 4,
    QPA_PORT = 1 << 5,
    QPA_QKEY = 1 << 6,
    QPA_AV = 1 << 7,
    QPA_PATH_MTU = 1 << 8,
    QPA_TIMEOUT = 1 << 9,
    QPA_RETRY_CNT = 1 << 10,
    QPA_RNR_RETRY = 1 << 11,
    QPA_RQ_PSN = 1 << 12,
    QPA_MAX_RD_ATOMIC = 1 << 13,
    QPA_ALT_PATH = 1 << 14,
    QPA_MIN_RNR_TIMER = 1 << 15,
    QPA_SQ_PSN = 1 << 16,
    QPA_MAX_DEST_RD_ATOMIC = 1 << 17,
    QPA_PATH_MIG_STATE = 1 << 18,
    QPA_CAP = 1 << 19,
    QPA_DEST_QPN = 1 << 20,
    QPA_RATE_LIMIT = 1 << 25,
};
/* As enum ibv_access_flags. */
enum access_flags {
    ACCESS_LOCAL_WRITE = 1 << 0,
    ACCESS_REMOTE_WRITE = 1 << 1,
    ACCESS_REMOTE_READ = 1 << 2,
    ACCESS_REMOTE_ATOMIC = 1 << 3,
    ACCESS_MW_BIND = 1 << 4,
    ACCESS_ZERO_BASED = 1 << 5,
    ACCESS_FLUSH_GLOBAL = 1 << 8, /* this and the next one are from later versions of the verbs API */
    ACCESS_FLUSH_PERSISTENT = 1 << 9,
};

struct qp_attr {
    uint8_t state; /* enum qp_state */
    uint8_t cur_state;
    uint8_t port;
    uint8_t path_mtu; /* enum ibv_mtu: 1 (256 bytes) … 5 (4096 bytes) */
    uint8_t timeout; /* 4.096 us * 2^timeout; 0: none */
    uint8_t retry_cnt; /* 0 … 7 */
    uint8_t rnr_retry; /* 0 … 7; 7 is infinite */
    uint8_t min_rnr_timer; /* a code, see wire/syndrome.h */
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    bool sqd_async_notify;
    bool sq_draining; /* query only */
    uint16_t pkey_index;
    uint32_t access; /* enum access_flags that the responder grants */
    uint32_t dest_qpn;
    uint32_t rq_psn; /* 24 bits; query: the next expected one */
    uint32_t sq_psn; /* 24 bits; query: the next one to send */
    uint32_t qkey;
    struct av av;
};

struct qp_caps {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline;
};

/* --- memory registration ---------------------------------------------------------------------- */

struct mr_init {
    uint32_t pd; /* the owner's number of the protection domain; not 0 */
    uint32_t space; /* the owner's number of the address space of va */
    uint64_t va; /* where the memory is */
    /* Address of the region's first byte in work requests and on the wire. Equal to va, unless reg_mr_iova was used or
     * the region is zero-based. */
    uint64_t iova;
    uint64_t length; /* bytes; 0 is legal */
    uint32_t access; /* enum access_flags */
};

enum mw_type { /* enum ibv_mw_type */
               MW_TYPE_1 = 1,
               MW_TYPE_2 = 2,
};

/* --- connectivity checks ---------------------------------------------------------------------- */

/* A received check, or the answer to one that the owner sent. */
struct check {
    bool answer; /* true: the answer to an own check; false: a check of another device */
    bool icrc_ids; /* of an answer: the packets of the other device have their bth_icrc_id */
    uint8_t peer[16]; /* where the packet came from */
    uint32_t sequence, size; /* of the probe, as its sender gave them to engine_check */
    uint64_t token; /* as its sender gave it: a number that cannot be guessed tells answers from forged ones */
};

/* --- counters --------------------------------------------------------------------------------- */

/* Names as in rxe's hw_counters and usnic's statistics. X(name, what it counts). */
#define ENGINE_COUNTERS(X)                                                                                             \
    X(sent_pkts, "packets handed out for sending")                                                                     \
    X(rcvd_pkts, "packets taken in")                                                                                   \
    X(sent_bytes, "payload bytes of packets sent")                                                                     \
    X(rcvd_bytes, "payload bytes of packets accepted")                                                                 \
    X(duplicate_request, "requests with a PSN seen before")                                                            \
    X(out_of_seq_request, "requests with a PSN beyond the expected one")                                               \
    X(reordered_requests, "requests that were kept because an earlier one was missing")                                \
    X(reordered_responses, "responses that were kept because an earlier one was missing")                              \
    X(reorder_no_room, "requests and responses that were dropped because too many are kept already")                   \
    X(sacks_sent, "selective acknowledgements sent, which tell the peer what is missing")                              \
    X(sacks_rcvd, "selective acknowledgements received")                                                               \
    X(selective_unneeded, "packets that were sent again although the first ones were only late")                       \
    X(rcvd_rnr_err, "RNR NAKs received")                                                                               \
    X(send_rnr_err, "RNR NAKs sent")                                                                                   \
    X(rcvd_seq_err, "PSN sequence NAKs received")                                                                      \
    X(send_seq_err, "PSN sequence NAKs sent")                                                                          \
    X(acks_sent, "ACKs sent")                                                                                          \
    X(acks_rcvd, "ACKs received")                                                                                      \
    X(old_acks, "ACKs, SACKs and responses for packets that are not outstanding any more")                             \
    X(sent_naks, "NAKs of all kinds handed out for sending")                                                           \
    X(sent_responses, "responses to READs and atomics handed out for sending, in packets")                             \
    X(ack_coalesced, "ACK requests that were answered by the ACK of a later packet")                                   \
    X(naks_sent, "other NAKs sent (invalid request, access, operation)")                                               \
    X(naks_rcvd, "other NAKs received")                                                                                \
    X(credit_waits, "times a QP waited because its peer had no receive request (e2e-credits)")                         \
    X(credit_asks, "messages sent without a credit after such a wait")                                                 \
    X(credit_acks_sent, "ACKs sent because receive requests were posted (e2e-credits)")                                \
    X(credit_acks_rcvd, "ACKs received that told of new receive requests (e2e-credits)")                               \
    X(fast_retrans, "packets sent again after a sequence NAK, a SACK or a gap in READ responses")                      \
    X(selective_retrans, "those of them that were sent again alone, after a SACK or for missing responses")            \
    X(probe_retrans, "packets sent again by the tail probe")                                                           \
    X(timeout_retrans, "packets sent again after the QP's timeout")                                                    \
    X(rnr_retrans, "packets sent again after an RNR NAK")                                                              \
    X(retry_exceeded_err, "QPs failed after retry_cnt timeouts")                                                       \
    X(retry_rnr_exceeded_err, "QPs failed after rnr_retry RNR NAKs")                                                   \
    X(window_full, "times a QP had packets to send but no window")                                                     \
    X(max_sent_window, "most unacknowledged packets of a QP")                                                          \
    X(max_rcvd_window, "largest distance of a request ahead of the expected one, in packets")                          \
    X(peer_window_full, "times the bytes in flight to a peer's socket reached their limit")                            \
    X(np_ecn_marked_roce_packets, "packets received with ECN congestion experienced")                                  \
    X(np_cnp_sent, "congestion notification packets sent")                                                             \
    X(rp_cnp_handled, "congestion notification packets received")                                                      \
    X(rx_idle_cnp, "congestion notification packets ignored: the QP had nothing under way")                            \
    X(flow_probes_sent, "flow probes sent, which ask whether the datagrams before them arrived")                       \
    X(flow_answers_sent, "flow probes and connectivity checks answered")                                               \
    X(flow_answers_rcvd, "flow probes that were answered")                                                             \
    X(gsi_mads_sent, "management datagrams sent by QP 1")                                                              \
    X(gsi_mads_rcvd, "management datagrams received by QP 1")                                                          \
    X(gsi_mads_dropped, "management datagrams dropped: too many wait")                                                 \
    X(rx_unknown_qp, "packets dropped: no such QP")                                                                    \
    X(rx_time_wait, "duplicates for a QP in ERR or a destroyed QP, acknowledged once more")                            \
    X(rx_bad_state, "packets dropped: QP not ready to receive")                                                        \
    X(rx_bad_pkey, "packets dropped: P_Key")                                                                           \
    X(rx_bad_source, "packets dropped: source address is not the QP's peer")                                           \
    X(rx_bad_source_qp, "packets dropped: they come from a QP of this device that is not the QP's peer")               \
    X(rx_bad_destination, "packets dropped: destination address is not the QP's")                                      \
    X(rx_bad_opcode, "packets dropped: opcode of another service")                                                     \
    X(rx_bad_psn, "requests dropped: PSN farther from the expected one than any window")                               \
    X(rx_bad_response, "responses dropped: no matching request is outstanding")                                        \
    X(rx_bad_qkey, "datagrams dropped: Q_Key")                                                                         \
    X(rx_no_recv, "UC messages and datagrams dropped: no receive request")                                             \
    X(rx_refused, "UC packets and datagrams dropped: not allowed, too long, or part of a dropped message")             \
    X(xrc_refused, "XRC requests refused: no SRQ of that number in the domain")                                        \
    X(events_dropped, "asynchronous events dropped: too many at once")                                                 \
    X(local_errors, "work requests that failed locally")                                                               \
    X(mem_faults, "copies from or to client memory that failed")                                                       \
    X(mem_unmapped, "copies that met registered memory that its program had unmapped: data dropped, or zeros read")    \
    X(sends, "SEND messages completed by the requester")                                                               \
    X(recvs, "messages completed in a receive request")                                                                \
    X(writes, "RDMA WRITE messages completed by the requester")                                                        \
    X(reads, "RDMA READ messages completed by the requester")                                                          \
    X(atomics, "atomics completed by the requester")                                                                   \
    X(atomic_writes, "ATOMIC WRITEs completed by the requester")                                                       \
    X(flushes, "FLUSHes completed by the requester")                                                                   \
    X(mw_binds, "memory windows bound or unbound by requests")                                                         \
    X(mw_invalidates, "memory windows invalidated by requests, the QP's own or its peer's")

struct engine_counters {
#define X(name, text) uint64_t name; /* text */
    ENGINE_COUNTERS(X)
#undef X
};

#endif
