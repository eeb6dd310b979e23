// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows and XRC. A window of type 1 belongs to its protection domain: an initiator binds it, and one of the
 * target's side is reached over XRC. A window of type 2 belongs to the QP that bound it. Over XRC, the QP that receives a
 * packet is another one. So an initiator binds and invalidates it, but nobody reaches or invalidates it through an XRC
 * target. An SRQ may be destroyed between two messages of a connection. */
#include <fcntl.h>

#include "tests/verbs/ends.h"

static struct vt_end a, b; /* a sends; b has the target and the SRQ */
static struct ibv_xrcd *domain;
static struct ibv_qp *tgt;
static struct ibv_srq *srq;
static uint32_t srqn;

/* A fresh connection: errors have ended the one before. */
static void connect_again(void)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(tgt) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, 0)) && (tgt = ibv_create_qp_ex(b.ctx, &attr)));
    vt_link(a.qp, &a.gid, tgt, &b.gid);
}

static void recv_one(uint64_t id)
{
    struct ibv_sge s = vt_at(&b, 0, 64);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

/* Binds a window of type 2 by this QP to `len` bytes of the end's buffer. */
static enum ibv_wc_status bind_window(struct vt_end *e, struct ibv_qp *qp, struct ibv_mw *mw, uint32_t at, uint32_t len)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info =
        (struct ibv_mw_bind_info){.mr = e->mr,
                                  .addr = (uintptr_t)e->buf + at,
                                  .length = len,
                                  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    need(ibv_post_send(qp, &wr, &bad) == 0);
    mw->rkey = wr.bind_mw.rkey;
    return vt_next(e->scq).status;
}

static enum ibv_wc_status send_wr(struct ibv_send_wr wr, uint32_t at, uint32_t len)
{
    wr.send_flags |= IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = srqn;
    need(vt_end_post(&a, &wr, at, len) == 0);
    return vt_next(a.scq).status;
}

static enum ibv_wc_status write_at(uint32_t at, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {(uintptr_t)b.buf + at, rkey}};
    return send_wr(wr, 0, 8);
}

static enum ibv_wc_status bind_type_1(struct ibv_mw *mw, uint32_t len)
{
    struct ibv_mw_bind how = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {
            .mr = a.mr, .addr = (uintptr_t)a.buf + 4096, .length = len, .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
    need(ibv_bind_mw(a.qp, mw, &how) == 0);
    return vt_next(a.scq).status;
}

/* A request of b for a window that an initiator of a has bound: an XRC target of a receives it. */
static void not_reached(const struct ibv_mw *mw)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *d = ibv_open_xrcd(a.ctx, &x);
    struct ibv_qp_init_attr_ex t = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = d};
    struct ibv_qp *target = ibv_create_qp_ex(a.ctx, &t), *from = vt_end_qp(&b, IBV_QPT_XRC_SEND, NULL, 0);
    struct ibv_sge sge = vt_at(&b, 0, 8);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {(uintptr_t)a.buf + 4096, a.mr->rkey}},
                       *bad;
    need(d && target && from);
    struct ibv_srq *of_a = vt_xrc_srq(a.pd, d, a.rcq, &wr.qp_type.xrc.remote_srqn);
    vt_link(from, &b.gid, target, &a.gid);
    need(ibv_post_send(from, &wr, &bad) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    wr.wr.rdma.rkey = mw->rkey;
    need(ibv_post_send(from, &wr, &bad) == 0);
    ok(vt_next(b.scq).status == IBV_WC_REM_ACCESS_ERR, "nobody reaches it through a target: remote access error");
    need(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(target) == 0 && ibv_destroy_srq(of_a) == 0 &&
         ibv_close_xrcd(d) == 0);
}

/* Local operations of the initiator, between requests that go out. */
static void initiator(void)
{
    struct ibv_mw *one = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
    struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED}, *bad;
    need(one && two);
    ok(bind_type_1(one, 64) == IBV_WC_SUCCESS && bind_type_1(one, 0) == IBV_WC_SUCCESS,
       "an initiator binds a window of type 1, and unbinds it");
    strcpy(a.buf, "still");
    ok(write_at(512, b.mr->rkey) == IBV_WC_SUCCESS && !strcmp(b.buf + 512, "still"), "and goes on");
    ok(bind_window(&a, a.qp, two, 4096, 64) == IBV_WC_SUCCESS, "it binds one of type 2");
    not_reached(two);
    for (int i = 0; i < 2; i++) {
        inv.invalidate_rkey = two->rkey;
        need(ibv_post_send(a.qp, &inv, &bad) == 0);
        ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "invalidates it");
        ok(bind_window(&a, a.qp, two, 4096, 64) == IBV_WC_SUCCESS && write_at(512, b.mr->rkey) == IBV_WC_SUCCESS,
           "binds it with the next key, and goes on");
    }
    ok(bind_window(&a, a.qp, two, 4096, 64) == IBV_WC_MW_BIND_ERR, "a bound one is not free: bind error");
    connect_again();
    ok(bind_window(&a, a.qp, two, 4096, 64) == IBV_WC_SUCCESS, "the end of the initiator has made it free");
    inv.invalidate_rkey = one->rkey;
    need(ibv_post_send(a.qp, &inv, &bad) == 0);
    ok(vt_next(a.scq).status == IBV_WC_LOC_QP_OP_ERR, "one of type 1 can't be invalidated: local operation error");
    connect_again();
    need(ibv_dealloc_mw(one) == 0 && ibv_dealloc_mw(two) == 0);
}

static void windows_of_the_target(void)
{
    struct vt_end c = b, d; /* an RC connection of the target's side, which binds its windows */
    struct ibv_mw *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2), *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    vt_end_open(&d, a.ctx);
    need(two && one && (c.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)) && (d.qp = vt_end_qp(&d, IBV_QPT_RC, NULL, 0)));
    vt_link(c.qp, &b.gid, d.qp, &d.gid);
    need(bind_window(&b, c.qp, two, 8192, 64) == IBV_WC_SUCCESS);
    struct ibv_mw_bind how = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {
            .mr = b.mr, .addr = (uintptr_t)b.buf + 12288, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    need(ibv_bind_mw(c.qp, one, &how) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    strcpy(a.buf, "window");
    ok(write_at(12288, one->rkey) == IBV_WC_SUCCESS && !strcmp(b.buf + 12288, "window"),
       "a window of type 1 is reached over XRC");
    ok(write_at(8192, two->rkey) == IBV_WC_REM_ACCESS_ERR && b.buf[8192] == 0,
       "one of type 2 is not: remote access error");
    connect_again();
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {(uintptr_t)b.buf + 8192, two->rkey}};
    strcpy(d.buf, "own QP");
    need(vt_end_post(&d, &wr, 0, 8) == 0);
    ok(vt_next(d.scq).status == IBV_WC_SUCCESS && !strcmp(b.buf + 8192, "own QP"),
       "its own QP reaches it, before and after");

    /* A SEND with invalidate over XRC: type 1 can't be invalidated so, and type 2 is another QP's. */
    struct ibv_send_wr inv = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = two->rkey};
    recv_one(1);
    ok(send_wr(inv, 0, 8) == IBV_WC_REM_ACCESS_ERR,
       "a SEND with invalidate of a window that another QP bound: remote access error");
    need(vt_end_post(&d, &wr, 0, 8) == 0);
    ok(vt_next(d.scq).status == IBV_WC_SUCCESS, "the window still works");
    need(ibv_destroy_qp(c.qp) == 0 && ibv_dealloc_mw(one) == 0 && ibv_dealloc_mw(two) == 0 && vt_end_close(&d));
}

/* The SRQ goes between two messages. */
static void destroyed_srq(void)
{
    struct ibv_wc wc;
    uint32_t gone = srqn;
    connect_again();
    need(ibv_destroy_srq(srq) == 0);
    while (ibv_poll_cq(b.rcq, 1, &wc) > 0)
        ;
    srq = vt_xrc_srq(b.pd, domain, b.rcq, &srqn);
    recv_one(7);
    recv_one(8);
    strcpy(a.buf, "first");
    ok(send_wr((struct ibv_send_wr){.opcode = IBV_WR_SEND}, 0, 6) == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 7,
       "a message to the new SRQ");
    uint32_t now = srqn;
    srqn = gone == now ? now + 1 : gone;
    ok(send_wr((struct ibv_send_wr){.opcode = IBV_WR_SEND}, 0, 6) == IBV_WC_REM_ACCESS_ERR,
       "one to the SRQ that is gone: remote access error");
    ok(vt_event(b.ctx, IBV_EVENT_QP_ACCESS_ERR, NULL), "the target has an event");
    srqn = now;
    ok(vt_quiet(b.rcq), "the other SRQ has lost no request");
    connect_again();
    ok(send_wr((struct ibv_send_wr){.opcode = IBV_WR_SEND}, 0, 6) == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 8,
       "which the next message gets");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    vt_needs(ca, VT_XRC);
    vt_needs(ca, VT_MW_TYPE_2);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((domain = ibv_open_xrcd(cb, &x)));
    srq = vt_xrc_srq(b.pd, domain, b.rcq, &srqn);
    connect_again();
    initiator();
    windows_of_the_target();
    destroyed_srq();
    need(ibv_destroy_qp(tgt) == 0 && ibv_destroy_srq(srq) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b) && ibv_close_xrcd(domain) == 0, "all is closed");
}

int main(void)
{
    VT_OWN("windows over XRC, which few devices have");
    return vt_both(test);
}
