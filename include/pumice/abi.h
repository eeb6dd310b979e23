// SPDX-License-Identifier: BSD-2-Clause
/* The one contract between the client library (src/verbs), the command (src/cmd) and the daemon: control messages on
 * a Unix socket, and rings in shared memory.
 *
 * Trust. The daemon trusts nothing that stands in memory which a client can write: it loads an index once, copies an
 * entry once, and validates the copy. Clients trust the daemon. The daemon keeps no state of its own in these
 * segments.
 *
 * Handles (pd, cq, channel, …) are numbers that the daemon gives out; they mean something only within the session
 * that got them. Numbers that exist in the verbs API (opcodes, states, attribute masks, access flags, event types,
 * statuses) have the verbs API's values.
 *
 * Versioning. PM_ABI_VERSION changes with any change of layout or meaning; daemon and client must have the same. */
#ifndef PUMICE_ABI_H
#define PUMICE_ABI_H

#include <stdatomic.h>
#include <stdint.h>

#define PM_ABI_VERSION 5u

/* --- names in the environment --------------------------------------------------------------------------------------- */
#define PM_ENV_SOCKET "PUMICE_SOCKET" /* path of the control socket; default: the first that is there of */
/* $XDG_RUNTIME_DIR/pumice/pumiced.sock, /run/pumice/pumiced.sock and, if the directory is the */
/* user's own, /tmp/pumice-UID/pumiced.sock */
#define PM_ENV_LAB                                                                                                     \
    "PUMICE_LAB" /* directory of a lab of several hosts: host0.sock, host1.sock, … in it; wins over PUMICE_SOCKET */
#define PM_ENV_HOSTS "PUMICE_HOSTS" /* how many hosts the lab has */
#define PM_ENV_HOST "PUMICE_HOST" /* the host that this process is on; else its launcher's local rank mod hosts */
#define PM_ENV_VERBOSE "PUMICE_VERBOSE" /* not empty: the client library prints why the daemon refused a request */
#define PM_ENV_HUGE_PAGES "PUMICE_HUGE_PAGES" /* off: registered memory stays in small pages */
#define PM_SOCKET_NAME "pumiced.sock"
/* The control socket's path and this name a directory with infiniband/DEVICE/… and infiniband_verbs/uverbs_DEVICE/…,
 * which have what programs look for in /sys/class/infiniband and /sys/class/infiniband_verbs. */
#define PM_SYSFS_SUFFIX ".sysfs"

/* --- control messages ----------------------------------------------------------------------------------------------- */
/* A SOCK_SEQPACKET Unix socket. Each request is one message: struct pm_request with len bytes of payload, of the
 * struct named pm_<op>_req (none where no such struct is defined). Each gets exactly one reply: struct pm_reply, and
 * on success the payload pm_<op>_rep, with the file descriptors attached (SCM_RIGHTS) that its comment names, in
 * that order. A client has one request under way at a time. Closing the socket ends the session and frees everything
 * that belongs to it. A message that is not of this form ends the session. */

enum pm_op {
    PM_OP_LIST = 1, /* devices; the session stays unbound */
    PM_OP_STATUS, /* rep: fd[0] memfd with JSON text */
    PM_OP_FAULT, /* set the fault specification of all devices */
    PM_OP_SHUTDOWN, /* orderly end of the daemon; same uid or root only */
    PM_OP_OPEN, /* binds the session to a device; must precede all below */
    PM_OP_QUERY_PORT,
    PM_OP_QUERY_GID,
    PM_OP_ALLOC_PD,
    PM_OP_DEALLOC_PD,
    PM_OP_REG_MR,
    PM_OP_REREG_MR,
    PM_OP_DEREG_MR,
    PM_OP_CREATE_CHANNEL, /* completion channel; rep: fd[0] its read end */
    PM_OP_DESTROY_CHANNEL,
    PM_OP_CREATE_CQ, /* rep: fd[0] segment */
    PM_OP_RESIZE_CQ, /* rep: fd[0] new segment, which is used from PM_OP_SWITCH_CQ on; without that it is the daemon's until the next, or the CQ's end */
    PM_OP_DESTROY_CQ,
    PM_OP_CREATE_QP, /* rep: fd[0] segment */
    PM_OP_MODIFY_QP,
    PM_OP_QUERY_QP,
    PM_OP_DESTROY_QP,
    PM_OP_CREATE_SRQ, /* rep: fd[0] segment */
    PM_OP_MODIFY_SRQ, /* limit */
    PM_OP_RESIZE_SRQ, /* rep: fd[0] new segment, which is used from PM_OP_SWITCH_SRQ on */
    PM_OP_QUERY_SRQ,
    PM_OP_DESTROY_SRQ,
    PM_OP_MODIFY_CQ, /* moderation */
    PM_OP_OPEN_XRCD, /* req: fd[0] the file that names the domain, if pm_open_xrcd_req.has_fd */
    PM_OP_CLOSE_XRCD,
    PM_OP_OPEN_QP, /* a handle of another session's XRC target QP */
    PM_OP_ALLOC_MW,
    PM_OP_DEALLOC_MW,
    PM_OP_ATTACH_MCAST,
    PM_OP_DETACH_MCAST,
    PM_OP_TM, /* matching lists and their traces; the session stays unbound; rep: fd[0] memfd with JSON text */
    PM_OP_CAPTURE, /* copies a device's packets until the connection is closed; the session stays unbound; same uid or
                    * root only; rep: fd[0] segment, see abi_capture.h */
    PM_OP_CHECK, /* connectivity: sends a probe, or tells what became of one; the session stays unbound */
    PM_OP_LAYOUT, /* memory windows and where their bytes are; the session stays unbound; rep: fd[0] memfd with JSON text */
    PM_OP_COUNTER, /* the value of a port's counter; the session stays unbound */
    PM_OP_SWITCH_CQ, /* the second half of a resize: live entries move to the new segment */
    PM_OP_SWITCH_SRQ, /* likewise requests that were not read yet */
    PM_OP_MAX_, /* one past the last */
};

#define PM_MSG_MAX 4096 /* bytes of a request or reply, header included */
#define PM_FDS_MAX 4
#define PM_WHY_MAX 256 /* bytes of explanation in a failed reply, with the final 0 */

struct pm_request {
    uint32_t op; /* enum pm_op */
    uint32_t len; /* bytes of payload that follow */
};
struct pm_reply {
    int32_t status; /* 0 or -errno */
    uint32_t len; /* bytes of payload that follow; on failure a text for people, PM_WHY_MAX at most, or nothing */
};

#define PM_NAME_MAX 32
#define PM_DEVICES_MAX 16
struct pm_device_desc {
    char name[PM_NAME_MAX]; /* as ibv_get_device_name has it */
    uint64_t guid; /* node GUID, host order */
    uint8_t gid[16]; /* GID 0 */
    char netdev[PM_NAME_MAX]; /* the interface that has the address */
};
struct pm_list_rep {
    uint32_t abi_version; /* PM_ABI_VERSION of the daemon */
    uint32_t num;
    uint32_t pid; /* the daemon's */
    uint32_t reserved;
    struct pm_device_desc device[PM_DEVICES_MAX];
};

struct pm_fault_req {
    char spec[1024]; /* as --fault takes it; empty: none */
    uint64_t seed;
};

/* Opening. The request carries fd[0], the client's /proc/self/mem opened read-write, if it could be opened. probe_va
 * is the address of eight bytes in the client that hold probe_value: by reading them (and writing them back) the
 * daemon finds out which ways to the client's memory work. */
struct pm_open_req {
    uint32_t abi_version;
    uint32_t device; /* index in pm_list_rep */
    uint64_t probe_va;
    uint64_t probe_value;
};
enum pm_memory_path { /* how the daemon reaches the memory of a client */
                      PM_MEMORY_NONE,
                      PM_MEMORY_PROCESS_VM, /* process_vm_readv, process_vm_writev */
                      PM_MEMORY_PROC_MEM, /* the descriptor of /proc/self/mem */
};
struct pm_open_rep { /* fd[0] session page, fd[1] doorbell eventfd, fd[2] read end of the asynchronous events */
    struct pm_device_desc desc;
    uint32_t session; /* number, for status */
    uint32_t memory_path; /* enum pm_memory_path */
    uint64_t max_mr_size;
    uint64_t max_msg_size;
    uint64_t device_cap_flags; /* enum ibv_device_cap_flags */
    uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_ah;
    uint32_t max_inline;
    uint32_t max_rd_atomic; /* per QP, both directions */
    uint32_t max_srq, max_srq_wr, max_srq_sge, max_mw, max_xrcd; /* 0: not offered */
    uint32_t max_mcast_grp, max_mcast_qp_attach; /* groups on the device, QPs in a group */
    uint32_t hca_core_clock_khz; /* of completion timestamps */
    uint32_t ack_delay; /* local_ca_ack_delay: 4.096 us * 2^n */
    uint32_t tm_max_num_tags, tm_max_ops, tm_max_sge, tm_max_rndv_hdr; /* struct ibv_tm_caps */
    uint32_t tm_owns_sq; /* 1: programs may not post sends to the QPs of a TM-SRQ (a strict profile) */
    char fw_ver[32]; /* the daemon's version */
};

struct pm_query_port_rep {
    uint8_t state; /* enum ibv_port_state */
    uint8_t max_mtu, active_mtu; /* enum ibv_mtu */
    uint8_t active_width, active_speed; /* as struct ibv_port_attr */
    uint8_t phys_state;
    uint16_t pkey_tbl_len;
    uint32_t gid_tbl_len;
    uint32_t port_cap_flags;
    uint32_t max_msg_size;
    uint32_t ifindex; /* of the interface that has the address */
};

struct pm_query_gid_req {
    uint32_t index;
};
struct pm_query_gid_rep { /* -ENOENT: the entry is empty; -EINVAL: beyond gid_tbl_len */
    uint8_t gid[16];
    uint32_t ifindex;
    uint32_t type; /* enum ibv_gid_type: IBV_GID_TYPE_ROCE_V2 */
};

struct pm_handle { /* payload of all that name one object or return one */
    uint32_t handle;
};

struct pm_reg_mr_req { /* rep: pm_handle, which is lkey and rkey */
    uint32_t pd;
    uint32_t access; /* enum ibv_access_flags */
    uint64_t va;
    uint64_t length;
    uint64_t iova;
};
struct pm_rereg_mr_req { /* rep: none; the new values in full, unchanged ones included */
    uint32_t key;
    struct pm_reg_mr_req mr;
};

struct pm_create_cq_req {
    uint32_t cqe; /* entries wanted, at least */
    uint32_t channel; /* handle, 0: none */
    uint32_t comp_vector;
    uint32_t flags; /* enum ibv_create_cq_attr_flags */
};
struct pm_create_cq_rep {
    uint32_t handle;
    uint32_t slots; /* entries in the segment, a power of two */
    uint64_t size; /* bytes of the segment */
    uint32_t
        doorbell; /* slot in the session page, with a channel: ring for an event about what waits (pm_cq_page.arm) */
    uint32_t reserved;
};
/* Resizing takes two requests, so that a client which can't have the new segment (no descriptor, no address space) keeps
 * a queue that works: nothing changes before the second one, which comes once the segment is mapped. */
struct pm_resize_cq_req { /* -EINVAL: fewer than are live */
    uint32_t cq;
    uint32_t cqe;
};
struct pm_resize_cq_rep {
    uint32_t slots;
    uint32_t reserved;
    uint64_t size;
};
/* req: pm_handle. `arm` is carried over; entries [consumer, consumer + live) are at the same indexes modulo the new size.
 * -EINVAL: it was not resized, or more are live by now. */
struct pm_switch_cq_rep {
    uint32_t consumer; /* index from which the client goes on */
};

struct
    pm_modify_cq_req { /* an event after count completions or period us since the first of them, whichever is first; one of them 0: at once */
    uint32_t cq;
    uint16_t count, period;
};

struct pm_create_qp_req {
    uint32_t pd, send_cq, recv_cq, srq; /* srq: 0 none. XRC_SEND: recv_cq 0; XRC_RECV: all 0 */
    uint32_t xrcd; /* XRC_RECV; else 0 */
    uint32_t type; /* enum ibv_qp_type */
    uint32_t sq_sig_all;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};
struct pm_create_qp_rep {
    uint32_t qpn; /* also the handle */
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* granted, never less than asked */
    uint32_t doorbell; /* slot in the session page; XRC_RECV: there is nothing to ring for */
    uint32_t sq_slots, rq_slots; /* powers of two, at least max_send_wr and max_recv_wr; 0: no such queue */
    uint32_t sq_stride, rq_stride; /* bytes, multiples of 64 and 16 */
    uint32_t sq_offset, rq_offset; /* bytes from the start of the segment */
    uint64_t size; /* bytes of the segment */
};

struct pm_av { /* address vector */
    uint8_t dgid[16];
    uint32_t flow_label;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t sl;
};
struct pm_qp_attr {
    uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state; /* the verbs API's enums */
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
    uint16_t pkey_index;
    uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout,
        retry_cnt, rnr_retry;
    uint8_t reserved[3];
    struct pm_av av;
};
struct pm_modify_qp_req { /* rep: pm_handle, the state after it */
    uint32_t qpn;
    uint32_t mask; /* enum ibv_qp_attr_mask */
    struct pm_qp_attr attr;
};
struct pm_query_qp_rep {
    struct pm_qp_attr attr;
};

struct pm_open_qp_req { /* rep: pm_handle, the number again; -ENOENT: no target QP of that number in the domain */
    uint32_t xrcd;
    uint32_t qpn;
};

struct pm_create_srq_req {
    uint32_t pd;
    uint32_t type; /* enum ibv_srq_type: BASIC, XRC, TM */
    uint32_t xrcd; /* XRC; else 0 */
    uint32_t cq; /* XRC, TM; else 0 */
    uint32_t max_wr, max_sge;
    uint32_t limit;
    uint32_t max_num_tags, max_ops; /* TM; else 0 */
};
struct pm_create_srq_rep {
    uint32_t handle;
    uint32_t srqn; /* XRC: its number on the wire; else 0 */
    uint32_t max_wr, max_sge; /* granted, never less than asked */
    uint32_t slots, stride, offset; /* of the ring, as pm_create_qp_rep has them */
    uint32_t doorbell; /* slot in the session page; TM: for list operations, too */
    uint32_t ops_slots, ops_stride, ops_offset; /* TM: likewise of the ring of list operations; else 0 */
    uint64_t size; /* bytes of the segment */
};
struct pm_modify_srq_req {
    uint32_t srq;
    uint32_t limit; /* 0: disarms it; -EINVAL beyond max_wr */
};
struct pm_resize_srq_req { /* -EINVAL: fewer than are outstanding, or beyond the device's limit, or type TM */
    uint32_t srq;
    uint32_t max_wr;
};
/* For PM_OP_SWITCH_SRQ, req: pm_handle; rep: none. Requests that the daemon has not read yet are at the same indexes modulo
 * the new size then. -EINVAL: it was not resized, or more are outstanding by now. */
struct pm_resize_srq_rep {
    uint32_t max_wr, slots, stride, offset;
    uint64_t size;
};
struct pm_query_srq_rep {
    uint32_t max_wr, max_sge, limit;
};

/* rep: pm_handle, a new one with each call. With a file: -EAGAIN: there is no such domain, and no O_CREAT; -EINVAL: there
 * is one, and O_EXCL (row B2); -EBADF: no descriptor came, or one without an inode. Without: oflags must be O_CREAT alone,
 * else -EINVAL. */
struct pm_open_xrcd_req {
    uint32_t has_fd; /* 0: an anonymous domain */
    uint32_t oflags; /* O_CREAT, O_EXCL */
};

struct pm_alloc_mw_req { /* rep: pm_handle, its rkey, by which it is known from then on (the upper 24 bits) */
    uint32_t pd;
    uint32_t type; /* enum ibv_mw_type */
    uint32_t max_entries; /* of layouts that it may be bound to, at most PM_LAYOUT_ENTRIES; 0: it is an ordinary one */
};

/* Attach and detach; rep: none. Attaching twice counts once. -EINVAL: not a UD queue pair, not a group,
 * or (detach) it is no member; -ENOMEM: max_mcast_grp or max_mcast_qp_attach reached. */
struct pm_mcast_req {
    uint32_t qpn;
    uint8_t gid[16];
};

/* Sends a probe of the given size from a device to an address, or tells what has become of one that was sent before, or
 * neither. -ENODEV: no such device; -EINVAL: size out of range, or an address that the device can't reach (its family);
 * -EAGAIN: too many at once; -ENOENT: the probe is forgotten (a device remembers the last PM_CHECKS_MAX). */
#define PM_CHECKS_MAX 64
struct pm_check_req {
    uint32_t device;
    uint32_t size; /* bytes of payload, 24 ... 4096: send one; 0: don't */
    uint64_t id; /* of the probe to tell about, if size is 0; 0: none */
    uint8_t gid[16]; /* whom to send to; of what was heard, whom from */
};
enum pm_check_state {
    PM_CHECK_WAITING = 0,
    PM_CHECK_ANSWERED,
    PM_CHECK_TOO_LONG, /* a router (ICMP) or the own host says that it does not fit */
    PM_CHECK_ERROR, /* it could not be sent, or ICMP says that it did not arrive */
};
struct pm_check_rep {
    uint64_t id; /* the probe's */
    uint32_t state; /* enum pm_check_state */
    uint32_t error; /* errno, if it is PM_CHECK_ERROR */
    uint32_t mtu; /* PM_CHECK_TOO_LONG: what would fit, IP header included; 0: not known */
    uint32_t by_icmp; /* 1: somebody on the way said so */
    uint64_t rtt_ns; /* PM_CHECK_ANSWERED */
    uint8_t from[16]; /* who answered, or who on the way complained; zeroes: not known */
    uint64_t heard; /* probes that came from req.gid so far */
};

struct pm_tm_req {
    uint32_t events; /* of each trace, at most so many, the newest */
    uint32_t entries; /* of each list, at most so many, the oldest */
};

/* All windows that can be bound to layouts (key 0); or one window, by any key of its index, with its entries and up to `pieces`
 * pieces of the bytes [off, off + len) of its addresses. */
struct pm_layout_req {
    uint32_t key;
    uint32_t pieces; /* at most PM_LAYOUT_PIECES */
    uint64_t off;
    uint64_t len; /* beyond the window's end: to its end */
};
#define PM_LAYOUT_PIECES 4096

/* -ENODEV: no such device; -ENOENT: no such counter. */
struct pm_counter_req {
    char device[PM_NAME_MAX];
    char file[64]; /* that it has in sysfs, below ports/1: "counters/port_xmit_data" */
};
struct pm_counter_rep {
    uint64_t value;
};

/* Records in the read end of the asynchronous events, and of a completion channel. An event of an XRC target QP comes
 * once for each handle that the session has of it. */
struct pm_async_event {
    uint32_t type; /* enum ibv_event_type */
    uint32_t handle; /* qpn, cq handle, srq handle or port number */
};
struct pm_comp_event {
    uint32_t cq;
    uint32_t reserved;
};

/* --- shared memory -------------------------------------------------------------------------------------------------- */
/* Segments are memfds made by the daemon, sealed against shrinking and growing. Indexes run freely (mod 2^32); the
 * entry of index i is in slot i & (slots - 1). */

/* The session page: doorbells. To tell the daemon of new send requests, the client sets bit (d % 64) of bits[d / 64]
 * and then bit (d / 64 % 64) of summary[d / 64 / 64], both sequentially consistent, after its store to the ring's
 * tail; then, if `sleeping` reads 1, it exchanges it with 0 and if it was still 1 writes the eventfd. The daemon
 * clears a summary word, then the words, then reads the tails: so it sees the new tail, or the bit is set again. */
#define PM_DOORBELLS 49152 /* as many as a session may have queue pairs, SRQs and CQs */
/* And who waits for completions: polls that find nothing, while the daemon is awake, may but keep it from the processor that
 * it needs. So the client stores in `waiting` how many µs it wants to sleep, then looks at `sleeping`, and if that
 * is 0 sleeps on the futex `published`, with the value that it had before the queues were last found empty. After
 * completions the daemon adds PM_PUBLISHED to `published`, and if it is to end a sleep for another reason
 * PM_PATIENCE (which in the end carries into what counts completions: a wait too few, no harm); then it reads `waiting`, and
 * if that is not 0 makes it 0 and wakes the futex. All of it is sequentially consistent, so the sleep does not begin or is
 * ended. */
#define PM_PATIENCE 1u
#define PM_PUBLISHED 256u
struct pm_session_page {
    _Alignas(64) _Atomic uint32_t sleeping; /* daemon: 1 before it sleeps. client: 0 when it wakes it */
    _Alignas(64) _Atomic uint32_t published; /* daemon */
    _Atomic uint32_t cpu; /* daemon: the processor that the device's thread is on */
    _Alignas(64) _Atomic uint32_t waiting; /* client, and 0 by the daemon */
    _Alignas(64) _Atomic uint64_t summary[PM_DOORBELLS / 64 / 64];
    _Alignas(64) _Atomic uint64_t bits[PM_DOORBELLS / 64];
};

struct pm_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* Start of a QP's segment. The client alone writes sq_tail, rq_tail; the daemon alone writes rq_notify. How far the
 * daemon has read is not shown: a send slot is free again when its completion, or that of a later signaled request,
 * was polled; a receive slot when its completion was polled (its SGEs are needed until then, see pm_cqe.inline_len).
 * A change to RESET empties both rings: their heads move to the tails. */
struct pm_qp_page {
    _Alignas(64) _Atomic uint32_t sq_tail; /* next free index; stored with release order after the entries */
    _Alignas(
        64) _Atomic uint32_t rq_tail; /* likewise, but sequentially consistent, because rq_notify is read after it */
    _Alignas(64) _Atomic uint32_t rq_notify; /* 1: ring the doorbell for receive requests too (the QP is in ERR) */
};

enum pm_send_flags { /* enum ibv_send_flags */
                     PM_SEND_FENCE = 1,
                     PM_SEND_SIGNALED = 2,
                     PM_SEND_SOLICITED = 4,
                     PM_SEND_INLINE = 8,
};
/* 64 bytes, then in UD queue pairs a struct pm_av, then num_sge struct pm_sge, or inline_len bytes of data. */
struct pm_send_wqe {
    uint64_t wr_id;
    uint64_t remote_addr; /* WRITE, READ, atomics; BIND_MW: first byte */
    uint64_t
        compare_add; /* atomics; BIND_MW, FLUSH: length; ATOMIC_WRITE without SGEs: the eight bytes, as in memory */
    uint64_t
        swap; /* CAS; FLUSH: enum ibv_placement_type | enum ibv_selectivity_level << 8; BIND_MW: the client's own note */
    uint32_t rkey; /* BIND_MW: type 1: the window's rkey; type 2: the new one. Only its index counts for type 1 */
    uint32_t
        imm; /* immediate data as the application gave it (__be32), or the rkey to invalidate; BIND_MW: the rkey to come of type 1 (the last one that ibv_bind_mw returned, tag + 1), 0 for type 2 */
    uint32_t inline_len;
    uint32_t remote_qpn; /* UD */
    uint32_t remote_qkey; /* UD */
    uint32_t mr_key; /* BIND_MW: lkey of the region */
    uint32_t srqn; /* XRC: SRQ number; BIND_MW: enum ibv_access_flags of the window */
    uint8_t opcode; /* enum ibv_wr_opcode */
    uint8_t flags; /* enum pm_send_flags */
    uint8_t num_sge;
    uint8_t reserved;
};
_Static_assert(sizeof(struct pm_send_wqe) == 64, "send request header");

struct pm_recv_wqe { /* 16 bytes, then num_sge struct pm_sge */
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t wqe_index; /* SRQ: the client's number of the request, which comes back as pm_cqe.slot; else 0 */
};
_Static_assert(sizeof(struct pm_recv_wqe) == 16, "receive request header");

/* A bind to a layout (docs/layouts.md) is a BIND_MW with PM_BIND_LAYOUT among the access flags. Then remote_addr is where the
 * client has a struct pm_layout, private memory that stays until the request is done; compare_add its bytes, entries included;
 * mr_key 0. */
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

/* Start of an SRQ's segment; the ring of struct pm_recv_wqe is at the offset that the reply told. The client alone
 * writes tail. Requests of an SRQ complete out of order, so a slot says nothing about a request once the daemon has
 * read it: what the poller needs later (the SGEs, for inline data) the client keeps itself, under the request's
 * cookie. The ring can't overflow: what the daemon has not read has not completed, and no more than max_wr requests
 * are outstanding, from posting until their completions are polled. A request that a QP holds when it is reset or
 * destroyed goes back to the head of the SRQ: each one completes at last. notify is the daemon's: 1 asks the client to
 * ring the doorbell after storing tail.
 *
 * TM: the client alone writes ops_tail and rings the doorbell after that; the daemon alone writes ops_head, with release
 * order after it has carried out what is before it. So a client finds room. */
struct pm_srq_page {
    _Alignas(64) _Atomic uint32_t
        tail; /* next free index; stored after the entries, sequentially consistent, because notify is read after it */
    _Alignas(64) _Atomic uint32_t notify;
    _Alignas(64) _Atomic uint32_t ops_tail; /* next free index; stored with release order after the entries */
    _Alignas(64) _Atomic uint32_t ops_head; /* operations before it are done */
};

/* An operation on the matching list of a TM-SRQ: 64 bytes, then num_sge struct pm_sge. Handles are the client's: the low
 * PM_TM_SLOT_BITS bits are a slot below max_num_tags, the others a generation, different with each use of the slot.
 * The client uses a slot again when all completions of its last use were polled: the ADD's if it was signaled, and the
 * last receive completion or a successful DEL's; of an unsignaled DEL it learns by `deleted`. An operation that was
 * posted before a message was sent is carried out before the message is matched. */
enum pm_tm_op_flags { /* enum ibv_ops_flags */
                      PM_TM_OP_SIGNALED = 1,
                      PM_TM_OP_SYNC = 2,
};
#define PM_TM_SLOT_BITS 12
struct pm_tm_op {
    uint64_t wr_id;
    uint64_t recv_wr_id, tag, mask; /* ADD */
    uint32_t handle; /* ADD, DEL: the entry's; comes back as pm_cqe.slot */
    uint32_t unexpected_cnt; /* SYNC, and those with PM_TM_OP_SYNC */
    uint8_t opcode; /* enum ibv_ops_wr_opcode */
    uint8_t flags; /* enum pm_tm_op_flags */
    uint8_t num_sge; /* ADD */
    uint8_t reserved8;
    uint32_t deleted; /* unsignaled DEL, the daemon's, before ops_head moves: 1: the entry is gone without a match */
    uint32_t reserved[4];
};
_Static_assert(sizeof(struct pm_tm_op) == 64, "list operation header");

/* Start of a CQ's segment; the entries begin at PM_CQ_ENTRIES. */
enum pm_arm {
    PM_ARM_NONE,
    PM_ARM_SOLICITED, /* an event for the next solicited or failed completion */
    PM_ARM_ANY, /* an event for the next completion */
};
struct pm_cq_page {
    _Alignas(64) _Atomic uint32_t
        consumer; /* client: next index it will read; stored with release order after it has copied entries */
    _Alignas(64) _Atomic uint32_t
        arm; /* enum pm_arm; client: stored before its last look at seq, with a fence between; daemon: exchanged with NONE when it
              * sends the event: after it has added such a completion, or when the doorbell rang and any wait */
};
#define PM_CQ_ENTRIES 128u

enum pm_cqe_kind {
    PM_CQE_RECV = 1, /* slot is of the receive queue */
    PM_CQE_SOLICITED = 2,
    PM_CQE_TM = 4, /* of a TM-SRQ: stays when its QP is destroyed, because entries and counts depend on it */
    PM_CQE_TM_ENTRY = 8, /* slot is that of a matched entry of the list; tm is valid */
    PM_CQE_TM_OP = 16, /* a list operation; slot is its handle */
};
struct pm_cqe_tm { /* zeros unless wc_flags has IBV_WC_TM_MATCH */
    uint64_t tag; /* host order */
    uint32_t priv; /* likewise */
    uint32_t reserved;
};
/* An entry is valid for index i when seq, loaded with acquire order, equals (uint32_t)(i + 1); the daemon stores it
 * last, with release order. (A new segment is all zero, and index 2^32 - 1 is skipped by starting at 0 and never
 * reusing a slot before it was consumed: seq 0 is only met after a wrap, when the slot holds the older seq.) With
 * IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN the daemon overwrites what was not consumed: seq is then beyond the expected
 * one, and the client goes on from there. */
struct pm_cqe { /* 128 bytes */
    uint64_t wr_id;
    uint64_t timestamp; /* CLOCK_MONOTONIC, ns */
    uint32_t byte_len;
    uint32_t imm; /* immediate data (__be32 as on the wire), or the invalidated rkey */
    uint32_t qpn;
    uint32_t src_qp;
    uint32_t
        slot; /* free-running index of the request in its ring: it and all before it in the same send queue are done. SRQ: its cookie */
    uint32_t vendor_err;
    uint8_t status; /* enum ibv_wc_status */
    uint8_t opcode; /* enum ibv_wc_opcode */
    uint8_t wc_flags; /* enum ibv_wc_flags */
    uint8_t kind; /* enum pm_cqe_kind */
    uint16_t inline_len; /* bytes of data[] that the poller scatters to the SGEs of the receive request; 0: none */
    uint16_t reserved16;
    uint32_t srq; /* handle of the SRQ whose request it was; 0: the QP's own queue */
    uint32_t reserved[2];
    uint32_t seq; /* last word of the first cache line */
    union {
        uint8_t data[64];
        struct pm_cqe_tm tm; /* PM_CQE_TM_ENTRY */
    };
};
_Static_assert(sizeof(struct pm_cqe) == 128, "completion entry");

#endif
