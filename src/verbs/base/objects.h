// SPDX-License-Identifier: BSD-2-Clause
/* The library's objects. Each begins with the public structure of the verbs API that applications hold pointers to.
 *
 * Locks, in the order in which they may be nested: a CQ's lock (two CQs: the lower address first), a QP's queue
 * locks or an SRQ's lock or a CQ's notify_lock, the context's lock, the session's lock. Posting takes one queue's or SRQ's lock, polling one
 * CQ lock (and for a request of an SRQ that one's); the rest is control path. */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "pumice/abi.h"
#include "src/verbs/abi/verbs_v45.h"

/* Marks what the shared object exports: all else is hidden (-fvisibility=hidden), and the version script only names
 * versions. */
#define VB_EXPORT __attribute__((visibility("default")))
/* Binds the local function impl to the old version of a public symbol. */
#define VB_SYMVER(impl, name, version) __asm__(".symver " #impl ", " #name "@" version ", remove")

/* A connection to the daemon: one request under way at a time. */
struct vb_session {
    _Atomic int fd; /* -1: closed */
    pthread_mutex_t lock; /* held from request to reply */
};

/* A device as the daemon listed it. Other providers' code (mlx5dv, efadv) looks just past struct ibv_device to find
 * out whether a device is theirs: the zeros in slack say no. */
struct vb_device {
    struct ibv_device dev;
    uint8_t slack[4096];
    struct vb_device *next; /* in the process' list of devices */
    unsigned refs; /* lists and contexts that hold it; under the list's lock */
    char socket[108]; /* path of the daemon's control socket */
    uint32_t index; /* in the daemon's list */
    struct pm_device_desc desc;
};

/* A sparse array of pointers by handle or QP number (24 bits). Entries are written under the context's lock and read
 * without. */
#define VB_TABLE_BITS 12
#define VB_TABLE_SIZE (1u << VB_TABLE_BITS)
struct vb_table {
    _Atomic(void *) *_Atomic *root; /* VB_TABLE_SIZE leaves of VB_TABLE_SIZE entries, made when needed and kept */
};

struct vb_context {
    struct verbs_context vctx;
    struct vb_session session;
    struct pm_open_rep caps;
    struct pm_session_page *page; /* doorbells; NULL before the open succeeded */
    int doorbell_fd; /* eventfd that wakes the daemon */
    uint32_t generation; /* of the process that opened it, see fork.h */
    _Atomic bool gone; /* the daemon is: set once, never cleared */
    _Atomic uint64_t checked_at; /* ns, CLOCK_MONOTONIC: when an empty poll last asked whether the daemon lives */
    _Atomic uint64_t slow_until; /* ns: until then an empty poll sleeps instead of yielding */
    _Atomic uint64_t slow_for; /* ns: how long that was */
    _Atomic uint64_t backoff_ns; /* ns: how long the next such sleep is, at least */
    uint64_t probe; /* random value that the daemon reads at open to find a way to our memory */
    pthread_mutex_t lock; /* the tables, the event counts of QPs, CQs and SRQs, channel reference counts */
    struct vb_table qps, cqs, srqs; /* by number or handle */
    struct vb_table mrs; /* by the upper 24 bits of the lkey */
    struct vb_table mws; /* by the upper 24 bits of the rkey */
    _Atomic size_t dm_used; /* bytes of device memory */
    bool fatal_reported; /* IBV_EVENT_DEVICE_FATAL was delivered */
};

struct vb_pd {
    struct ibv_pd pd;
    struct vb_pd *parent; /* of a parent domain: the PD it stands for; else NULL */
    _Atomic uint32_t refs; /* objects of it, see vb_pd_hold; parent domains on it */
    /* Of a parent domain, the application's allocator: NULL if it gave none. */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
    void *alloc_context;
};

struct vb_mr {
    struct ibv_mr mr;
    uint64_t iova;
    uint32_t access; /* as the daemon has it */
    bool on_demand; /* IBV_ACCESS_ON_DEMAND */
    struct vb_dm *dm; /* device memory that it is of; else NULL */
};

/* Device memory: memory of this process that programs reach by copying only. */
#define VB_MAX_DM ((size_t)1 << 20) /* bytes that a context may have of it */
struct vb_dm {
    struct ibv_dm dm;
    uint8_t *base;
    size_t length;
    _Atomic uint32_t refs; /* memory regions of it */
};

struct vb_ah {
    struct ibv_ah ah;
    struct pm_av av;
};

struct vb_channel {
    struct ibv_comp_channel channel;
    uint32_t handle;
};

struct vb_mw {
    struct ibv_mw mw;
    uint32_t max_entries; /* of layouts; 0: none */
    _Atomic uint32_t key; /* of the newest bind that was posted and, as far as is known, not refused */
    /* Under the context's lock: */
    uint32_t binds; /* number of the newest bind that was posted; they count from 1 */
    uint32_t undone; /* one was refused, and those posted up to this one need not be looked at any more */
    const struct vb_qp *binder; /* where the newest one was posted */
};

struct vb_xrcd {
    struct ibv_xrcd xrcd;
    uint32_t handle;
};

struct vb_qp;
struct vb_link { /* a QP in the list of a CQ; under the CQ's lock */
    struct vb_link *next, **pprev;
    struct vb_qp *qp;
};

struct vb_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    pthread_mutex_t lock; /* all below, except the event counts */
    bool unlocked; /* IBV_CREATE_CQ_ATTR_SINGLE_THREADED: the application serialises */
    bool extended; /* made by ibv_create_cq_ex */
    bool overruns; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the daemon may overwrite what was not read */
    pthread_mutex_t
        notify_lock; /* for who only arms, since a CQ may be armed while it is polled. What follows, up to mask, is
                               * replaced under both and the context's lock */
    struct pm_cq_page *page;
    struct pm_cqe *entries;
    size_t size; /* bytes mapped at page */
    uint32_t mask; /* slots - 1 */
    uint32_t doorbell; /* rung when completions wait that an event is wanted for; PM_DOORBELLS: without a channel */
    _Atomic unsigned char notify_state; /* enum vb_notify_state */
    uint32_t consumer; /* index of the next completion to read */
    struct pm_cqe now; /* extended polling: the completion that the read functions speak of (without data) */
    struct vb_link *senders, *receivers; /* QPs whose send or receive completions come here */
    struct vb_srq *srqs; /* those of XRC and of tag matching whose completions come here, by next_of_cq */
    uint32_t comp_events, async_events; /* delivered; under the context's lock */
    const void *_Atomic poller; /* stands for the thread that polled last in vain; only compared (wait.c) */
    _Atomic uint64_t shared_until; /* ns, CLOCK_MONOTONIC: until then other threads are thought to poll it, too */
};

/* A send or receive queue. */
struct vb_queue {
    pthread_mutex_t lock; /* ring entries at and behind tail, tail */
    uint8_t *ring;
    uint32_t mask; /* slots - 1 */
    uint32_t stride; /* bytes per slot */
    uint32_t max_wr; /* requests that may be outstanding */
    uint32_t max_sge; /* per request */
    uint32_t tail; /* index of the next request */
    _Alignas(64) _Atomic uint32_t
        head; /* requests before it are done and polled. Release by the poller after its last look at the
                                           slots, acquire by the poster before it writes them again */
};

/* What the poller needs of a request of an SRQ, by its cookie; max_sge SGEs follow it. */
struct vb_srq_req {
    uint32_t next; /* while free: the next free cookie, VB_SRQ_NONE at the list's end; while outstanding: VB_SRQ_OUT or
                    * VB_SRQ_REPORTED */
    uint32_t num_sge;
    uint64_t wr_id;
    struct pm_sge sge[];
};
#define VB_SRQ_NONE UINT32_MAX
#define VB_SRQ_OUT (UINT32_MAX - 1)
#define VB_SRQ_REPORTED (UINT32_MAX - 2) /* the daemon is dead, and had completed it: that waits in some CQ */

struct vb_srq {
    struct ibv_srq srq;
    enum ibv_srq_type type;
    uint32_t srqn; /* XRC: its number on the wire */
    struct vb_cq *cq; /* XRC, tag matching: where its completions go; else NULL */
    struct vb_srq *next_of_cq; /* under the CQ's lock */
    struct vb_tm *tm; /* tag matching: its list; else NULL */
    _Atomic uint32_t users; /* queue pairs that receive from it */
    uint32_t doorbell;
    pthread_mutex_t lock; /* all below, except the event count */
    struct pm_srq_page *page;
    size_t size; /* bytes mapped at page */
    uint8_t *ring;
    uint32_t mask, stride; /* slots - 1, bytes per slot */
    uint32_t tail; /* index of the next request */
    uint32_t max_wr, max_sge;
    uint32_t outstanding; /* requests that were posted and not polled; at most max_wr */
    uint8_t *reqs; /* capacity requests, see vb_srq_req */
    size_t req_size; /* bytes of each */
    uint32_t capacity; /* cookies there are: max_wr, or what it was before a resize downwards */
    uint32_t free; /* first free cookie */
    bool sifted; /* the daemon is dead: what is VB_SRQ_REPORTED has been found out */
    uint32_t flush_at; /* the daemon is dead: the cookie to look at next */
    uint32_t async_events; /* delivered; under the context's lock */
};

/* The copy of a layout that a bind request points to. */
struct vb_layout {
    struct vb_layout *next; /* of the request posted after it */
    uint32_t index; /* of the request in the send queue */
    struct pm_layout desc;
};

struct vb_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
        struct vb_qp_ex_later later;
    };
    struct vb_queue sq, rq;
    struct vb_layout *layouts,
        **layouts_end; /* of binds that may not be done, oldest first; under the send queue's lock */
    struct pm_qp_page *page;
    size_t size; /* bytes mapped at page */
    uint32_t doorbell;
    struct ibv_qp_cap cap; /* granted */
    uint8_t type_bit; /* VB_TYPE_*, see post.h */
    bool has_rq; /* it has a receive queue of its own */
    bool sig_all;
    bool extended; /* created with send_ops_flags */
    bool no_sends; /* its send queue belongs to the tag matching offload (a strict profile) */
    struct vb_link send_link, recv_link;
    struct vb_qp *twin; /* XRC target: the next handle of the same QP in this context; under the context's lock */
    uint32_t async_events; /* delivered; under the context's lock */
    uint32_t turn; /* XRC target: events that its handles had before it was made, so that each gets its own */
    /* Building by ibv_wr_*, under the send queue's lock from wr_start to wr_complete or wr_abort: */
    uint32_t wr_next; /* index behind the requests built so far */
    struct pm_send_wqe *wr_wqe; /* the request that the setters speak of; NULL after a failure */
    int wr_error; /* first failure, errno value */
};

/* ::ffff:a.b.c.d? */
static inline bool vb_gid_is_v4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

#define VB_OF(type, member, ptr) ((type *)((char *)(ptr)-offsetof(type, member)))
static inline struct vb_context *vb_ctx(struct ibv_context *c)
{
    return VB_OF(struct vb_context, vctx.context, c);
}
static inline struct vb_device *vb_dev(struct ibv_device *d)
{
    return VB_OF(struct vb_device, dev, d);
}
static inline struct vb_cq *vb_cq(struct ibv_cq *c)
{
    return VB_OF(struct vb_cq, cq, c);
}
static inline struct vb_cq *vb_cq_ex(struct ibv_cq_ex *c)
{
    return VB_OF(struct vb_cq, ex, c);
}
static inline struct vb_qp *vb_qp(struct ibv_qp *q)
{
    return VB_OF(struct vb_qp, qp, q);
}
static inline struct vb_qp *vb_qp_ex(struct ibv_qp_ex *q)
{
    return VB_OF(struct vb_qp, ex, q);
}
static inline struct vb_pd *vb_pd(struct ibv_pd *p)
{
    return VB_OF(struct vb_pd, pd, p);
}
static inline struct vb_srq *vb_srq(struct ibv_srq *s)
{
    return VB_OF(struct vb_srq, srq, s);
}
static inline struct vb_mr *vb_mr(struct ibv_mr *m)
{
    return VB_OF(struct vb_mr, mr, m);
}
static inline struct vb_ah *vb_ah(struct ibv_ah *a)
{
    return VB_OF(struct vb_ah, ah, a);
}
static inline struct vb_xrcd *vb_xrcd(struct ibv_xrcd *x)
{
    return VB_OF(struct vb_xrcd, xrcd, x);
}

/* A lock of the fast path: held for some tens of instructions, so a contender spins a little before it sleeps. */
static inline void vb_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &a);
    pthread_mutexattr_destroy(&a);
}

/* Entry for key, NULL if none. Safe without lock as long as the object itself can't go away. */
static inline void *vb_table_get(const struct vb_table *t, uint32_t key)
{
    if (key >> (2 * VB_TABLE_BITS))
        return NULL;
    _Atomic(void *) *leaf = atomic_load_explicit(&t->root[key >> VB_TABLE_BITS], memory_order_acquire);
    return leaf ? atomic_load_explicit(&leaf[key & (VB_TABLE_SIZE - 1)], memory_order_acquire) : NULL;
}

/* 0 or -ENOMEM. */
int vb_table_init(struct vb_table *t);
void vb_table_fini(struct vb_table *t);
/* Sets the entry for key; NULL removes it and never fails. Under the context's lock. 0, -ENOMEM, or -EPROTO if key
 * exceeds 24 bits. */
int vb_table_set(struct vb_table *t, uint32_t key, void *value);

#endif
