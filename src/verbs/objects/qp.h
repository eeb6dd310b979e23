// SPDX-License-Identifier: BSD-2-Clause
/* A queue pair: its two queues, its page of shared memory, and the batch that ibv_wr_* builds. The application owns it
 * from ibv_create_qp or ibv_open_qp to ibv_destroy_qp (control/create_qp.h). */
#ifndef PUMICE_SRC_VERBS_OBJECTS_QP_H
#define PUMICE_SRC_VERBS_OBJECTS_QP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/session/context.h"

struct vb_qp;
struct vb_layout;

/* A send queue or a receive queue: a ring in memory that the daemon reads. Indexes run freely modulo 2^32. */
struct vb_queue {
    pthread_mutex_t lock; /* of the tail, and of the slots from the tail on */
    uint8_t *ring;
    uint32_t mask; /* slots - 1 */
    uint32_t stride; /* bytes per slot */
    uint32_t max_wr; /* requests that may be outstanding */
    uint32_t max_sge; /* per request */
    uint32_t tail; /* index of the next request */
    /* Requests before this index are done and polled. The poller stores it with release order after its last look at
     * the slots. The poster loads it with acquire order before it writes them again. */
    _Alignas(64) _Atomic uint32_t head;
};

/* Does the queue have a free slot at index next? Acquire: pairs with the poller's release of head. */
static inline bool vb_queue_room(const struct vb_queue *q, uint32_t next)
{
    return next - atomic_load_explicit(&q->head, memory_order_acquire) < q->max_wr;
}

/* The place of a QP in a list of a CQ. Under the lock of the CQ. */
struct vb_cq_link {
    struct vb_cq_link *next, **pprev;
    struct vb_qp *qp;
};

struct vb_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
        struct vb_qp_ex_v45 v45;
    };
    struct vb_queue sq, rq;
    /* Layouts of binds that may not be done, oldest first (datapath/bind_layout.h). Under the lock of the send
     * queue. */
    struct vb_layout *layouts, **layouts_end;
    /* Shared with the daemon; NULL: a handle of a QP that another process made (XRC). */
    struct pm_qp_page *page;
    size_t size; /* bytes mapped at page */
    uint32_t doorbell;
    struct ibv_qp_cap cap; /* granted */
    uint8_t type_bit; /* VB_TYPE_* */
    bool has_rq; /* it has a receive queue of its own */
    bool sig_all;
    bool extended; /* created with send_ops_flags */
    bool unkind; /* its receive requests need vb_unkind_posted */
    bool no_sends; /* its send queue belongs to the tag matching offload (a strict profile) */
    struct vb_cq_link send_link, recv_link;
    /* XRC target: the next handle of the same QP in this context. Under the lock of the context. */
    struct vb_qp *next_handle;
    uint32_t async_events; /* delivered; under the lock of the context */
    /* XRC target: the number of events of the QP before this handle was made. By it the handles get their events in
     * turn. */
    uint32_t events_before;
    /* The batch that ibv_wr_* builds. Under the lock of the send queue, from wr_start to wr_complete or wr_abort: */
    uint32_t wr_next; /* index behind the requests built so far */
    struct pm_send_wqe *wr_wqe; /* the request that the setters fill; NULL after a failure */
    int wr_error; /* first failure, errno value */
};

/* Values of type_bit: which send requests a QP may carry. */
#define VB_TYPE_RC 1 /* RC, and the initiator of XRC */
#define VB_TYPE_UC 2
#define VB_TYPE_UD 4
/* The same as VB_TYPE_RC, of devices whose profiles have less. */
#define VB_TYPE_RC_NO_FLUSH 8 /* neither FLUSH nor ATOMIC WRITE */
#define VB_TYPE_RC_NO_ATOMICS 16 /* nor other atomics */

static inline struct vb_qp *vb_qp(struct ibv_qp *q)
{
    return VB_OF(struct vb_qp, qp, q);
}
static inline struct vb_qp *vb_qp_ex(struct ibv_qp_ex *q)
{
    return VB_OF(struct vb_qp, ex, q);
}

/* May requests be posted to the send queue in the state of the QP? In ERR and SQE they are flushed. */
static inline bool vb_can_send(const struct vb_qp *qp)
{
    enum ibv_qp_state s = __atomic_load_n(&qp->qp.state, __ATOMIC_ACQUIRE);
    return s >= IBV_QPS_RTS && s <= IBV_QPS_ERR;
}

#endif
