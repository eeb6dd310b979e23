// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: the matching list of a TM-SRQ and its synchronization with the program (rows A1-A46).
 *
 * This module consumes messages, never packets; it knows neither QPs nor queues. Its user, the responder, hands it the
 * beginning of each SEND (tm_decide), sees whether the decision can be carried out (is there a buffer, room for
 * completions?), and if so makes it true (tm_commit). A decision that is not committed leaves no trace: the message
 * comes again and is decided anew. What a committed message holds, a struct tm_rx, is given back exactly once, by
 * tm_done or tm_drop.
 *
 *     program:  tm_op                                          ADD, DEL, SYNC, in the order of posting
 *     network:  tm_decide, [tm_refuse | tm_commit ... tm_done | tm_commit ... tm_drop]
 *
 * The synchronization in short. hw_cnt counts the unexpected messages that were delivered, sw_cnt is what the program
 * last said that it has seen of them, both modulo 2^16; inflight are unexpected messages that are decided and not yet
 * delivered. In sync is: hw_cnt == sw_cnt and inflight == 0. An entry that is appended while in sync is active at once,
 * else pending: the program may hold an older message that must have it. Whenever the state becomes in sync all pending
 * entries become active. So the active entries are a prefix of the list, and stay active whatever happens.
 *
 * Handles are given out by who posts, since the verbs API wants them at once: the low TM_SLOT_BITS bits are the
 * entry's slot, below max_num_tags; the others a generation that changes with each use of the slot, so that a DEL that
 * comes too late meets nobody. The poster uses a slot again when all completions of its last use were polled (the
 * ADD's if it was signaled; then the last receive completion or a successful DEL's). That is the whole of the rule
 * that max_num_tags bounds entries that are consumed and not yet polled: the engine only refuses slots that are in
 * use.
 *
 * Time may be 0 where the caller has none; the trace then has the latest that was told. */
#ifndef PUMICE_CORE_TM_H
#define PUMICE_CORE_TM_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/types.h"
#include "wire/tmh.h"

/* --- limits ------------------------------------------------------------------------------------------------------ */

#define TM_MAX_TAGS 4095u
#define TM_MAX_OPS 8192u
#define TM_MAX_SGE 16u
#define TM_MAX_RNDV_HDR 256u /* the smallest path MTU: a rendezvous request is always a single packet */
#define TM_SLOT_BITS 12
#define TM_SLOT(handle) ((handle) & ((1u << TM_SLOT_BITS) - 1))
#define TM_SYNC_REQ_AHEAD 0x3fffu /* more unexpected messages than this without a report: SYNC_REQ (row A18) */

/* How strict the device is (row G11). */
enum tm_profile_id {
    TM_PROFILE_GENEROUS = 0,
    TM_PROFILE_MLX5, /* as ConnectX adapters are */
    TM_PROFILES,
};
struct tm_profile {
    const char *name; /* in configuration files */
    uint32_t max_num_tags, max_ops, max_sge; /* capabilities */
    uint32_t max_rndv_hdr; /* bytes of a rendezvous request, all headers and metadata included */
    uint32_t min_buffers; /* untagged buffers that must have been posted before the first message is taken; 0: none */
    bool owns_send_queue; /* programs may not post sends to the QPs of a TM-SRQ */
};
/* NULL: there is no such profile. */
const struct tm_profile *tm_profile(enum tm_profile_id id);

/* --- life -------------------------------------------------------------------------------------------------------- */

struct tm_params {
    uint32_t max_num_tags; /* entries, 1 ... the profile's bound */
    uint32_t max_ops; /* outstanding operations, 1 ... the profile's bound; who queues them keeps to it */
    uint32_t trace_slots; /* events that are remembered; 0 or a power of two, at most 1 << 20 */
    uint8_t profile; /* enum tm_profile_id */
};
struct tag_list; /* opaque */

/* Bytes of zeroed, 64-byte aligned memory that tm_init wants; 0: the parameters break a bound. */
size_t tm_size(const struct tm_params *p);
/* mem stays the caller's, who frees it after the last call: nothing else has to be undone, entries vanish without
 * completions (row A4). NULL: the parameters break a bound. */
struct tag_list *tm_init(void *mem, const struct tm_params *p);

const struct tm_profile *tm_profile_of(const struct tag_list *tm);

/* --- the matching list ------------------------------------------------------------------------------------------- */

enum tm_entry_state {
    TM_FREE = 0,
    TM_LISTED, /* active or pending */
    TM_CONSUMED, /* matched; its data are arriving */
};
struct tm_entry;
/* What a message holds between tm_commit and tm_done or tm_drop; all zeros: nothing. May be copied, if the copied one is
 * forgotten. */
struct tm_rx {
    uint8_t holds; /* private: enum tm_holds */
    uint8_t kind; /* enum tm_kind */
    uint8_t action; /* enum tm_action */
    uint32_t qpn;
    struct tm_entry *entry; /* the matched one: its SGEs are valid until tm_done or tm_drop. NULL: unexpected */
    struct tmh tmh; /* TM_KIND_EAGER, TM_KIND_RNDV */
    struct rvh rvh; /* TM_KIND_RNDV */
};

struct mask_class;
struct tm_entry {
    struct list_node order; /* in the list, in the order of posting */
    struct list_node chain; /* in its bucket; likewise */
    struct mask_class *class; /* of all entries with this mask */
    uint64_t seq; /* number of the ADD that made it */
    uint64_t tag, mask; /* matches a message if (its tag & mask) == tag (row A10) */
    uint64_t recv_wr_id;
    uint64_t posted; /* when, ns */
    uint32_t handle;
    uint32_t capacity; /* bytes of all SGEs, at most ENGINE_MAX_MSG */
    uint8_t state; /* enum tm_entry_state */
    uint8_t num_sge;
    struct sge *sge; /* num_sge of them */

    /* For the user while the entry is consumed; this module doesn't look at them. */
    struct list_node job; /* of rendezvous that wait */
    struct tm_rx rx; /* of the message, when its QP is busy with others already */
    uint32_t srqn;
    bool solicited;
};

/* The listed entries in the order of posting: the one after e, or the first if e is NULL; NULL: no more. */
const struct tm_entry *tm_next_entry(const struct tag_list *tm, const struct tm_entry *e);
/* Does this listed entry take messages? */
bool tm_is_active(const struct tag_list *tm, const struct tm_entry *e);

/* --- operations -------------------------------------------------------------------------------------------------- */

enum tm_opcode { /* enum ibv_ops_wr_opcode */
                 TM_ADD = 0,
                 TM_DEL = 1,
                 TM_SYNC = 2,
};
enum tm_op_flags { /* enum ibv_ops_flags */
                   TM_OP_SIGNALED = 1 << 0,
                   TM_OP_SYNC = 1 << 1,
};
struct tm_op {
    uint64_t wr_id; /* of the operation; the owner's, as slot is: they come back in the completion */
    uint32_t slot;
    uint64_t tag, mask, recv_wr_id; /* ADD */
    uint32_t unexpected_cnt; /* if TM_OP_SYNC is set, or the opcode is SYNC; taken modulo 2^16 (0.4, 0.5) */
    uint32_t handle; /* ADD, DEL */
    uint8_t opcode; /* enum tm_opcode */
    uint8_t flags; /* enum tm_op_flags */
    uint8_t num_sge; /* ADD; 0 is legal */
    const struct sge *sge; /* ADD: num_sge of them, copied */
};
struct tm_op_result {
    bool complete; /* there is a completion to be reported */
    uint8_t status; /* enum wc_status */
    uint8_t opcode; /* enum wc_opcode */
    uint8_t flags; /* enum wc_flags: WC_TM_SYNC_REQ or none */
    uint8_t why; /* enum tm_reason of an error */
};
/* Carries out one operation at once. A DEL whose entry is consumed or gone is WC_TM_ERR if signaled and silent if not
 * (row A12). An ADD that breaks the rules of slots or SGEs, which no honest poster sends, is always completed with
 * WC_TM_ERR, and no receive completion follows. */
void tm_op(struct tag_list *tm, const struct tm_op *op, struct tm_op_result *result, uint64_t now);

/* Says that n more untagged buffers were posted; only a profile's min_buffers asks for it. May come between tm_decide
 * and tm_commit. */
void tm_buffers_posted(struct tag_list *tm, uint32_t n);

/* --- messages ---------------------------------------------------------------------------------------------------- */

enum tm_kind {
    TM_KIND_NO_TAG, /* TMH_NO_TAG, and messages of no bytes (row A21) */
    TM_KIND_FIN,
    TM_KIND_GARBAGE, /* unknown operation, or shorter than its headers (row A23) */
    TM_KIND_EAGER,
    TM_KIND_RNDV,
};

/* What is to be done with a message. */
enum tm_action {
    TM_ACT_WAIT, /* RNR: the device has not been given the buffers that the profile asks for */
    TM_ACT_REFUSE, /* NAK invalid request, the QP fails */
    TM_ACT_BUFFER, /* the whole message goes to an untagged buffer; RNR if there is none */
    TM_ACT_EAGER, /* what follows the TMH goes to the entry's SGEs */
    TM_ACT_OVERFLOW, /* likewise, but it is longer than they are: length error, NAK invalid request, the QP fails */
    TM_ACT_READ, /* RDMA READ of rvh to the entry's SGEs, then FIN */
    TM_ACT_FIN, /* a rendezvous of 0 bytes: FIN at once */
    TM_ACT_INCOMPLETE, /* the whole request goes to the entry's SGEs, as far as they reach: the program goes on */
    TM_ACTIONS,
};

/* X(name, short name, what is to be said to people). */
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
    const uint8_t *data; /* the message's first packet, or all that there is of it */
    uint32_t len; /* bytes there */
    bool whole; /* that is all of it */
    bool can_read; /* the QP's max_rd_atomic is not 0 */
    uint32_t qpn; /* for the trace */
};
struct tm_decision {
    uint8_t action; /* enum tm_action */
    uint8_t kind; /* enum tm_kind */
    uint8_t why; /* enum tm_reason: of not matching, or of the way the match goes */
    bool whole; /* the message's */
    uint32_t qpn; /* the message's */
    struct tm_entry *entry; /* the one that matches; NULL: none does */
    uint32_t other; /* TM_WHY_PENDING, _PENDING_INFLIGHT and _MASK: handle of the entry meant */
    uint32_t depth; /* comparisons that it took */
    struct tmh tmh; /* zeros if there is none */
    struct rvh rvh; /* TM_KIND_RNDV */
    uint64_t version; /* of the list that was decided on */
};
/* Decides, and changes nothing. */
void tm_decide(const struct tag_list *tm, const struct tm_msg *m, struct tm_decision *d);
/* The message can't be taken now (RNR), or never (TM_ACT_REFUSE): goes to the trace, nothing else changes. */
void tm_refuse(struct tag_list *tm, const struct tm_decision *d, uint64_t now);
/* Makes the decision true. No other call that changes tm may come between tm_decide and tm_commit. */
void tm_commit(struct tag_list *tm, const struct tm_decision *d, struct tm_rx *rx, uint64_t now);
/* The message has arrived whole and well. For an unexpected one it counts now; the flags (WC_TM_SYNC_REQ or none)
 * belong on its completion. For a matched one the entry's slot is free again; call it when the last completion for the
 * entry is made (after the READ, for a rendezvous). rx holds nothing afterwards. Does nothing if rx holds nothing. */
uint8_t tm_done(struct tag_list *tm, struct tm_rx *rx, uint64_t now);
/* The message will never be delivered: its QP died, or its buffer was bad. Not counted (row A20). */
void tm_drop(struct tag_list *tm, struct tm_rx *rx, uint64_t now);
/* An unexpected message was delivered, but its completion turned into an error before the program could see it: the
 * count is taken back. */
void tm_uncount(struct tag_list *tm, uint64_t now);

/* The completion of a message that was dealt with by this action (rows A24-A35): opcode and flags of the completion
 * when it is decided (first) and when it is all there (last); if the message is whole at once, there is one completion
 * with what is in `whole`. A flags of 0 in `first` means that there is no completion then. */
struct tm_wc {
    uint8_t opcode; /* enum wc_opcode; NO_TAG, FIN and garbage have WC_TM_NO_TAG instead */
    uint8_t status; /* enum wc_status of the last completion */
    uint8_t first, last, whole; /* enum wc_flags */
};
extern const struct tm_wc tm_wc_table[TM_ACTIONS];
/* enum wc_opcode of the last completion. */
uint8_t tm_wc_opcode(uint8_t action, uint8_t kind);

/* --- what it looks like ------------------------------------------------------------------------------------------ */

/* Names as UCX's statistics have them, where it has them. X(name, what it counts). */
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
    uint32_t active, pending; /* entries listed */
    uint32_t consumed; /* entries matched whose data are arriving */
    uint32_t masks; /* distinct masks of listed entries */
    uint32_t max_num_tags, max_ops;
    uint8_t profile; /* enum tm_profile_id */
    bool in_sync;
    struct tm_counters counters;
};
void tm_info(const struct tag_list *tm, struct tm_info *info);

/* X(name, short name). */
/* clang-format off */
#define TM_EVENTS(X)                                                                                                   \
    X(ADD, "add")                                                                                                      \
    X(DEL, "del")                                                                                                      \
    X(SYNC, "sync")                                                                                                    \
    X(REFUSED_OP, "bad-op")       /* an operation that broke a rule */                                                 \
    X(ACTIVATE, "activate")       /* pending entries became active; entries: how many */                               \
    X(UNCOUNT, "uncount")         /* a message that was delivered is taken back */                                     \
    X(MATCH, "match")             /* from here on it is about messages */                                              \
    X(UNEXPECTED, "unexpected")   /* decided so */                                                                     \
    X(WAIT, "rnr")                /* put off: there was no buffer; once, however often it comes */                     \
    X(REFUSE, "refuse")                                                                                                \
    X(DELIVER, "deliver")         /* an unexpected message is all there */                                             \
    X(COMPLETE, "complete")       /* a matched message is all there */                                                 \
    X(DROP, "drop")               /* a message died */
/* clang-format on */
enum tm_event_type {
#define X(name, brief) TM_EV_##name,
    TM_EVENTS(X)
#undef X
        TM_EVENT_COUNT,
};
/* One line of the trace. The counters are as they were after it. */
struct tm_event {
    uint64_t time; /* ns */
    uint64_t tag; /* ADD, messages with a TMH */
    uint64_t mask; /* ADD */
    uint32_t qpn; /* messages */
    uint32_t handle; /* ADD, DEL; messages: the entry that matched, or the one that why speaks of. TM_NO_HANDLE: none */
    uint32_t entries; /* ACTIVATE: entries that became active; messages: comparisons made */
    uint32_t inflight;
    uint16_t hw_cnt, sw_cnt;
    uint8_t type; /* enum tm_event_type */
    uint8_t why; /* enum tm_reason */
    uint8_t kind; /* messages: enum tm_kind */
    uint8_t action; /* messages: enum tm_action */
    uint8_t flags; /* operations: enum tm_op_flags; DELIVER: enum wc_flags */
    bool active; /* ADD: it became active at once */
};
#define TM_NO_HANDLE UINT32_MAX

/* Events are numbered from 0 on. The number of the next one to come. */
uint64_t tm_trace_end(const struct tag_list *tm);
/* Event number n; false: it is too old, or has not been. */
bool tm_trace_get(const struct tag_list *tm, uint64_t n, struct tm_event *ev);

/* Static strings; "?" for what does not exist. */
const char *tm_event_name(uint8_t type);
const char *tm_kind_name(uint8_t kind);
const char *tm_reason_name(uint8_t why);
const char *tm_reason_text(uint8_t why);

#endif
