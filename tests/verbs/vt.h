// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the programs of this folder: queue pairs that are connected, requests and completions. Each program prints
 * one line for each check. Its exit code is 0 (all checks passed), 1 (a check failed), or 77 (there is nothing to test
 * with). device.h has the device and its features. */
#ifndef PUMICE_TESTS_VERBS_VT_H
#define PUMICE_TESTS_VERBS_VT_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include "tests/verbs/check.h"
#include "tests/verbs/device.h"

#define VT_BUF 65536
/* Two QPs of one process, connected to each other. */
struct vt_pair {
    struct ibv_context *ctx;
    enum ibv_qp_type type; /* RC (or 0 before the pair is made), UC, UD */
    struct ibv_pd *pd;
    struct ibv_cq *scq, *rcq; /* CQs of both QPs */
    struct ibv_srq *srq; /* of both QPs, if it was set before they were made */
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    char *buf; /* VT_BUF bytes; mr covers them with all access rights */
};

#define VT_QKEY 0x11111111u
/* Does the QP have timers, and count retries? */
static inline bool vt_acks(const struct ibv_qp *qp)
{
    return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
}
/* All access rights that regions of the device can have. */
static inline int vt_access(struct ibv_context *ctx)
{
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           (vt_lacks(ctx, VT_ATOMICS) ? 0 : IBV_ACCESS_REMOTE_ATOMIC) |
           (vt_lacks(ctx, VT_MW) && vt_lacks(ctx, VT_MW_TYPE_2) ? 0 : IBV_ACCESS_MW_BIND);
}
/* Does the QP answer READs? */
static inline bool vt_reads(const struct ibv_qp *qp)
{
    return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV;
}

static inline int vt_to_init(struct ibv_qp *qp)
{
    bool ud = qp->qp_type == IBV_QPT_UD;
    unsigned access = IBV_ACCESS_REMOTE_WRITE |
                      (qp->qp_type == IBV_QPT_UC           ? 0
                       : vt_lacks(qp->context, VT_ATOMICS) ? IBV_ACCESS_REMOTE_READ
                                                           : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = vt_port(), .qkey = VT_QKEY, .qp_access_flags = ud ? 0 : access};
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* READs and atomics that are outstanding at a time: four, if the device allows them. */
static inline uint8_t vt_rd_atomic(struct ibv_context *ctx)
{
    const struct ibv_device_attr a = vt_attr(ctx).orig_attr;
    int most = a.max_qp_rd_atom < a.max_qp_init_rd_atom ? a.max_qp_rd_atom : a.max_qp_init_rd_atom;
    return (uint8_t)(most < 4 ? most : 4);
}

/* The attributes of a change to RTR, and their mask. gid: of the peer; NULL: the peer is on the same device. */
static inline int vt_rtr_attr(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, struct ibv_qp_attr *a)
{
    vt_needs(qp->context, VT_CONNECT);
    const struct ibv_port_attr port = vt_port_attr(qp->context);
    *a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = port.active_mtu < IBV_MTU_1024 ? port.active_mtu : IBV_MTU_1024,
                              .dest_qp_num = peer,
                              .rq_psn = 1,
                              .max_dest_rd_atomic = vt_rd_atomic(qp->context),
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1,
                                          .dlid = port.lid,
                                          .port_num = vt_port(),
                                          .grh = {.dgid = gid ? *gid : vt_gid(qp->context),
                                                  .sgid_index = vt_gid_index(qp->context),
                                                  .hop_limit = 64}}};
    if (qp->qp_type == IBV_QPT_UD)
        return IBV_QP_STATE;
    return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           (vt_reads(qp) ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}
static inline int vt_to_rtr_at(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr a;
    int mask = vt_rtr_attr(qp, peer, gid, &a);
    return ibv_modify_qp(qp, &a, mask);
}
static inline int vt_to_rtr(struct ibv_qp *qp, uint32_t peer)
{
    return vt_to_rtr_at(qp, peer, NULL);
}

static inline int vt_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = vt_is_pumice() ? 14 : 17, /* half a second: the machine may be slow */
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .sq_psn = 1,
                            .max_rd_atomic = vt_rd_atomic(qp->context)};
    int timers = qp->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_TIMEOUT
                 : vt_acks(qp) ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                               : 0;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | timers);
}

static inline int vt_to_state(struct ibv_qp *qp, enum ibv_qp_state s)
{
    struct ibv_qp_attr a = {.qp_state = s};
    return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

static inline void vt_connect(struct vt_pair *p)
{
    for (int i = 0; i < 2; i++)
        need(vt_to_init(p->qp[i]) == 0);
    for (int i = 0; i < 2; i++)
        need(vt_to_rtr(p->qp[i], p->qp[!i]->qp_num) == 0);
    for (int i = 0; i < 2; i++)
        need(vt_to_rts(p->qp[i]) == 0);
}

/* cap: capacities of both QPs; NULL: 16 requests, 4 SGEs, 64 bytes inline. Makes scq and rcq if they are NULL. */
static inline void vt_pair_make(struct vt_pair *p, struct ibv_context *ctx, const struct ibv_qp_cap *cap)
{
    static const struct ibv_qp_cap usual = {16, 16, 4, 4, 64};
    p->ctx = ctx;
    if (p->type == 0)
        p->type = IBV_QPT_RC;
    if (!p->pd)
        need((p->pd = ibv_alloc_pd(ctx)));
    if (!p->scq)
        need((p->scq = ibv_create_cq(ctx, 64, NULL, NULL, 0)));
    if (!p->rcq)
        need((p->rcq = ibv_create_cq(ctx, 64, NULL, NULL, 0)));
    need((p->buf = aligned_alloc(4096, VT_BUF)));
    memset(p->buf, 0, VT_BUF);
    need((p->mr = ibv_reg_mr(p->pd, p->buf, VT_BUF, vt_access(ctx))));
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr a = {
            .send_cq = p->scq, .recv_cq = p->rcq, .srq = p->srq, .cap = cap ? *cap : usual, .qp_type = p->type};
        need((p->qp[i] = ibv_create_qp(p->pd, &a)));
    }
}

/* Destroys everything except the context. True if every call succeeded. */
static inline bool vt_pair_end(struct vt_pair *p)
{
    int rc = ibv_destroy_qp(p->qp[0]) | ibv_destroy_qp(p->qp[1]) | ibv_dereg_mr(p->mr) | ibv_destroy_cq(p->scq);
    if (p->rcq != p->scq)
        rc |= ibv_destroy_cq(p->rcq);
    rc |= ibv_dealloc_pd(p->pd);
    free(p->buf);
    return rc == 0;
}

static inline struct ibv_sge vt_sge(const struct vt_pair *p, uint32_t at, uint32_t len)
{
    return (struct ibv_sge){.addr = (uintptr_t)p->buf + at, .length = len, .lkey = p->mr->lkey};
}

static inline int vt_recv(struct vt_pair *p, int i, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge s = vt_sge(p, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_recv(p->qp[i], &wr, &bad);
}

static inline int vt_srq_recv(struct vt_pair *p, struct ibv_srq *srq, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge s = vt_sge(p, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(srq, &wr, &bad);
}

static inline int vt_send(struct vt_pair *p, int i, uint64_t id, uint32_t at, uint32_t len, unsigned flags)
{
    struct ibv_sge s = vt_sge(p, at, len);
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags},
                       *bad;
    return ibv_post_send(p->qp[i], &wr, &bad);
}

/* Seconds to wait for something that must come. A machine under load may be slow; on other devices many things may
 * fail, and each of them costs this time. */
static inline double vt_wait_seconds(void)
{
    return vt_is_pumice() ? 30 : 8;
}

/* Polls until num completions came or vt_wait_seconds is over. Returns their number. */
static inline int vt_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
    double end = vt_now() + vt_wait_seconds();
    int n = 0;
    while (n < num && vt_now() < end) {
        int k = ibv_poll_cq(cq, num - n, wc + n);
        if (k < 0)
            return k;
        n += k;
    }
    return n;
}

/* Waits up to vt_wait_seconds for an asynchronous event of that type, and acknowledges it. False: it did not come. */
static inline bool vt_event(struct ibv_context *ctx, enum ibv_event_type type, void *element)
{
    struct pollfd f = {.fd = ctx->async_fd, .events = POLLIN};
    double end = vt_now() + vt_wait_seconds();
    while (vt_now() < end && poll(&f, 1, 100) >= 0) {
        struct ibv_async_event e;
        if (!(f.revents & POLLIN) || ibv_get_async_event(ctx, &e))
            continue;
        bool it = e.event_type == type && (!element || e.element.qp == element);
        ibv_ack_async_event(&e);
        if (it)
            return true;
    }
    return false;
}
static inline bool vt_no_event(struct ibv_context *ctx)
{
    struct pollfd f = {.fd = ctx->async_fd, .events = POLLIN};
    return poll(&f, 1, 50) == 0;
}

#endif
