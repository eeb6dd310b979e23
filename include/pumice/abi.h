// SPDX-License-Identifier: BSD-2-Clause
/* The contract between the client library (src/verbs), the command (src/cmd) and the daemon: control messages on a
 * Unix socket, and rings in shared memory.
 *
 * Trust. The daemon trusts nothing in memory that a client can write. It loads an index once, copies an entry once,
 * and validates the copy. Clients trust the daemon. The daemon keeps no state of its own in these segments.
 *
 * Handles (pd, cq, channel, …) are numbers that the daemon gives out. A handle is valid only in the session that got
 * it. Numbers that exist in the verbs API (opcodes, states, attribute masks, access flags, event types, statuses)
 * have the values of the verbs API.
 *
 * Versioning. PM_ABI_VERSION changes with any change of layout or meaning. Daemon and client must have the same
 * version. */
#ifndef PUMICE_ABI_H
#define PUMICE_ABI_H

#include <stdint.h>

#include "pumice/abi_rings.h"

#define PM_ABI_VERSION 12u

/* --- names in the environment ------------------------------------------------------------------ */
/* The path of the control socket. Default: the first of these that exists:
 * $XDG_RUNTIME_DIR/pumice/pumiced.sock, /run/pumice/pumiced.sock,
 * /tmp/pumice-UID/pumiced.sock (only if the user owns the directory). */
#define PM_ENV_SOCKET "PUMICE_SOCKET"
/* The directory of a lab of several hosts. It holds host0.sock, host1.sock, … It wins over PUMICE_SOCKET. */
#define PM_ENV_LAB "PUMICE_LAB"
/* The number of hosts in the lab. */
#define PM_ENV_HOSTS "PUMICE_HOSTS"
/* The host that this process is on. Default: the local rank that its launcher gives it, modulo the number of hosts. */
#define PM_ENV_HOST "PUMICE_HOST"
/* "1": each process sees one device of its daemon; the processes of a host take the devices in turn. */
#define PM_ENV_SPREAD "PUMICE_SPREAD"
/* "1": the client library starts a daemon if there is none (not in a lab). */
#define PM_ENV_AUTOSTART "PUMICE_AUTOSTART"
/* Not empty: the client library prints why the daemon refused a request. */
#define PM_ENV_VERBOSE "PUMICE_VERBOSE"
/* "1": datagram rsockets of librdmacm work, although they ask for what no RoCE device gives them. */
#define PM_ENV_DATAGRAM_RSOCKETS "PUMICE_DATAGRAM_RSOCKETS"
/* "off": registered memory stays in small pages. */
#define PM_ENV_HUGE_PAGES "PUMICE_HUGE_PAGES"
/* "off": the daemon does not map registered memory that the program shares by a file. */
#define PM_ENV_MAP_SHARED "PUMICE_MAP_SHARED"
#define PM_SOCKET_NAME "pumiced.sock"
/* The path of the control socket plus this suffix names a directory. It contains infiniband/DEVICE/… and
 * infiniband_verbs/uverbs_DEVICE/…: the files that programs expect in /sys/class/infiniband and
 * /sys/class/infiniband_verbs. And it contains misc/rdma_cm/…, as /sys/class/misc does. */
#define PM_SYSFS_SUFFIX ".sysfs"

/* --- control messages -------------------------------------------------------------------------- */
/* The control socket is a Unix socket of type SOCK_SEQPACKET. Each request is one message: struct pm_request, then
 * len bytes of payload, which are a struct pm_<op>_req (no payload if no such struct is defined). The daemon sends
 * exactly one reply for each request: struct pm_reply and, on success, the payload pm_<op>_rep. File descriptors are
 * attached (SCM_RIGHTS) as the comment of the operation says, in that order. A client has one request under way at a
 * time. When the socket is closed, the session ends and everything that belongs to it is freed. A message of any
 * other form ends the session. */

enum pm_op {
    PM_OP_LIST = 1, /* lists the devices; the session stays unbound */
    PM_OP_STATUS, /* rep: fd[0] memfd with JSON text */
    /* Sets the faults of all devices. Only for the daemon's own uid and root. */
    PM_OP_FAULT,
    /* Ends the daemon in an orderly way. Only for the daemon's own uid and root. */
    PM_OP_SHUTDOWN,
    /* Binds the session to a device. It must precede all operations below, except those marked "unbound". */
    PM_OP_OPEN,
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
    /* rep: fd[0] the new segment. It is used from PM_OP_SWITCH_CQ on. Without PM_OP_SWITCH_CQ the daemon keeps it
     * until the next resize or until the CQ is destroyed. */
    PM_OP_RESIZE_CQ,
    PM_OP_DESTROY_CQ,
    PM_OP_CREATE_QP, /* rep: fd[0] segment */
    PM_OP_MODIFY_QP,
    PM_OP_QUERY_QP,
    PM_OP_DESTROY_QP,
    PM_OP_CREATE_SRQ, /* rep: fd[0] segment */
    PM_OP_MODIFY_SRQ, /* sets the limit */
    /* rep: fd[0] the new segment. It is used from PM_OP_SWITCH_SRQ on. */
    PM_OP_RESIZE_SRQ,
    PM_OP_QUERY_SRQ,
    PM_OP_DESTROY_SRQ,
    PM_OP_MODIFY_CQ, /* sets the moderation */
    /* req: fd[0] the file that names the domain, if pm_open_xrcd_req.has_fd */
    PM_OP_OPEN_XRCD,
    PM_OP_CLOSE_XRCD,
    PM_OP_OPEN_QP, /* rep: a handle of another session's XRC target QP */
    PM_OP_ALLOC_MW,
    PM_OP_DEALLOC_MW,
    PM_OP_ATTACH_MCAST,
    PM_OP_DETACH_MCAST,
    /* Shows the matching lists and their traces. Unbound. rep: fd[0] memfd with JSON text */
    PM_OP_TM,
    /* Copies the packets of a device until the connection is closed. Unbound. Only for the daemon's own uid and root.
     * rep: fd[0] segment, see abi_capture.h */
    PM_OP_CAPTURE,
    /* Connectivity check: sends a probe, or reports the result of one. Unbound. */
    PM_OP_CHECK,
    /* Shows memory windows and where their bytes are. Unbound. rep: fd[0] memfd with JSON text */
    PM_OP_LAYOUT,
    /* Reads a counter of a port. Unbound. */
    PM_OP_COUNTER,
    /* The second half of a resize: live entries move to the new segment. */
    PM_OP_SWITCH_CQ,
    /* The second half of a resize: requests that the daemon has not read move to the new segment. */
    PM_OP_SWITCH_SRQ,
    PM_OP_CREATE_COMP_CNTR,
    PM_OP_DESTROY_COMP_CNTR, /* -EBUSY: it is attached to a QP */
    PM_OP_MODIFY_COMP_CNTR,
    PM_OP_ATTACH_COMP_CNTR,
    /* Connection management, see abi_cm.h. PM_OP_CM_OPEN is unbound. The others follow it on the same connection. */
    PM_OP_CM_OPEN,
    PM_OP_CM_CREATE_CHANNEL, /* rep: fd[0] the read end of a pipe */
    PM_OP_CM_HOLD_CHANNEL,
    PM_OP_CM_DROP_CHANNEL,
    PM_OP_CM_COMMAND,
    /* Tells how many processes have asked this before. Unbound. PM_ENV_SPREAD */
    PM_OP_TURN,
    PM_OP_MAX_, /* one past the last */
};

#define PM_MSG_MAX 4096 /* bytes of a request or reply, header included */
#define PM_FDS_MAX 4
#define PM_WHY_MAX 256 /* bytes of explanation in a failed reply, with the final NUL */

struct pm_request {
    uint32_t op; /* enum pm_op */
    uint32_t len; /* bytes of payload that follow */
};
struct pm_reply {
    int32_t status; /* 0 or -errno */
    /* Bytes of payload that follow. On failure: an explanation for the user, at most PM_WHY_MAX bytes, or nothing. */
    uint32_t len;
};

#define PM_NAME_MAX 32
#define PM_DEVICES_MAX 16
struct pm_device_desc {
    char name[PM_NAME_MAX]; /* as ibv_get_device_name returns it */
    uint64_t guid; /* node GUID, host order */
    uint8_t gid[16]; /* GID 0 */
    char netdev[PM_NAME_MAX]; /* the interface that has the device's address */
};
struct pm_list_rep {
    uint32_t abi_version; /* PM_ABI_VERSION of the daemon */
    uint32_t num;
    uint32_t pid; /* of the daemon */
    uint32_t reserved;
    struct pm_device_desc device[PM_DEVICES_MAX];
};

struct pm_turn_rep {
    uint32_t turn; /* modulo 2^32 */
};

struct pm_fault_req {
    char spec[1024]; /* in the syntax of --fault; empty: no faults */
    char script[2944]; /* lines of --script; empty: no script */
    uint64_t seed;
    uint64_t start_ns; /* CLOCK_MONOTONIC: when the times of the faults begin, at the latest now; 0: now */
    uint32_t host; /* the lines of the script that are for this host */
    uint32_t hosts; /* how many the lab has: lines for others are refused; 0: it is not known */
};

/* Opening a device. The request carries fd[0], the client's /proc/self/mem opened read-write, if the client could open
 * it, and fd[1], its /proc/self/maps. Without the second, the daemon takes all memory of the client for memory whose
 * pages come from a server, such as FUSE: a copy of it gets little time. probe_va is the address of eight bytes in the client that hold probe_value. The daemon reads them and writes them
 * back. So it finds out which ways to the client's memory work. */
struct pm_open_req {
    uint32_t abi_version;
    uint32_t device; /* index in pm_list_rep */
    uint64_t probe_va;
    uint64_t probe_value;
};
/* How the daemon reaches the memory of a client. */
enum pm_memory_path {
    PM_MEMORY_NONE,
    PM_MEMORY_PROCESS_VM, /* process_vm_readv, process_vm_writev */
    PM_MEMORY_PROC_MEM, /* the descriptor of /proc/self/mem */
};
/* Features that a device with a profile lacks. The library refuses them as the library of the adapter does. */
enum pm_absent {
    PM_ABSENT_UC = 1 << 0,
    PM_ABSENT_XRC = 1 << 1,
    PM_ABSENT_SRQ = 1 << 2,
    PM_ABSENT_SRQ_RESIZE = 1 << 3,
    PM_ABSENT_MW = 1 << 4,
    PM_ABSENT_ODP = 1 << 5,
    PM_ABSENT_FLUSH = 1 << 6, /* FLUSH and ATOMIC WRITE */
    PM_ABSENT_ATOMICS = 1 << 7,
    PM_ABSENT_MCAST = 1 << 8,
    PM_ABSENT_DM = 1 << 9, /* device memory */
    PM_ABSENT_TM = 1 << 10, /* tag matching */
    PM_ABSENT_QP_EX = 1 << 11, /* ibv_create_qp_ex */
    PM_ABSENT_QP_EX_KEYS = 1 << 12, /* ibv_wr_* functions that bind or invalidate keys */
    PM_ABSENT_CQ_EX = 1 << 13, /* ibv_create_cq_ex */
    PM_ABSENT_CQ_TIMES = 1 << 14, /* timestamps of completions */
    PM_ABSENT_CQ_MODERATION = 1 << 15,
    PM_ABSENT_REREG = 1 << 16, /* ibv_rereg_mr */
    PM_ABSENT_COMP_CNTR = 1 << 17,
};
/* How large the queues of a QP may be together, and how much inline data it is granted. */
enum pm_queue_rule {
    PM_QUEUE_OWN = 0, /* each limit for itself; all the room of a slot is granted */
    PM_QUEUE_MLX5, /* the requests of a send queue share 32,768 blocks of 64 bytes */
    PM_QUEUE_IRDMA, /* the requests of a queue share 32,768 blocks of 32 bytes; no more inline data than asked for */
    PM_QUEUE_AS_ASKED, /* no more inline data than asked for */
    PM_QUEUE_RXE, /* SGEs and inline data share the room of a request */
};

/* fd[0] session page, fd[1] doorbell eventfd, fd[2] read end of the pipe of asynchronous events */
struct pm_open_rep {
    struct pm_device_desc desc;
    uint32_t session; /* number of the session, as `pumice status` shows it */
    uint32_t memory_path; /* enum pm_memory_path */
    uint64_t max_mr_size;
    uint64_t max_msg_size;
    uint64_t device_cap_flags; /* enum ibv_device_cap_flags */
    uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_ah;
    uint32_t max_inline;
    uint32_t max_rd_atomic, max_init_rd_atomic; /* per QP, as responder and as requester */
    uint32_t max_srq, max_srq_wr, max_srq_sge, max_mw, max_xrcd; /* 0: not offered */
    uint32_t max_mcast_grp, max_mcast_qp_attach; /* groups of the device, QPs in one group */
    uint32_t hca_core_clock_khz; /* clock of the completion timestamps */
    uint32_t ack_delay; /* local_ca_ack_delay: the delay is 4.096 us * 2^n */
    uint32_t tm_max_num_tags, tm_max_ops, tm_max_sge, tm_max_rndv_hdr; /* struct ibv_tm_caps */
    /* 1: programs may not post sends to the QPs of a TM-SRQ (strict profile). */
    uint32_t tm_owns_sq;
    uint32_t unkind; /* enum unkind_kind: the part of it that is the client's */
    uint64_t unkind_seed;
    char fw_ver[32]; /* the version of the daemon */
    /* The following come from the profile of the device. */
    uint64_t page_size_cap;
    uint64_t max_dm_size; /* bytes of device memory of a context */
    uint32_t vendor_id, vendor_part_id, hw_ver;
    uint32_t max_queue_wr; /* requests that a queue of a QP can have; at least max_qp_wr */
    uint32_t max_sge_rd, max_res_rd_atom, max_pkeys;
    uint32_t atomic_cap; /* enum ibv_atomic_cap */
    uint32_t odp_rc, odp_uc, odp_ud, odp_xrc; /* enum ibv_odp_transport_cap_bits; all 0: all that Pumice has, or none */
    uint32_t max_cq_period; /* of CQ moderation; 0: there is none */
    uint32_t absent; /* enum pm_absent */
    uint32_t queue_rule; /* enum pm_queue_rule */
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
    uint32_t ifindex; /* the interface that has the device's address */
    uint32_t speed; /* of all lanes together, in units of 100 Mb/s; 0: the port is down */
};

struct pm_query_gid_req {
    uint32_t index;
};
/* -ENOENT: the entry is empty. -EINVAL: the index is not below gid_tbl_len. */
struct pm_query_gid_rep {
    uint8_t gid[16];
    uint32_t ifindex;
    uint32_t type; /* enum ibv_gid_type: IBV_GID_TYPE_ROCE_V2 */
};

/* Payload of all operations that name one object or return one. */
struct pm_handle {
    uint32_t handle;
};

/* rep: pm_handle, which is both lkey and rkey. If the memory is a shared mapping of a file in memory: fd[0] that file.
 * The daemon may then map it for reading. */
struct pm_reg_mr_req {
    uint32_t pd;
    uint32_t access; /* enum ibv_access_flags */
    uint64_t va;
    uint64_t length;
    uint64_t iova;
    /* With fd[0]: where the region begins in the file, and st_dev and st_ino of the file. */
    uint64_t file_offset, file_dev, file_ino;
};
/* rep: none. The request holds all values, also those that stay as they are. */
struct pm_rereg_mr_req {
    uint32_t key;
    struct pm_reg_mr_req mr;
};

struct pm_create_cq_req {
    uint32_t cqe; /* number of entries wanted, at least */
    uint32_t channel; /* handle; 0: none */
    uint32_t comp_vector;
    uint32_t flags; /* enum ibv_create_cq_attr_flags */
};
struct pm_create_cq_rep {
    uint32_t handle;
    uint32_t slots; /* entries in the segment, a power of two */
    uint64_t size; /* bytes of the segment */
    /* Slot in the session page, if the CQ has a channel. The client rings it to get an event for completions that
     * already wait (pm_cq_page.arm). */
    uint32_t doorbell;
    uint32_t reserved;
};
/* A resize takes two requests. PM_OP_RESIZE_CQ makes the new segment and changes nothing else. The client maps the new
 * segment, and then sends PM_OP_SWITCH_CQ. A client may be unable to map it (no descriptor, no address space). Then its
 * queue still works. */

/* -EINVAL: cqe is below the number of live entries. */
struct pm_resize_cq_req {
    uint32_t cq;
    uint32_t cqe;
};
struct pm_resize_cq_rep {
    uint32_t slots;
    uint32_t reserved;
    uint64_t size;
};
/* PM_OP_SWITCH_CQ has req: pm_handle. The daemon copies `arm` to the new segment. The live entries keep their indexes
 * [consumer, consumer + live), now modulo the new size. -EINVAL: the CQ was not resized, or more entries are live now
 * than the new segment holds. */
struct pm_switch_cq_rep {
    uint32_t consumer; /* the index from which the client continues */
};

/* The CQ sends an event after `count` completions, or `period` us after the first of them, whichever comes first. If
 * one of the two is 0, the CQ sends the event at once. */
struct pm_modify_cq_req {
    uint32_t cq;
    uint16_t count, period;
};

struct pm_create_qp_req {
    uint32_t pd, send_cq, recv_cq, srq; /* srq: 0 is none. XRC_SEND: recv_cq is 0. XRC_RECV: all are 0. */
    uint32_t xrcd; /* XRC_RECV; else 0 */
    uint32_t type; /* enum ibv_qp_type */
    uint32_t sq_sig_all;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};
struct pm_create_qp_rep {
    uint32_t qpn; /* also the handle */
    /* Granted; never less than requested. */
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    /* Slot in the session page. Not used for XRC_RECV, which has no queues. */
    uint32_t doorbell;
    /* Powers of two, at least max_send_wr and max_recv_wr. 0: the QP has no such queue. */
    uint32_t sq_slots, rq_slots;
    uint32_t sq_stride, rq_stride; /* bytes, multiples of 64 and 16 */
    uint32_t sq_offset, rq_offset; /* bytes from the start of the QP's part */
    uint64_t offset,
        size; /* the QP's part of the segment, in bytes; other parts are those of other QPs of the session */
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
/* rep: pm_handle, the state after the change */
struct pm_modify_qp_req {
    uint32_t qpn;
    uint32_t mask; /* enum ibv_qp_attr_mask */
    struct pm_qp_attr attr;
};
struct pm_query_qp_rep {
    struct pm_qp_attr attr;
};

/* rep: pm_handle, the QP number again. -ENOENT: the domain has no target QP of this number. */
struct pm_open_qp_req {
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
    uint32_t srqn; /* XRC: SRQ number on the wire; else 0 */
    uint32_t max_wr, max_sge; /* granted; never less than requested */
    uint32_t slots, stride, offset; /* of the ring of receive requests, as in pm_create_qp_rep */
    uint32_t doorbell; /* slot in the session page; TM: also for list operations */
    uint32_t ops_slots, ops_stride, ops_offset; /* TM: of the ring of list operations; else 0 */
    uint64_t size; /* bytes of the segment */
};
struct pm_modify_srq_req {
    uint32_t srq;
    uint32_t limit; /* 0 disarms the limit; -EINVAL: above max_wr */
};
/* -EINVAL: max_wr is below the number of outstanding requests, or above the device's limit, or the SRQ has type TM. */
struct pm_resize_srq_req {
    uint32_t srq;
    uint32_t max_wr;
};
/* PM_OP_SWITCH_SRQ has req: pm_handle; rep: none. After it, the requests that the daemon has not read yet are at the
 * same indexes, modulo the new size. -EINVAL: the SRQ was not resized, or more requests are outstanding now than the
 * new ring holds. */
struct pm_resize_srq_rep {
    uint32_t max_wr, slots, stride, offset;
    uint64_t size;
};
struct pm_query_srq_rep {
    uint32_t max_wr, max_sge, limit;
};

/* rep: pm_handle, a new one for each call. Errors with a file: -EAGAIN: the domain does not exist, and oflags has no
 * O_CREAT. -EINVAL: the domain exists, and oflags has O_EXCL. -EBADF: the request has no descriptor, or the descriptor
 * has no inode. Without a file, oflags must be exactly O_CREAT, else -EINVAL. */
struct pm_open_xrcd_req {
    uint32_t has_fd; /* 0: an anonymous domain */
    uint32_t oflags; /* O_CREAT, O_EXCL */
};

/* rep: pm_handle, the window's rkey. The upper 24 bits of it identify the window from then on. */
struct pm_alloc_mw_req {
    uint32_t pd;
    uint32_t type; /* enum ibv_mw_type */
    /* The most entries that a layout of this window may have, at most PM_LAYOUT_ENTRIES. 0: an ordinary window. */
    uint32_t max_entries;
};

/* For attach and detach; rep: none. Attaching twice counts once. -EINVAL: the QP is not of type UD, or the address is
 * not a multicast group, or (detach) the QP is not a member. -ENOMEM: max_mcast_grp or max_mcast_qp_attach is
 * reached. */
struct pm_mcast_req {
    uint32_t qpn;
    uint8_t gid[16];
};

/* rep: pm_handle. The values are in pm_session_page.comp_cntr[handle - 1], and begin at 0. -ENOMEM: the session has
 * PM_COMP_CNTRS counters. */
enum pm_comp_cntr_type { /* enum ibv_comp_cntr_type */
                         PM_COMP_CNTR_REQUESTS = 0,
                         PM_COMP_CNTR_BYTES = 1,
};
struct pm_create_comp_cntr_req {
    uint32_t type; /* enum pm_comp_cntr_type */
};
/* Changes a value. The reply comes after the new value is in the session page. */
struct pm_modify_comp_cntr_req {
    uint32_t comp_cntr;
    uint16_t entry; /* 0: done, 1: failed */
    uint16_t add; /* 0: sets the value, 1: adds to it */
    uint64_t value;
};
/* The counter counts these requests of the QP until the QP is destroyed. -EINVAL: the QP is neither in RESET nor in
 * INIT. -EBUSY: another counter counts some of them. -EOPNOTSUPP: an XRC target, or unknown bits. */
struct pm_attach_comp_cntr_req {
    uint32_t comp_cntr;
    uint32_t qpn;
    uint32_t ops; /* enum ibv_qp_attach_comp_cntr_op */
};

/* With size above 0: sends a probe of this size from a device to an address. With size 0 and id above 0: reports the
 * result of an earlier probe. With both 0: only reports `heard`. -ENODEV: no such device. -EINVAL: size is out of
 * range, or the device has no address of this family. -EAGAIN: too many probes at once. -ENOENT: the probe is no longer
 * known (a device remembers the last PM_CHECKS_MAX). */
#define PM_CHECKS_MAX 64
struct pm_check_req {
    uint32_t device;
    uint32_t size; /* bytes of payload, 24 … 4096: sends a probe; 0: sends none */
    uint64_t id; /* the probe to report, if size is 0; 0: none */
    uint8_t gid[16]; /* destination of the probe, and source of the probes counted in `heard` */
};
enum pm_check_state {
    PM_CHECK_WAITING = 0,
    PM_CHECK_ANSWERED,
    /* The probe is too long for the path: a router reported it by ICMP, or the kernel of this host did. */
    PM_CHECK_TOO_LONG,
    /* The probe could not be sent, or ICMP says that it did not arrive. */
    PM_CHECK_ERROR,
};
struct pm_check_rep {
    uint64_t id; /* of the probe */
    uint32_t state; /* enum pm_check_state */
    uint32_t error; /* errno if state is PM_CHECK_ERROR */
    uint32_t mtu; /* PM_CHECK_TOO_LONG: the size that would fit, with IP header; 0: not known */
    uint32_t by_icmp; /* 1: the verdict came by ICMP from a host on the path */
    uint64_t rtt_ns; /* PM_CHECK_ANSWERED */
    /* The address that answered, or the host on the path that sent the ICMP error. Zero: not known. */
    uint8_t from[16];
    uint64_t heard; /* number of probes that came from req.gid so far */
};

struct pm_tm_req {
    uint32_t events; /* at most this many of each trace, the newest */
    uint32_t entries; /* at most this many of each list, the oldest */
};

/* key 0: reports all windows that can be bound to layouts. Any other key: reports the window with this key's index and
 * its entries. It also reports up to `pieces` pieces of memory behind the window's addresses [off, off + len). */
struct pm_layout_req {
    uint32_t key;
    uint32_t pieces; /* at most PM_LAYOUT_PIECES */
    uint64_t off;
    uint64_t len; /* a range beyond the end of the window stops there */
};
#define PM_LAYOUT_PIECES 4096

/* -ENODEV: no such device; -ENOENT: no such counter. */
struct pm_counter_req {
    char device[PM_NAME_MAX];
    /* The path in sysfs below ports/1, for example "counters/port_xmit_data". */
    char file[64];
};
struct pm_counter_rep {
    uint64_t value;
};

/* The records that the daemon writes to the pipe of asynchronous events and to the pipe of a completion channel. For an
 * event of an XRC target QP, a session gets one record for each of its handles of the QP. */
struct pm_async_event {
    uint32_t type; /* enum ibv_event_type */
    uint32_t handle; /* qpn, CQ handle, SRQ handle or port number */
};
struct pm_comp_event {
    uint32_t cq;
    uint32_t reserved;
};

#endif
