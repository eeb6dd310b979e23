// SPDX-License-Identifier: BSD-2-Clause
/* The library's objects. Each begins with the public structure of the verbs API that applications hold pointers to.
 *
 * Locks, in the order in which they may be nested: a CQ's lock (two CQs: the lower address first), a QP's queue
 * locks, the context's lock, the session's lock. Posting takes one queue lock, polling one CQ lock; the rest is
 * control path. */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "pumice/abi.h"

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
    uint64_t probe; /* random value that the daemon reads at open to find a way to our memory */
    pthread_mutex_t lock; /* the tables, the event counts of QPs and CQs, channel reference counts */
    struct vb_table qps, cqs;
    bool fatal_told; /* IBV_EVENT_DEVICE_FATAL was delivered */
};

struct vb_pd {
    struct ibv_pd pd;
    struct vb_pd *parent; /* of a parent domain: the PD it stands for; else NULL */
    _Atomic uint32_t refs; /* parent domains on it */
};

struct vb_mr {
    struct ibv_mr mr;
    uint64_t iova;
    uint32_t access;
};

struct vb_ah {
    struct ibv_ah ah;
    struct pm_av av;
};

struct vb_channel {
    struct ibv_comp_channel channel;
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
    bool overruns; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: the daemon may overwrite what was not read */
    struct pm_cq_page *page;
    struct pm_cqe *entries;
    size_t size; /* bytes mapped at page */
    uint32_t mask; /* slots - 1 */
    uint32_t consumer; /* index of the next completion to read */
    struct pm_cqe now; /* extended polling: the completion that the read functions speak of (without data) */
    struct vb_link *senders, *receivers; /* QPs whose send or receive completions come here */
    uint32_t comp_events, async_events; /* delivered; under the context's lock */
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

struct vb_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
    };
    struct vb_queue sq, rq;
    struct pm_qp_page *page;
    size_t size; /* bytes mapped at page */
    uint32_t doorbell;
    struct ibv_qp_cap cap; /* granted */
    bool sig_all;
    bool extended; /* created with send_ops_flags */
    struct vb_link send_link, recv_link;
    uint32_t async_events; /* delivered; under the context's lock */
    /* Building by ibv_wr_*, under the send queue's lock from wr_start to wr_complete or wr_abort: */
    uint32_t wr_next; /* index behind the requests built so far */
    struct pm_send_wqe *wr_wqe; /* the request that the setters speak of; NULL after a failure */
    int wr_error; /* first failure, errno value */
};

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
