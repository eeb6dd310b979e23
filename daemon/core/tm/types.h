// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: the types of the matching list of a TM-SRQ. tag_list.h says how they go together. */
#ifndef PUMICE_DAEMON_CORE_TM_TYPES_H
#define PUMICE_DAEMON_CORE_TM_TYPES_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/types.h"
#include "wire/tmh.h"

/* --- limits ----------------------------------------------------------------------------------- */

#define TM_MAX_TAGS 4095u
#define TM_MAX_OPS 8192u
#define TM_MAX_SGE 16u
#define TM_MAX_RNDV_HDR 256u /* the smallest path MTU, so a rendezvous request is always a single packet */
#define TM_SLOT_BITS 12
#define TM_SLOT(handle) ((handle) & ((1u << TM_SLOT_BITS) - 1))
/* With more unexpected messages than this without a report, completions have SYNC_REQ. */
#define TM_SYNC_REQ_AHEAD 0x3fffu

/* How strict the device is. */
enum tm_profile_id {
    TM_PROFILE_GENEROUS = 0,
    TM_PROFILE_MLX5, /* like ConnectX adapters */
    TM_PROFILES,
};
struct tm_profile {
    const char *name; /* name in configuration files */
    uint32_t max_num_tags, max_ops, max_sge; /* capabilities */
    /* Bytes of a rendezvous request, with all headers and metadata. */
    uint32_t max_rndv_hdr;
    /* Untagged buffers that must be posted before the first message is taken. 0: none. */
    uint32_t min_buffers;
    /* Programs may not post sends to the QPs of a TM-SRQ. */
    bool owns_send_queue;
};

struct tm_params {
    uint32_t max_num_tags; /* entries, 1 … the limit of the profile */
    /* Outstanding operations, 1 … the limit of the profile. The queue of operations enforces it. */
    uint32_t max_ops;
    /* Number of events in the trace. 0 or a power of two, at most 1 << 20. */
    uint32_t trace_slots;
    uint8_t profile; /* enum tm_profile_id */
};

struct tag_list; /* opaque, tag_list.h */

/* --- the matching list ------------------------------------------------------------------------ */

enum tm_entry_state {
    TM_FREE = 0,
    TM_LISTED, /* active or pending */
    TM_CONSUMED, /* matched; its data are arriving */
};
struct tm_entry;
/* The resources of a message between tm_commit and tm_done or tm_drop. All zero: none. It may be copied if the
 * original is not used any more. */
struct tm_rx {
    uint8_t holds; /* private: enum tm_holds */
    uint8_t kind; /* enum tm_kind */
    uint8_t action; /* enum tm_action */
    uint32_t qpn;
    /* The matched entry. Its SGEs are valid until tm_done or tm_drop. NULL: unexpected. */
    struct tm_entry *entry;
    struct tmh tmh; /* TM_KIND_EAGER, TM_KIND_RNDV */
    struct rvh rvh; /* TM_KIND_RNDV */
};

struct mask_class;
struct tm_entry {
    struct list_node order; /* in the list, in the order of posting */
    struct list_node chain; /* in its bucket, in the order of posting */
    struct mask_class *class; /* of all entries with this mask */
    uint64_t seq; /* number of its ADD */
    uint64_t tag, mask; /* matches a message if (its tag & mask) == tag */
    uint64_t recv_wr_id;
    uint64_t posted; /* time of the ADD, ns */
    uint32_t handle;
    uint32_t capacity; /* bytes of all SGEs, at most ENGINE_MAX_MSG */
    uint8_t state; /* enum tm_entry_state */
    uint8_t num_sge;
    struct sge *sge; /* [num_sge] */

    /* The following fields are for the user of the list while the entry is consumed. The modules of this folder do not
     * use them. */
    /* in requester.rndv (the rendezvous waits for a slot), or in engine.detached (its QP is gone) */
    struct list_node job;
    /* The resources of the message, while its QP receives other messages. */
    struct tm_rx rx;
    uint32_t srqn; /* in engine.detached: number of the SRQ */
    bool solicited; /* the message asked for a solicited event */
};

/* --- operations ------------------------------------------------------------------------------- */

/* As enum ibv_ops_wr_opcode. */
enum tm_opcode {
    TM_ADD = 0,
    TM_DEL = 1,
    TM_SYNC = 2,
};
/* As enum ibv_ops_flags. */
enum tm_op_flags {
    TM_OP_SIGNALED = 1 << 0,
    TM_OP_SYNC = 1 << 1,
};
struct tm_op {
    /* wr_id and slot are chosen by the owner and come back in the completion. */
    uint64_t wr_id;
    uint32_t slot;
    uint64_t tag, mask, recv_wr_id; /* ADD */
    /* If TM_OP_SYNC is set, or the opcode is SYNC. Taken modulo 2^16. */
    uint32_t unexpected_cnt;
    uint32_t handle; /* ADD, DEL */
    uint8_t opcode; /* enum tm_opcode */
    uint8_t flags; /* enum tm_op_flags */
    uint8_t num_sge; /* ADD; 0 is legal */
    const struct sge *sge; /* ADD: [num_sge], copied */
};
struct tm_op_result {
    bool complete; /* there is a completion to report */
    uint8_t status; /* enum wc_status */
    uint8_t opcode; /* enum wc_opcode */
    uint8_t flags; /* enum wc_flags: WC_TM_SYNC_REQ or none */
    uint8_t why; /* enum tm_reason of the error */
    bool odd_count; /* the reported count is one that a correct program can't send */
};

/* --- messages --------------------------------------------------------------------------------- */

enum tm_kind {
    TM_KIND_NO_TAG, /* TMH_NO_TAG, and empty messages */
    TM_KIND_FIN,
    TM_KIND_GARBAGE, /* unknown operation, or shorter than its headers */
    TM_KIND_EAGER,
    TM_KIND_RNDV,
};

/* How to handle a message. */
enum tm_action {
    /* RNR: the program has not posted the buffers that the profile requires. */
    TM_ACT_WAIT,
    TM_ACT_REFUSE, /* NAK invalid request; the QP fails */
    TM_ACT_BUFFER, /* the whole message goes to an untagged buffer; RNR if there is none */
    TM_ACT_EAGER, /* the bytes after the TMH go to the entry's SGEs */
    /* As TM_ACT_EAGER, but the message is longer than the SGEs: length error, NAK invalid request, the QP fails. */
    TM_ACT_OVERFLOW,
    TM_ACT_READ, /* RDMA READ of rvh to the entry's SGEs, then FIN */
    TM_ACT_FIN, /* a rendezvous of 0 bytes: FIN at once */
    /* The whole request goes to the entry's SGEs, as far as it fits. The program does the rest. */
    TM_ACT_INCOMPLETE,
    TM_ACTIONS,
};

/* X(name, short name, text for people). */
/* clang-format off */
#define TM_REASONS(X)                                                                                                  \
    X(NONE, "ok", "")                                                                                                  \
    X(NO_TAG, "no-tag", "it was sent without a tag")                                                                   \
    X(EMPTY, "empty", "it has no bytes, so no tag either")                                                             \
    X(FIN, "fin", "it says that a rendezvous is finished, which is the program's business")                            \
    X(SHORT, "short", "it is shorter than the headers that its operation asks for")                                    \
    X(UNKNOWN_OP, "unknown-op", "its header names an operation that does not exist")                                   \
    X(HEADER_TOO_LONG, "rndv-header-too-long", "a rendezvous request longer than max_rndv_hdr_size is refused")        \
    X(FEW_BUFFERS, "few-buffers", "the profile asks for more untagged buffers before the first message")               \
    X(NO_ENTRY, "no-entry", "the matching list was empty")                                                             \
    X(NO_MATCH, "no-match", "no entry of the matching list has its tag")                                               \
    X(MASK, "mask", "an entry would have its tag but for bits outside of the entry's own mask: it never matches")      \
    X(PENDING, "pending", "an entry has its tag but is pending: the program has not reported all unexpected messages") \
    X(PENDING_INFLIGHT, "pending-inflight", "an entry has its tag but is pending: an older message is still arriving") \
    X(BUFFER_TOO_SHORT, "buffer-too-short", "the entry's buffer is shorter than the data")                             \
    X(NO_READS, "no-reads", "the QP may not send RDMA READs: its max_rd_atomic is 0")                                  \
    X(CONSUMED, "consumed", "a message had matched the entry already")                                                 \
    X(STALE, "stale-handle", "the handle's entry is gone")                                                             \
    X(BAD_SLOT, "bad-slot", "the handle's slot is beyond max_num_tags")                                                \
    X(SLOT_TAKEN, "slot-taken", "the handle's slot is in use")                                                         \
    X(BAD_SGE, "bad-sge", "too many SGEs")                                                                             \
    X(BAD_OP, "bad-op", "there is no such operation")
/* clang-format on */
enum tm_reason {
#define X(name, brief, text) TM_WHY_##name,
    TM_REASONS(X)
#undef X
        TM_REASON_COUNT,
};

struct tm_msg {
    const uint8_t *data; /* the message's first packet */
    uint32_t len; /* bytes in data */
    bool whole; /* data is the whole message */
    bool can_read; /* the QP's max_rd_atomic is not 0 */
    uint32_t qpn; /* for the trace */
};
struct tm_decision {
    uint8_t action; /* enum tm_action */
    uint8_t kind; /* enum tm_kind */
    /* enum tm_reason: why there is no match, or why the match has this action. */
    uint8_t why;
    bool whole; /* from the message */
    uint32_t qpn; /* from the message */
    struct tm_entry *entry; /* the matching entry; NULL: none */
    /* TM_WHY_PENDING, _PENDING_INFLIGHT and _MASK: handle of the entry in question. */
    uint32_t other;
    uint32_t depth; /* number of comparisons */
    struct tmh tmh; /* all zero if there is none */
    struct rvh rvh; /* TM_KIND_RNDV */
    uint64_t version; /* version of the list at the decision */
};

/* --- for people ------------------------------------------------------------------------------- */

/* Names as in UCX's statistics, where UCX has the counter. X(name, what it counts). */
/* clang-format off */
#define TM_COUNTERS(X)                                                                                                 \
    X(list_add, "entries added")                                                                                       \
    X(list_del, "entries deleted")                                                                                     \
    X(list_del_late, "deletions that came too late, or named nothing")                                                 \
    X(list_sync, "SYNC operations")                                                                                    \
    X(list_refused, "operations that broke a rule")                                                                    \
    X(rx_exp, "eager messages that matched")                                                                           \
    X(rx_exp_rndv, "rendezvous requests that matched")                                                                 \
    X(rx_unexp_eager, "eager messages delivered as unexpected")                                                        \
    X(rx_unexp_rndv, "rendezvous requests delivered as unexpected")                                                    \
    X(rx_no_tag, "messages without a tag, FINs and garbage included")                                                  \
    X(rx_fin, "FINs received")                                                                                         \
    X(rx_garbage, "messages with an unknown operation, or shorter than their headers")                                 \
    X(rx_wait, "decisions that were put off, since there was no buffer")                                               \
    X(rx_refused, "messages that were refused")                                                                        \
    X(rx_dropped, "messages that died on their way, matched or not")                                                   \
    X(rndv_fin, "rendezvous that were finished by the offload")                                                        \
    X(sw_rndv, "matched rendezvous requests that were left to the program")                                            \
    X(activations, "times that pending entries became active")                                                         \
    X(sync_req, "completions that asked for synchronization")                                                          \
    X(odd_counts, "counts reported that went backwards, or ahead of what was delivered")                               \
    X(depth_sum, "comparisons of all decisions")                                                                       \
    X(depth_max, "most comparisons of one decision")
/* clang-format on */
struct tm_counters {
#define X(name, text) uint64_t name; /* text */
    TM_COUNTERS(X)
#undef X
};

struct tm_info {
    uint16_t hw_cnt, sw_cnt;
    uint32_t inflight; /* unexpected messages that are arriving */
    uint32_t active, pending; /* numbers of listed entries */
    uint32_t consumed; /* number of matched entries whose data are arriving */
    uint32_t masks; /* number of distinct masks of listed entries */
    uint32_t max_num_tags, max_ops;
    uint8_t profile; /* enum tm_profile_id */
    bool in_sync;
    struct tm_counters counters;
};

/* X(name, short name). */
/* clang-format off */
#define TM_EVENTS(X)                                                                                                   \
    X(ADD, "add")                                                                                                      \
    X(DEL, "del")                                                                                                      \
    X(SYNC, "sync")                                                                                                    \
    X(REFUSED_OP, "bad-op")       /* an operation that broke a rule */                                                 \
    X(ACTIVATE, "activate")       /* pending entries became active; entries: how many */                               \
    X(UNCOUNT, "uncount")         /* the count of a delivered message is taken back */                                 \
    X(MATCH, "match")             /* the following events are about messages */                                        \
    X(UNEXPECTED, "unexpected")   /* the message has matched no entry */                                               \
    X(WAIT, "rnr")                /* the message must wait for a buffer; repetitions are not traced */                 \
    X(REFUSE, "refuse")                                                                                                \
    X(DELIVER, "deliver")         /* an unmatched message has arrived completely */                                    \
    X(COMPLETE, "complete")       /* a matched message has arrived completely */                                       \
    X(DROP, "drop")               /* the message will never be delivered */
/* clang-format on */
enum tm_event_type {
#define X(name, brief) TM_EV_##name,
    TM_EVENTS(X)
#undef X
        TM_EVENT_COUNT,
};
/* One event of the trace. The counts are those after the event. */
struct tm_event {
    uint64_t time; /* ns */
    uint64_t tag; /* ADD, messages with a TMH */
    uint64_t mask; /* ADD */
    uint32_t qpn; /* messages */
    /* ADD, DEL: the entry. Messages: the entry that matched, or the one that `why` is about. TM_NO_HANDLE: none. */
    uint32_t handle;
    /* ACTIVATE: number of entries that became active. Messages: number of comparisons. */
    uint32_t entries;
    uint32_t inflight;
    uint16_t hw_cnt, sw_cnt;
    uint8_t type; /* enum tm_event_type */
    uint8_t why; /* enum tm_reason */
    uint8_t kind; /* messages: enum tm_kind */
    uint8_t action; /* messages: enum tm_action */
    uint8_t flags; /* operations: enum tm_op_flags; DELIVER: enum wc_flags */
    bool active; /* ADD: active at once */
};
#define TM_NO_HANDLE UINT32_MAX

#endif
