// SPDX-License-Identifier: BSD-2-Clause
/* The shared memory of the contract between the client library and the daemon (pumice/abi.h): the session page,
 * completion queues, matching lists, and the rings of QPs and SRQs. */
#ifndef PUMICE_ABI_RINGS_H
#define PUMICE_ABI_RINGS_H

#include <stdatomic.h>
#include <stdint.h>

struct pm_av { /* address vector */
    uint8_t dgid[16];
    uint32_t flow_label;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t sl;
};

/* --- shared memory ----------------------------------------------------------------------------- */
/* Segments are memfds that the daemon makes and seals against shrinking and growing. Indexes run freely (mod 2^32).
 * The entry of index i is in slot i & (slots - 1). */

/* The session page holds the doorbells. To announce new requests of the queue with doorbell d, the client first stores
 * the tail of the ring. With w = d / 64, it sets bit (d % 64) of bits[w], and after that bit (w % 64) of summary[w /
 * 64]. Both stores are sequentially consistent. Then it reads `sleeping`. If this is 1, the client exchanges it with 0.
 * If it was still 1, the client writes the eventfd. The daemon clears a summary word, then the words below it, then
 * reads the tails. So either the daemon sees the new tail, or the bit is set again. */
#define PM_DOORBELLS 98304 /* the most QPs, SRQs and CQs together that a session may have */
/* The session page also holds the state of clients that wait for completions. While the daemon is awake, a client that
 * polls again and again may keep the processor that the daemon needs. So the client sleeps:
 *
 * 1. The client stores in `waiting` how many µs it wants to sleep, and then reads `sleeping`.
 * 2. If `sleeping` is 0, the client sleeps on the futex `published`, with the value that it read before it last found
 *    the queues empty.
 * 3. After it has published completions, the daemon adds PM_PUBLISHED to `published`. To end a sleep for another
 *    reason, it adds PM_WAKE.
 * 4. Then the daemon reads `waiting`. If this is not 0, the daemon sets it to 0 and wakes the futex.
 *
 * Before the daemon sleeps, it ends all sleeps. A client with a timer of its own can ask the daemon to end its sleep
 * only for completions. It sets `waiting` from 0 to PM_WAITS_FOR_NEWS, whether the daemon sleeps or not. If `waiting` is
 * not 0, another thread of the client sleeps too, and the daemon will end both sleeps. (Earlier daemons take
 * PM_WAITS_FOR_NEWS for a long time.)
 *
 * All of these accesses are sequentially consistent. So either the sleep does not begin, or the daemon ends it. (The
 * low 8 bits of `published` count PM_WAKE, the other bits count publications. After 256 wakeups, the low bits carry
 * into the others. Then a client skips one sleep, which is harmless.) */
#define PM_WAKE 1u
#define PM_PUBLISHED 256u
#define PM_WAITS_FOR_NEWS UINT32_MAX
/* A completion counter. Only the daemon writes it, after the data of the counted requests is in memory. */
struct pm_comp_cntr {
    _Atomic uint64_t done, failed; /* stored with release order */
};
#define PM_COMP_CNTRS 1024 /* the most that a session may have */
/* Where the threads of the client that poll should be: on another processor than the daemon … */
#define PM_APART 1 /* … unless other programs compute there */
#define PM_AWAY 2 /* … in any case */
/* Where they should be: on the processor of the daemon … */
#define PM_BESIDE 1 /* … if they share theirs with another thread */
#define PM_BESIDE_CROWDED 2 /* … if the other thread computes all the time */
struct pm_session_page {
    /* The daemon stores 1 before it sleeps. The client that wakes it stores 0. */
    _Alignas(64) _Atomic uint32_t sleeping;
    _Alignas(64) _Atomic uint32_t published; /* written by the daemon */
    _Atomic uint32_t cpu; /* written by the daemon: the processor of the device's thread */
    /* Written by the daemon: PM_APART or PM_AWAY, PM_BESIDE or PM_BESIDE_CROWDED. 0: the threads of the client are well
     * where they are. Earlier daemons leave both 0. */
    _Atomic uint32_t apart, beside;
    /* Written by the daemon. 1: so many programs use the device that they crowd each other. Earlier daemons leave 0. */
    _Atomic uint32_t many;
    /* Written by the daemon: what a yield costs while nothing else runs, ns. 0: not known. Earlier daemons leave 0. */
    _Atomic uint32_t yield_ns;
    /* µs or PM_WAITS_FOR_NEWS, written by the client; the daemon sets it to 0 */
    _Alignas(64) _Atomic uint32_t waiting;
    /* Written by the daemon: when it last woke the threads that wait, ns of CLOCK_MONOTONIC. Earlier daemons leave 0. */
    _Atomic uint64_t woken_at;
    _Alignas(64) _Atomic uint64_t summary[PM_DOORBELLS / 64 / 64];
    _Alignas(64) _Atomic uint64_t bits[PM_DOORBELLS / 64];
    /* Completion counter n is comp_cntr[n - 1]. */
    _Alignas(64) struct pm_comp_cntr comp_cntr[PM_COMP_CNTRS];
};

struct pm_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Start of a QP's segment. Only the client writes sq_tail and rq_tail. Only the daemon writes rq_notify. The client
 * does not see how far the daemon has read. A send slot is free again when the client has polled the completion of its
 * request, or of a later signaled request. A receive slot is free again when the completion of its request was polled,
 * because the SGEs are needed until then (see pm_cqe.inline_len). A change to RESET empties both rings: their heads
 * move to the tails. */
struct pm_qp_page {
    _Alignas(64) _Atomic uint32_t sq_tail; /* next free index; stored with release order after the entries */
    /* Next free index. Stored sequentially consistent after the entries, because the client reads rq_notify after
     * it. */
    _Alignas(64) _Atomic uint32_t rq_tail;
    /* 1: the client rings the doorbell for receive requests too: the QP is in the error state, or its peer waits for them
     * (end-to-end credits). */
    _Alignas(64) _Atomic uint32_t rq_notify;
};

/* enum ibv_send_flags */
enum pm_send_flags {
    PM_SEND_FENCE = 1,
    PM_SEND_SIGNALED = 2,
    PM_SEND_SOLICITED = 4,
    PM_SEND_INLINE = 8,
};
/* 64 bytes, then for UD QPs a struct pm_av, then num_sge struct pm_sge or inline_len bytes of data. */
struct pm_send_wqe {
    uint64_t wr_id;
    uint64_t remote_addr; /* WRITE, READ, atomics; BIND_MW: address of the first byte */
    /* Atomics: compare or add operand. BIND_MW and FLUSH: length. ATOMIC_WRITE without SGEs: the eight bytes as they
     * are in memory. */
    uint64_t compare_add;
    /* CAS: swap operand. FLUSH: enum ibv_placement_type | enum ibv_selectivity_level << 8. BIND_MW: a note of the
     * client, for its own use. */
    uint64_t swap;
    /* BIND_MW of type 1: the window's rkey, of which only the index counts. BIND_MW of type 2: the new rkey. */
    uint32_t rkey;
    /* Immediate data as the application gave it (__be32), or the rkey to invalidate. BIND_MW of type 1: the new rkey
     * (the last one that ibv_bind_mw returned, with its tag plus 1). BIND_MW of type 2: 0. */
    uint32_t imm;
    uint32_t inline_len;
    uint32_t remote_qpn; /* UD */
    uint32_t remote_qkey; /* UD */
    uint32_t mr_key; /* BIND_MW: lkey of the region */
    uint32_t srqn; /* XRC: SRQ number; BIND_MW: access of the window (enum ibv_access_flags) */
    uint8_t opcode; /* enum ibv_wr_opcode */
    uint8_t flags; /* enum pm_send_flags */
    uint8_t num_sge;
    uint8_t reserved;
};
_Static_assert(sizeof(struct pm_send_wqe) == 64, "send request header");

/* 16 bytes, then num_sge struct pm_sge. */
struct pm_recv_wqe {
    uint64_t wr_id;
    uint32_t num_sge;
    /* SRQ: the number that the client gave to the request. It comes back as pm_cqe.slot. Other queues: 0; with an unkind
     * device, the time of the post, in us of CLOCK_MONOTONIC. */
    uint32_t wqe_index;
};
_Static_assert(sizeof(struct pm_recv_wqe) == 16, "receive request header");

/* A bind to a layout (docs/layouts.md) is a BIND_MW with PM_BIND_LAYOUT among the access flags. Then remote_addr is
 * the address of a struct pm_layout in the client's private memory, which must stay there until the request is done.
 * compare_add is the number of its bytes, entries included. mr_key is 0. */
#define PM_BIND_LAYOUT (1u << 30)
#define PM_LAYOUT_ENTRIES 1024
#define PM_LAYOUT_DIMS 8
#define PM_LAYOUT_DEPTH 8
struct pm_layout_entry {
    uint32_t key; /* of the memory region (lkey) or window (rkey) */
    uint32_t ndim; /* 0: contiguous */
    uint64_t addr, length, repeat;
    struct {
        uint64_t stride, count;
    } dim[PM_LAYOUT_DIMS];
};
struct pm_layout {
    uint32_t type; /* 0: composite, 1: interleaved */
    uint32_t count;
    struct pm_layout_entry entry[];
};

/* Start of an SRQ's segment. The ring of struct pm_recv_wqe is at the offset that the reply gives. Only the client
 * writes tail.
 *
 * Requests of an SRQ complete out of order. So the slot of a request may be used again as soon as the daemon has read
 * it. The client keeps its own copy of the SGEs under the request's wqe_index, since the poller needs them for inline
 * data.
 *
 * The ring can't overflow. A request is outstanding from the post until its completion is polled, and at most max_wr
 * requests are outstanding. A request that the daemon has not read is one of them. A QP that is reset or destroyed
 * gives the request that it holds back to the head of the SRQ. So each request completes in the end. Only the daemon
 * writes notify: 1 asks the client to ring the doorbell after it has stored tail.
 *
 * TM: only the client writes ops_tail, and it rings the doorbell after that. Only the daemon writes ops_head, with
 * release order, after it has executed the operations before it. So a client sees which slots of the ring are free. */
struct pm_srq_page {
    /* Next free index. Stored sequentially consistent after the entries, because the client reads notify after it. */
    _Alignas(64) _Atomic uint32_t tail;
    _Alignas(64) _Atomic uint32_t notify;
    _Alignas(64) _Atomic uint32_t ops_tail; /* next free index; stored with release order after the entries */
    _Alignas(64) _Atomic uint32_t ops_head; /* all operations before this index are done */
};

/* enum ibv_ops_flags */
enum pm_tm_op_flags {
    PM_TM_OP_SIGNALED = 1,
    PM_TM_OP_SYNC = 2,
};
#define PM_TM_SLOT_BITS 12
/* An operation on the matching list of a TM-SRQ: 64 bytes, then num_sge struct pm_sge.
 *
 * The client chooses the handles. The low PM_TM_SLOT_BITS bits are a slot below max_num_tags. The other bits are a
 * generation, which differs for each use of the slot. The client may use a slot again when it has polled all
 * completions of the last use. These are the completion of a signaled ADD, and either the last receive completion or
 * the completion of a successful DEL. The result of an unsignaled DEL is in `deleted`.
 *
 * If an operation was posted before a message was sent, the daemon executes the operation before it matches the
 * message. */
struct pm_tm_op {
    uint64_t wr_id;
    uint64_t recv_wr_id, tag, mask; /* ADD */
    /* ADD, DEL: handle of the entry. It comes back as pm_cqe.slot. */
    uint32_t handle;
    uint32_t unexpected_cnt; /* SYNC, and operations with PM_TM_OP_SYNC */
    uint8_t opcode; /* enum ibv_ops_wr_opcode */
    uint8_t flags; /* enum pm_tm_op_flags */
    uint8_t num_sge; /* ADD */
    uint8_t reserved8;
    /* Unsignaled DEL: the daemon writes 1 before it moves ops_head, if the entry was deleted without a match. */
    uint32_t deleted;
    uint32_t reserved[4];
};
_Static_assert(sizeof(struct pm_tm_op) == 64, "list operation header");

/* Start of a CQ's segment. The entries begin at PM_CQ_ENTRIES. */
enum pm_arm {
    PM_ARM_NONE,
    PM_ARM_SOLICITED, /* event for the next solicited or failed completion */
    PM_ARM_ANY, /* event for the next completion */
};
struct pm_cq_page {
    /* Written by the client: the next index that it will read. Stored with release order after it has copied
     * entries. */
    _Alignas(64) _Atomic uint32_t consumer;
    /* enum pm_arm. The client stores it before its last look at seq, with a fence between. The daemon exchanges it with
     * PM_ARM_NONE when it sends the event. It sends the event after it has added such a completion, or when the
     * doorbell rang and completions wait. */
    _Alignas(64) _Atomic uint32_t arm;
};
#define PM_CQ_ENTRIES 128u

enum pm_cqe_kind {
    PM_CQE_RECV = 1, /* slot belongs to the receive queue */
    PM_CQE_SOLICITED = 2,
    /* Completion of a TM-SRQ. It stays in the CQ when its QP is destroyed, because the client frees list entries and
     * counts operations by it. */
    PM_CQE_TM = 4,
    /* slot is the handle of a matched list entry; tm is valid */
    PM_CQE_TM_ENTRY = 8,
    PM_CQE_TM_OP = 16, /* completion of a list operation; slot is its handle */
};
/* All zero unless wc_flags has IBV_WC_TM_MATCH. */
struct pm_cqe_tm {
    uint64_t tag; /* host order */
    uint32_t priv; /* host order */
    uint32_t reserved;
};
/* The entry of index i is valid when seq, loaded with acquire order, equals (uint32_t)(i + 1). The daemon stores seq
 * last, with release order.
 *
 * A new segment is all zero, and indexes start at 0. For index 2^32 - 1 the expected seq is 0. By then the slot holds
 * the seq of an older entry, so the zeros of a new segment are never taken for an entry.
 *
 * With IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN the daemon overwrites entries that were not consumed. Then seq is beyond the
 * expected value, and the client continues from there. */
struct pm_cqe { /* 128 bytes */
    uint64_t wr_id;
    uint64_t timestamp; /* CLOCK_MONOTONIC, ns */
    uint32_t byte_len;
    /* Immediate data (__be32, as on the wire), or the invalidated rkey. */
    uint32_t imm;
    uint32_t qpn;
    uint32_t src_qp;
    /* Free-running index of the request in its ring. Send queue: this request and all before it in the same queue are
     * done. SRQ: the request's wqe_index. */
    uint32_t slot;
    uint32_t vendor_err;
    uint8_t status; /* enum ibv_wc_status */
    uint8_t opcode; /* enum ibv_wc_opcode */
    uint8_t wc_flags; /* enum ibv_wc_flags */
    uint8_t kind; /* enum pm_cqe_kind */
    /* Number of bytes in data[] that the poller copies to the SGEs of the receive request. 0: none. */
    uint16_t inline_len;
    uint16_t reserved16;
    /* Handle of the SRQ that the request came from. 0: the QP's own receive queue. */
    uint32_t srq;
    uint32_t reserved[2];
    uint32_t seq; /* the last word of the first cache line */
    union {
        uint8_t data[64];
        struct pm_cqe_tm tm; /* PM_CQE_TM_ENTRY */
    };
};
_Static_assert(sizeof(struct pm_cqe) == 128, "completion entry");

#endif
