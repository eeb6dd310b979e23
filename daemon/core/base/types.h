// SPDX-License-Identifier: BSD-2-Clause
/* What the engine and its owner (the daemon, the simulator) tell each other: work requests, completions, events,
 * attributes. Numbers that exist in the verbs API have the verbs API's values (enum ibv_wc_status, ibv_wc_opcode,
 * ibv_qp_state, ibv_qp_attr_mask, ibv_access_flags, ibv_event_type), so that nobody translates;
 * tests/unit/core/base/test_verbs_numbers.c holds them to it. */
#ifndef PUMICE_CORE_TYPES_H
#define PUMICE_CORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX /* no deadline */

#define ENGINE_MAX_SGE 32 /* SGEs per work request */
#define ENGINE_MAX_INLINE 1024 /* bytes of inline data per work request */
#define ENGINE_MAX_MSG (1u << 31) /* bytes of a message (row E10) */
#define ENGINE_MAX_RD_ATOMIC 16 /* outstanding READs and atomics per QP and direction */
#define COMPLETION_INLINE 64 /* bytes of a small received SEND that travel in the completion */

/* --- addresses ------------------------------------------------------------------------------------------------------ */

/* Where a QP's packets go: the part of an address vector that RoCEv2 uses. */
struct av {
    uint8_t dgid[16]; /* IPv6 address or ::ffff:a.b.c.d */
    uint8_t sgid_index;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint32_t flow_label;
};

/* --- work requests -------------------------------------------------------------------------------------------------- */

struct sge { /* struct ibv_sge */
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

enum send_op { /* enum ibv_wr_opcode */
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
               WR_FLUSH = 14, /* a number of later verbs APIs */
               WR_ATOMIC_WRITE = 15,
};
enum send_flags { /* enum ibv_send_flags */
                  SEND_FENCE = 1 << 0,
                  SEND_SIGNALED = 1 << 1,
                  SEND_SOLICITED = 1 << 2,
                  SEND_INLINE = 1 << 3,
};

/* UD: where one request goes. */
struct ud_dest {
    struct av av;
    uint32_t qpn; /* 0xffffff: all members of the multicast group av.dgid */
    uint32_t qkey; /* with its top bit set, the QP's own Q_Key is sent instead (IBA 10.2.5) */
};

/* What BIND_MW makes of a memory window. length 0 unbinds a window of type 1. */
struct mw_bind {
    uint32_t
        mw_key; /* type 1: the window's present rkey; type 2: the new one (same index, the low byte is the user's) */
    uint32_t new_key; /* type 1: the rkey that it has afterwards, which the owner has told its user already; else 0 */
    uint32_t mr_key; /* lkey of the region beneath */
    uint32_t access; /* enum access_flags: REMOTE_*, ZERO_BASED */
    uint64_t addr; /* first byte, as the region's iova has it */
    uint64_t length;
    const struct layout_desc *
        layout; /* not NULL: the window is bound to this layout, whose objects are keys; mr_key, addr and length mean nothing. The owner's memory, until the request is completed or flushed */
};

enum flush_placement { /* enum ibv_placement_type */
                       FLUSH_GLOBAL = 1 << 0, /* everybody sees the memory as it is now */
                       FLUSH_PERSISTENT = 1 << 1, /* and a loss of power does not change it */
};
enum flush_selectivity { /* enum ibv_selectivity_level */
                         FLUSH_RANGE = 0,
                         FLUSH_REGION = 1,
};
/* What FLUSH (IBA A19) asks for. */
struct flush {
    uint32_t length; /* bytes from send_wr.remote_addr; FLUSH_REGION: not looked at */
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
    uint8_t imm[4]; /* opaque, as the verbs API's imm_data (__be32) */
    uint32_t inv_rkey; /* SEND_WITH_INV, LOCAL_INV */
    uint64_t remote_addr; /* WRITE, READ, atomics, ATOMIC_WRITE, FLUSH */
    uint32_t rkey;
    uint64_t
        compare_add; /* atomics: compare (CAS) or addend (FAA). ATOMIC_WRITE without SGEs: the 8 bytes as in memory */
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

/* --- completions and events ----------------------------------------------------------------------------------------- */

enum wc_status { /* enum ibv_wc_status */
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
enum wc_opcode { /* enum ibv_wc_opcode */
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
enum wc_flags { /* enum ibv_wc_flags */
                WC_GRH = 1 << 0,
                WC_WITH_IMM = 1 << 1,
                WC_WITH_INV = 1 << 3,
                WC_TM_SYNC_REQ = 1 << 4,
                WC_TM_MATCH = 1 << 5,
                WC_TM_DATA_VALID = 1 << 6,
};

enum completion_of { /* what the slot of a completion names */
                     OF_REQUEST, /* a send or receive request of a QP or SRQ, see is_recv and srq_owner */
                     OF_TM_BUFFER, /* a receive request of an SRQ that matches tags */
                     OF_TM_UNEXPECTED, /* likewise; the message counts as unexpected */
                     OF_TM_ENTRY, /* the entry of the matching list with that slot (TM_SLOT of its handle) */
                     OF_TM_OP, /* an operation on the matching list */
};
struct completion {
    void *cq; /* the owner's pointer given at qp_create */
    void *qp_owner; /* the owner's pointer of the QP */
    void *srq_owner; /* receives: the owner's pointer of the SRQ that the request came from; NULL: the QP's own queue */
    uint64_t wr_id;
    uint64_t timestamp; /* now of the call that made it, ns */
    uint32_t slot; /* of the work request */
    uint32_t qpn;
    uint32_t src_qp; /* receives: the peer's QP number */
    uint32_t byte_len; /* receives, READs, atomics */
    uint32_t inv_rkey; /* WC_WITH_INV */
    uint64_t tm_tag; /* WC_TM_MATCH: the message's tag, host byte order; else 0 */
    uint32_t tm_priv; /* likewise its app_ctx */
    uint8_t of; /* enum completion_of */
    uint8_t imm[4]; /* WC_WITH_IMM */
    uint8_t status; /* enum wc_status */
    uint8_t opcode; /* enum wc_opcode; set in error completions, too */
    uint8_t flags; /* enum wc_flags */
    bool is_recv; /* slot belongs to the receive queue */
    bool solicited; /* must wake those who asked for solicited completions only (errors always do) */
    uint8_t
        inline_len; /* bytes in data[], which the poller scatters to the start of the receive request's SGEs; 0: none.
                         * Less than byte_len for a UD datagram: its first 40 bytes always come here, the rest may be in
                         * memory already */
    uint32_t
        vendor_err; /* WC_MW_BIND_ERR of a window over a layout: enum layout_error, which rule was broken; else 0 */
    uint8_t data[COMPLETION_INLINE];
};

enum event_type { /* enum ibv_event_type */
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
    void *qp_owner; /* NULL: an event of an SRQ */
    void *srq_owner; /* likewise of a QP */
    uint32_t qpn;
    uint8_t type; /* enum event_type */
};

/* --- QP attributes -------------------------------------------------------------------------------------------------- */

enum qp_type { /* enum ibv_qp_type */
               QPT_RC = 2,
               QPT_UC = 3,
               QPT_UD = 4,
               QPT_XRC_SEND = 9, /* initiator: no receive side */
               QPT_XRC_RECV = 10, /* target: no send side, no PD, no CQs */
};
enum qp_state { /* enum ibv_qp_state */
                QPS_RESET = 0,
                QPS_INIT = 1,
                QPS_RTR = 2,
                QPS_RTS = 3,
                QPS_SQD = 4,
                QPS_SQE = 5,
                QPS_ERR = 6,
};
enum qp_attr_mask { /* enum ibv_qp_attr_mask */
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
enum access_flags { /* enum ibv_access_flags */
                    ACCESS_LOCAL_WRITE = 1 << 0,
                    ACCESS_REMOTE_WRITE = 1 << 1,
                    ACCESS_REMOTE_READ = 1 << 2,
                    ACCESS_REMOTE_ATOMIC = 1 << 3,
                    ACCESS_MW_BIND = 1 << 4,
                    ACCESS_ZERO_BASED = 1 << 5,
                    ACCESS_FLUSH_GLOBAL = 1 << 8, /* a number of later verbs APIs, as the next one */
                    ACCESS_FLUSH_PERSISTENT = 1 << 9,
};

struct qp_attr {
    uint8_t state; /* enum qp_state */
    uint8_t cur_state;
    uint8_t port;
    uint8_t path_mtu; /* enum ibv_mtu: 1 is 256 … 5 is 4096 bytes */
    uint8_t timeout; /* 4.096 us * 2^timeout; 0: none */
    uint8_t retry_cnt; /* 0 … 7, 7 is seven */
    uint8_t rnr_retry; /* 0 … 7, 7 is for ever */
    uint8_t min_rnr_timer; /* code, wire/syndrome.h */
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

/* --- counters ------------------------------------------------------------------------------------------------------- */

/* Names as rxe's hw_counters and usnic's statistics have them. X(name, what it counts). */
#define ENGINE_COUNTERS(X)                                                                                             \
    X(sent_pkts, "packets handed out for sending")                                                                     \
    X(rcvd_pkts, "packets taken in")                                                                                   \
    X(sent_bytes, "payload bytes of packets sent")                                                                     \
    X(rcvd_bytes, "payload bytes of packets accepted")                                                                 \
    X(duplicate_request, "requests with a PSN seen before")                                                            \
    X(out_of_seq_request, "requests with a PSN beyond the expected one")                                               \
    X(rcvd_rnr_err, "RNR NAKs received")                                                                               \
    X(send_rnr_err, "RNR NAKs sent")                                                                                   \
    X(rcvd_seq_err, "PSN sequence NAKs received")                                                                      \
    X(send_seq_err, "PSN sequence NAKs sent")                                                                          \
    X(acks_sent, "ACKs sent")                                                                                          \
    X(acks_rcvd, "ACKs received")                                                                                      \
    X(old_acks, "ACKs for what was already acknowledged")                                                              \
    X(ack_coalesced, "ACK requests that were answered by the ACK of a later packet")                                   \
    X(naks_sent, "other NAKs sent (invalid request, access, operation)")                                               \
    X(naks_rcvd, "other NAKs received")                                                                                \
    X(fast_retrans, "packets sent again after a sequence NAK or a gap in READ responses")                              \
    X(probe_retrans, "packets sent again by the tail probe")                                                           \
    X(timeout_retrans, "packets sent again after the QP's timeout")                                                    \
    X(retry_exceeded_err, "QPs failed after retry_cnt timeouts")                                                       \
    X(retry_rnr_exceeded_err, "QPs failed after rnr_retry RNR NAKs")                                                   \
    X(window_full, "times a QP had something to send and no window")                                                   \
    X(max_sent_window, "most packets that a QP had unacknowledged")                                                    \
    X(max_rcvd_window, "farthest that a request was ahead of the expected one, in packets")                            \
    X(peer_window_full, "times the bytes in flight to a peer's socket were at their limit")                            \
    X(np_ecn_marked_roce_packets, "packets received with ECN congestion experienced")                                  \
    X(np_cnp_sent, "congestion notification packets sent")                                                             \
    X(rp_cnp_handled, "congestion notification packets received")                                                      \
    X(flow_probes_sent, "flow probes sent: have the datagrams before it been taken in?")                               \
    X(flow_answers_sent, "flow probes and connectivity checks answered")                                               \
    X(flow_answers_rcvd, "flow probes that were answered")                                                             \
    X(rx_unknown_qp, "packets dropped: no such QP")                                                                    \
    X(rx_time_wait, "duplicates for a destroyed QP, acknowledged once more")                                           \
    X(rx_bad_state, "packets dropped: QP not ready to receive")                                                        \
    X(rx_bad_pkey, "packets dropped: P_Key")                                                                           \
    X(rx_bad_source, "packets dropped: source address is not the QP's peer")                                           \
    X(rx_bad_opcode, "packets dropped: opcode is not of the QP's service")                                             \
    X(rx_bad_response, "responses dropped: they answer nothing that was asked")                                        \
    X(rx_bad_qkey, "datagrams dropped: Q_Key")                                                                         \
    X(rx_no_recv, "UC messages and datagrams dropped: no receive request")                                             \
    X(rx_refused, "UC packets and datagrams dropped: not allowed, too long, or of a message given up")                 \
    X(xrc_refused, "XRC requests refused: no SRQ of that number in the domain")                                        \
    X(events_dropped, "asynchronous events dropped: too many at once")                                                 \
    X(local_errors, "work requests that failed locally")                                                               \
    X(mem_faults, "copies from or to client memory that failed")                                                       \
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
