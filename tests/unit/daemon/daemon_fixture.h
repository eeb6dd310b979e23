// SPDX-License-Identifier: BSD-2-Clause
/* A device without network or thread, and sessions on it whose client is the test itself. Control operations are
 * called as functions, rings are written by hand, and device_pass is the loop. Shared by the daemon's unit tests and
 * fuzz targets. */
#ifndef PUMICE_TESTS_UNIT_DAEMON_DAEMON_FIXTURE_H
#define PUMICE_TESTS_UNIT_DAEMON_DAEMON_FIXTURE_H

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/control/dispatch.h"
#include "daemon/control/session_control.h"
#include "daemon/control/session_end.h"
#include "daemon/device/device.h"
#include "daemon/loop/device_setup.h"
#include "daemon/loop/pass.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

struct fixture {
    struct settings settings;
    struct device *device;
    struct control_request rq;
    struct control_reply rp;
};

/* The client's view of a QP and its completion queue: separate mappings, as in a real client. */
struct fixture_qp {
    struct pm_create_qp_rep rep;
    struct pm_qp_page *page;
    uint8_t *base;
    uint32_t tail, rq_tail;
};
struct fixture_srq {
    struct pm_create_srq_rep rep;
    struct pm_srq_page *page;
    uint8_t *base;
    uint32_t tail;
};
struct fixture_cq {
    struct pm_create_cq_rep rep;
    struct pm_cq_page *page;
    struct pm_cqe *entries;
    uint32_t consumer;
};

static uint64_t fixture_probe = 0x0123456789abcdefull;

static inline bool fixture_start(struct fixture *f)
{
    char why[ERROR_TEXT_MAX];

    signal(SIGPIPE, SIG_IGN); /* as in pumiced: clients close their ends of pipes */
    memset(f, 0, sizeof(*f));
    settings_init(&f->settings);
    if (settings_add_device(&f->settings, "test0", "127.0.0.1", why) != 0)
        return false;
    f->device = aligned_alloc(64, (sizeof(*f->device) + 63) & ~(size_t)63);
    return f->device && device_init(f->device, &f->settings, 0, why) == 0 && device_make_engine(f->device, why) == 0;
}

static inline void fixture_end(struct fixture *f)
{
    session_close_all(f->device);
    device_fini(f->device);
    free(f->device);
}

static inline void fixture_close_fds(struct fixture *f)
{
    for (unsigned i = 0; i < f->rp.fds; i++)
        close(f->rp.fd[i]);
    f->rp.fds = 0;
}

/* Opens a session of this process. It keeps no descriptors (the page is s->page), except that of the asynchronous
 * events if events is not NULL. */
static inline struct session *fixture_session_events(struct fixture *f, int *events)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred cred = {getpid(), geteuid(), getegid()};
    struct session *s = NULL;

    f->rp.fds = 0;
    if (session_open(f->device, -1, &cred, &rq, (struct client_fds){-1, -1}, &f->rp, &s) != 0)
        return NULL;
    if (events)
        *events = f->rp.fd[--f->rp.fds];
    fixture_close_fds(f);
    return s;
}

static inline struct session *fixture_session(struct fixture *f)
{
    return fixture_session_events(f, NULL);
}

/* Reads the next asynchronous event. False: there is none. */
static inline bool fixture_event(int events, struct pm_async_event *ev)
{
    struct pollfd p = {events, POLLIN, 0};

    return poll(&p, 1, 0) == 1 && read(events, ev, sizeof(*ev)) == (ssize_t)sizeof(*ev);
}

/* Executes an operation, with a copy of descriptor fd if fd is not -1. Copies the reply's payload to rep. Returns the
 * status. Descriptors stay in f->rp. */
static inline int fixture_call_fd(struct fixture *f, struct session *s, uint32_t op, const void *rq, size_t len, int fd,
                                  void *rep, size_t rep_len)
{
    f->rq.op = op;
    f->rq.len = (uint32_t)len;
    f->rq.fds = fd >= 0;
    f->rq.fd[0] = fd >= 0 ? dup(fd) : -1;
    if (len)
        memcpy(f->rq.payload, rq, len);
    control_dispatch(s, &f->rq, &f->rp);
    control_request_fini(&f->rq);
    if (f->rp.status == 0 && rep)
        memcpy(rep, f->rp.payload, rep_len < f->rp.len ? rep_len : f->rp.len);
    return f->rp.status;
}

static inline int fixture_call(struct fixture *f, struct session *s, uint32_t op, const void *rq, size_t len, void *rep,
                               size_t rep_len)
{
    return fixture_call_fd(f, s, op, rq, len, -1, rep, rep_len);
}

static inline void *fixture_map_part(struct fixture *f, uint64_t offset, size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->rp.fd[0], (off_t)offset);

    fixture_close_fds(f);
    return p == MAP_FAILED ? NULL : p;
}

static inline void *fixture_map(struct fixture *f, size_t size)
{
    return fixture_map_part(f, 0, size);
}

static inline uint32_t fixture_pd(struct fixture *f, struct session *s)
{
    struct pm_handle h = {0};

    fixture_call(f, s, PM_OP_ALLOC_PD, NULL, 0, &h, sizeof(h));
    return h.handle;
}

static inline uint32_t fixture_mr(struct fixture *f, struct session *s, uint32_t pd, void *p, size_t len,
                                  uint32_t access)
{
    struct pm_reg_mr_req rq = {.pd = pd, .access = access, .va = (uintptr_t)p, .length = len, .iova = (uintptr_t)p};
    struct pm_handle h = {0};

    fixture_call(f, s, PM_OP_REG_MR, &rq, sizeof(rq), &h, sizeof(h));
    return h.handle;
}

static inline int fixture_cq(struct fixture *f, struct session *s, uint32_t cqe, uint32_t channel,
                             struct fixture_cq *cq)
{
    struct pm_create_cq_req rq = {.cqe = cqe, .channel = channel};
    int rc = fixture_call(f, s, PM_OP_CREATE_CQ, &rq, sizeof(rq), &cq->rep, sizeof(cq->rep));

    if (rc)
        return rc;
    cq->page = fixture_map(f, cq->rep.size);
    cq->entries = (struct pm_cqe *)((uint8_t *)cq->page + PM_CQ_ENTRIES);
    cq->consumer = 0;
    return 0;
}

static inline int fixture_qp_typed(struct fixture *f, struct session *s, uint32_t pd, uint32_t cq, uint32_t type,
                                   uint32_t srq, uint32_t wr, struct fixture_qp *qp)
{
    struct pm_create_qp_req rq = {.pd = pd,
                                  .send_cq = cq,
                                  .recv_cq = cq,
                                  .srq = srq,
                                  .type = type,
                                  .max_send_wr = wr,
                                  .max_recv_wr = wr,
                                  .max_send_sge = 2,
                                  .max_recv_sge = 2,
                                  .max_inline = 64};
    int rc = fixture_call(f, s, PM_OP_CREATE_QP, &rq, sizeof(rq), &qp->rep, sizeof(qp->rep));

    if (rc)
        return rc;
    qp->page = fixture_map_part(f, qp->rep.offset, qp->rep.size);
    qp->base = (uint8_t *)qp->page;
    qp->tail = qp->rq_tail = 0;
    return 0;
}

static inline int fixture_qp(struct fixture *f, struct session *s, uint32_t pd, uint32_t cq, uint32_t wr,
                             struct fixture_qp *qp)
{
    return fixture_qp_typed(f, s, pd, cq, QPT_RC, 0, wr, qp);
}

static inline int fixture_srq(struct fixture *f, struct session *s, uint32_t pd, uint32_t wr, struct fixture_srq *srq)
{
    struct pm_create_srq_req rq = {.pd = pd, .type = 0, .max_wr = wr, .max_sge = 2};
    int rc = fixture_call(f, s, PM_OP_CREATE_SRQ, &rq, sizeof(rq), &srq->rep, sizeof(srq->rep));

    if (rc)
        return rc;
    srq->page = fixture_map(f, srq->rep.size);
    srq->base = (uint8_t *)srq->page;
    srq->tail = 0;
    return 0;
}

/* Moves a QP from RESET to RTS, connected to QP number dest of the same device. */
static inline int fixture_connect_to(struct fixture *f, struct session *s, uint32_t qpn, uint32_t dest,
                                     const uint8_t gid[16])
{
    struct pm_modify_qp_req m = {.qpn = qpn};
    int rc;

    m.mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS;
    m.attr.qp_state = QPS_INIT;
    m.attr.port_num = 1;
    m.attr.qp_access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE;
    rc = fixture_call(f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
    if (rc)
        return rc;
    m.mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
    m.attr.qp_state = QPS_RTR;
    m.attr.path_mtu = 1;
    m.attr.dest_qp_num = dest;
    m.attr.rq_psn = 7;
    m.attr.max_dest_rd_atomic = 4;
    m.attr.min_rnr_timer = 1;
    memcpy(m.attr.av.dgid, gid, 16);
    rc = fixture_call(f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
    if (rc)
        return rc;
    m.mask = QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC;
    m.attr.qp_state = QPS_RTS;
    m.attr.sq_psn = 7;
    m.attr.timeout = 8;
    m.attr.retry_cnt = 1;
    m.attr.rnr_retry = 1;
    m.attr.max_rd_atomic = 4;
    return fixture_call(f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static inline int fixture_connect(struct fixture *f, struct session *s, uint32_t qpn, uint32_t dest)
{
    return fixture_connect_to(f, s, qpn, dest, f->device->gid);
}

/* Connects two QPs to each other. */
static inline int fixture_connect_both(struct fixture *f, struct session *s, const struct fixture_qp *a,
                                       const struct fixture_qp *b)
{
    int rc = fixture_connect(f, s, a->rep.qpn, b->rep.qpn);

    return rc ? rc : fixture_connect(f, s, b->rep.qpn, a->rep.qpn);
}

static inline int fixture_state(struct fixture *f, struct session *s, uint32_t qpn, enum qp_state state)
{
    struct pm_modify_qp_req m = {.qpn = qpn, .mask = QPA_STATE};

    m.attr.qp_state = state;
    return fixture_call(f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static inline void fixture_ring_bell(struct session *s, uint32_t d)
{
    atomic_fetch_or(&s->page->bits[d / 64], 1ull << (d % 64));
    atomic_fetch_or(&s->page->summary[d / 64 / 64], 1ull << (d / 64 % 64));
}

static inline void fixture_ring(struct session *s, const struct fixture_qp *qp)
{
    fixture_ring_bell(s, qp->rep.doorbell);
}

/* The slot of the next request. */
static inline struct pm_send_wqe *fixture_send_slot(struct fixture_qp *qp)
{
    return (struct pm_send_wqe *)(qp->base + qp->rep.sq_offset +
                                  (size_t)(qp->tail & (qp->rep.sq_slots - 1)) * qp->rep.sq_stride);
}

/* Writes a signaled request to the tail of the send queue. Its wr_id is 1000 plus its index. */
static inline void fixture_wqe(struct fixture_qp *qp, uint8_t opcode, uint32_t key, const uint8_t *from,
                               const uint8_t *to, uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(qp);
    struct pm_sge *sge = (struct pm_sge *)(w + 1);

    memset(w, 0, sizeof(*w));
    w->wr_id = 1000 + qp->tail;
    w->opcode = opcode;
    w->flags = PM_SEND_SIGNALED;
    w->num_sge = 1;
    w->rkey = key;
    w->remote_addr = (uintptr_t)to;
    *sge = (struct pm_sge){(uintptr_t)from, len, key};
}

static inline struct pm_recv_wqe *fixture_recv_slot(struct fixture_qp *qp)
{
    return (struct pm_recv_wqe *)(qp->base + qp->rep.rq_offset +
                                  (size_t)(qp->rq_tail & (qp->rep.rq_slots - 1)) * qp->rep.rq_stride);
}

static inline struct pm_recv_wqe *fixture_srq_slot(struct fixture_srq *srq)
{
    return (struct pm_recv_wqe *)(srq->base + srq->rep.offset +
                                  (size_t)(srq->tail & (srq->rep.slots - 1)) * srq->rep.stride);
}

static inline void fixture_post_send(struct session *s, struct fixture_qp *qp)
{
    atomic_store(&qp->page->sq_tail, ++qp->tail);
    fixture_ring(s, qp);
}

static inline void fixture_post_recv(struct session *s, struct fixture_qp *qp)
{
    atomic_store(&qp->page->rq_tail, ++qp->rq_tail);
    if (atomic_load(&qp->page->rq_notify))
        fixture_ring(s, qp);
}

static inline void fixture_post_srq(struct session *s, struct fixture_srq *srq)
{
    atomic_store(&srq->page->tail, ++srq->tail);
    if (atomic_load(&srq->page->notify))
        fixture_ring_bell(s, srq->rep.doorbell);
}

/* Runs passes until nothing is left to do. A deadline that is near keeps it going for at most a second. It ends with a pass
 * that had nothing to do, because on a busy machine that second may be over before the work begins. */
static inline void fixture_run(struct fixture *f)
{
    uint64_t begin = clock_ns(), now = begin;

    while (now < begin + 30 * NS_PER_S) {
        bool work = device_pass(f->device, now);

        now = clock_ns();
        if (!work && (device_deadline(f->device) > now + 100 * NS_PER_MS || now >= begin + NS_PER_S))
            return;
    }
}

static inline bool fixture_poll(struct fixture_cq *cq, struct pm_cqe *out)
{
    struct pm_cqe *e = &cq->entries[cq->consumer & (cq->rep.slots - 1)];

    if (atomic_load_explicit((_Atomic uint32_t *)&e->seq, memory_order_acquire) != cq->consumer + 1)
        return false;
    *out = *e;
    atomic_store_explicit(&cq->page->consumer, ++cq->consumer, memory_order_release);
    return true;
}

#endif
