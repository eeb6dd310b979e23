// SPDX-License-Identifier: BSD-2-Clause
/* Two ends of a connection, on one device or on two hosts. Shared by the programs about transports. */
#ifndef PUMICE_TESTS_VERBS_ENDS_H
#define PUMICE_TESTS_VERBS_ENDS_H

#include "tests/verbs/vt.h"

struct vt_end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *scq, *rcq;
    struct ibv_qp *qp;
    char *buf; /* VT_BUF bytes; mr covers them with all access rights */
    struct ibv_mr *mr;
    union ibv_gid gid;
};

/* Opens the device of the other host, or the second device. NULL: there is none. */
static inline struct ibv_context *vt_open_peer(void)
{
    const char *peer = getenv("VT_PEER_SOCKET"), *own_socket = getenv("PUMICE_SOCKET");
    if (vt_chosen()) {
        const char *name = getenv("PUMICE_TEST_PEER");
        struct ibv_context *c = name ? vt_open_named(name) : NULL;
        if (name && !c) {
            printf("not ok - there is no RDMA device %s; ibv_devices lists those that are there\n", name);
            exit(1);
        }
        return c;
    }
    char *saved = own_socket ? strdup(own_socket) : NULL;
    if (!peer)
        return NULL;
    setenv("PUMICE_SOCKET", peer, 1);
    struct ibv_context *c = vt_open();
    if (saved)
        setenv("PUMICE_SOCKET", saved, 1);
    free(saved);
    return c;
}

/* For devices that are known to have atomics and windows; vt_access is for any. */
#define VT_ALL_ACCESS                                                                                                  \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |            \
     IBV_ACCESS_MW_BIND)

static inline void vt_end_open(struct vt_end *e, struct ibv_context *ctx)
{
    *e = (struct vt_end){.ctx = ctx};
    e->gid = vt_gid(ctx);
    need((e->pd = ibv_alloc_pd(ctx)));
    need((e->scq = ibv_create_cq(ctx, 64, NULL, NULL, 0)) && (e->rcq = ibv_create_cq(ctx, 64, NULL, NULL, 0)));
    need((e->buf = aligned_alloc(4096, VT_BUF)));
    memset(e->buf, 0, VT_BUF);
    need((e->mr = ibv_reg_mr(e->pd, e->buf, VT_BUF, vt_access(ctx))));
}

/* Destroys everything that vt_end_open made. True if every call succeeded. */
static inline bool vt_end_close(struct vt_end *e)
{
    int rc =
        (e->qp ? ibv_destroy_qp(e->qp) : 0) | ibv_dereg_mr(e->mr) | ibv_destroy_cq(e->scq) | ibv_destroy_cq(e->rcq);
    rc |= ibv_dealloc_pd(e->pd);
    free(e->buf);
    return rc == 0;
}

/* ops: send_ops_flags; 0: an ordinary QP. */
static inline struct ibv_qp *vt_end_qp(struct vt_end *e, enum ibv_qp_type type, struct ibv_srq *srq, uint64_t ops)
{
    struct ibv_qp_init_attr_ex a = {.send_cq = e->scq,
                                    .recv_cq = type == IBV_QPT_XRC_SEND ? NULL : e->rcq,
                                    .srq = srq,
                                    .cap = {16, 16, 4, 4, 64},
                                    .qp_type = type,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
                                    .pd = e->pd,
                                    .send_ops_flags = ops};
    if (type == IBV_QPT_XRC_SEND)
        a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
    return ibv_create_qp_ex(e->ctx, &a);
}

/* Moves a QP of each end to RTS. UD needs no connection. */
static inline void vt_link(struct ibv_qp *a, const union ibv_gid *a_gid, struct ibv_qp *b, const union ibv_gid *b_gid)
{
    need(vt_to_init(a) == 0 && vt_to_init(b) == 0);
    need(vt_to_rtr_at(a, b->qp_num, b_gid) == 0 && vt_to_rtr_at(b, a->qp_num, a_gid) == 0);
    need(vt_to_rts(a) == 0 && vt_to_rts(b) == 0);
}

/* An SRQ of an XRC domain, with room for 16 requests of two SGEs, and its number. */
static inline struct ibv_srq *vt_xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *domain, struct ibv_cq *cq,
                                         uint32_t *number)
{
    struct ibv_srq_init_attr_ex attr = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .attr = {.max_wr = 16, .max_sge = 2},
                                        .pd = pd,
                                        .xrcd = domain,
                                        .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &attr);
    need(srq && ibv_get_srq_num(srq, number) == 0);
    return srq;
}

static inline struct ibv_sge vt_at(const struct vt_end *e, uint32_t at, uint32_t len)
{
    return (struct ibv_sge){.addr = (uintptr_t)e->buf + at, .length = len, .lkey = e->mr->lkey};
}

static inline int vt_end_recv(struct vt_end *e, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge s = vt_at(e, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_recv(e->qp, &wr, &bad);
}

/* Posts one request with one SGE at buf + at. */
static inline int vt_end_post(struct vt_end *e, struct ibv_send_wr *wr, uint32_t at, uint32_t len)
{
    struct ibv_sge s = vt_at(e, at, len);
    struct ibv_send_wr *bad;
    wr->sg_list = &s;
    wr->num_sge = 1;
    return ibv_post_send(e->qp, wr, &bad);
}

/* Returns the next completion of a CQ. Its status is 255 if none came within seconds. */
static inline struct ibv_wc vt_next(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = 255};
    if (vt_poll(cq, 1, &wc) != 1)
        wc.status = 255;
    return wc;
}

/* Was a request refused that the QP can't execute? rc: the result of posting it. Pumice refuses it at once. Other
 * devices may find the error when they execute the request, and complete it with an error; then the QP is in ERR. */
static inline bool vt_refuses(int rc, int error, struct ibv_cq *cq)
{
    if (rc || vt_is_pumice())
        return vt_fails(rc, error);
    return vt_next(cq).status != IBV_WC_SUCCESS;
}

/* Does nothing complete for some time? */
static inline bool vt_quiet(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    double end = vt_now() + 0.05;
    while (vt_now() < end)
        if (ibv_poll_cq(cq, 1, &wc) != 0)
            return false;
    return true;
}

static void (*vt_both_test)(struct ibv_context *a, struct ibv_context *b);
static inline void vt_within_one(void)
{
    vt_both_test(vt_ctx, vt_ctx);
}
static inline void vt_between_two(void)
{
    struct ibv_context *b = vt_open_peer();
    need(b);
    vt_both_test(vt_ctx, b);
    ok(ibv_close_device(b) == 0, "the other device is closed");
}

/* Runs a test within one device, and between two hosts or devices if there are two. */
static inline int vt_both(void (*test)(struct ibv_context *a, struct ibv_context *b))
{
    vt_both_test = test;
    vt_part("within one device", vt_within_one);
    if (getenv(vt_chosen() ? "PUMICE_TEST_PEER" : "VT_PEER_SOCKET"))
        vt_part(vt_chosen() ? "between two devices" : "between two hosts", vt_between_two);
    return vt_failed;
}

#endif
