// SPDX-License-Identifier: BSD-2-Clause
/* Rules of layouts between two hosts: items that overlap or lie on each other, the QP that a layout belongs to, and what
 * happens to a layout when a window inside it, or its memory, goes. */
#include "tests/verbs/layout/layouts.h"

static struct vt_end a, b; /* b has the windows, a uses them */
static struct ibv_qp *other[2]; /* a second connection: of a, of b */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static enum ibv_wc_status use(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t at, uint32_t len, uint32_t rkey)
{
    struct ibv_sge s = vt_at(&a, at, len);
    struct ibv_send_wr wr = {.opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &s,
                             .num_sge = 1,
                             .wr.rdma = {0, rkey}},
                       *bad;
    need(ibv_post_send(qp, &wr, &bad) == 0);
    return vt_next(a.scq).status;
}

/* Writes go in the order of the layout, so the last one wins. Reads see the bytes once for each item. */
static void overlaps(void)
{
    static const struct {
        const char *what;
        uint32_t stride; /* of items of 8 bytes */
    } all[] = {{"items on each other (stride 0)", 0}, {"items that overlap (stride 5)", 5}};
    for (unsigned k = 0; k < 2; k++) {
        uint32_t stride = all[k].stride;
        char expected[64] = "", seen[32];
        struct ibv_mw *mw = vl_items(b.qp, b.scq, b.mr, b.buf, 8, stride, 4,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
        memset(b.buf, 0, 64);
        for (uint32_t i = 0; i < 32; i++)
            a.buf[i] = (char)(i + 1);
        for (uint32_t i = 0; i < 4; i++)
            memcpy(expected + i * stride, a.buf + i * 8, 8);
        bool right = use(a.qp, IBV_WR_RDMA_WRITE, 0, 32, mw->rkey) == IBV_WC_SUCCESS && !memcmp(b.buf, expected, 64);
        for (uint32_t i = 0; i < 4; i++)
            memcpy(seen + i * 8, expected + i * stride, 8);
        right &= use(a.qp, IBV_WR_RDMA_READ, 4096, 32, mw->rkey) == IBV_WC_SUCCESS && !memcmp(a.buf + 4096, seen, 32);
        ok(right, all[k].what);
        need(ibv_dealloc_mw(mw) == 0);
    }
}

/* A layout of type 2 belongs to the QP that bound it, for requests of peers. Its lkey belongs to the domain. */
static void owner(void)
{
    struct ibv_mw *mw = vl_items(b.qp, b.scq, b.mr, b.buf, 8, 64, 4, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ok(use(a.qp, IBV_WR_RDMA_WRITE, 0, 32, mw->rkey) == IBV_WC_SUCCESS,
       "the peer of the QP that bound a layout reaches it");
    /* By its lkey, the other QP of the domain sends from it. */
    struct ibv_sge from = {.addr = 0, .length = 32, .lkey = vl_lkey(mw)}, to = vt_at(&a, 8192, 64);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &from, .num_sge = 1},
                       *bad;
    struct ibv_recv_wr rwr = {.sg_list = &to, .num_sge = 1}, *rbad;
    need(ibv_post_recv(other[0], &rwr, &rbad) == 0 && ibv_post_send(other[1], &wr, &bad) == 0);
    ok(vt_next(b.scq).status == IBV_WC_SUCCESS && vt_next(a.rcq).status == IBV_WC_SUCCESS &&
           !memcmp(a.buf + 8192, a.buf, 32),
       "another QP of the domain sends from it by its lkey");
    ok(use(other[0], IBV_WR_RDMA_WRITE, 0, 32, mw->rkey) == IBV_WC_REM_ACCESS_ERR,
       "the peer of another QP does not: remote access error");
    need(ibv_dealloc_mw(mw) == 0);
}

/* A layout over a window: when that window is invalidated or bound again, the outer one stays bound and can't be used. */
static void nested(void)
{
    unsigned all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_mw *inner = vl_items(b.qp, b.scq, b.mr, b.buf, 8, 64, 4, all),
                  *outer = vl_window(b.pd, IBV_MW_TYPE_2, 1);
    struct pumice_mw_bind_layout_entry entry = {
        .mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = inner, .addr = 0, .length = 32};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE, 1, &entry};
    need(vl_post_bind(b.qp, outer, &l, all) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    ok(use(a.qp, IBV_WR_RDMA_WRITE, 0, 32, outer->rkey) == IBV_WC_SUCCESS, "a layout over a window is used");
    ok(ibv_dereg_mr(b.mr) == EBUSY, "the region of a bound layout can't be deregistered");
    need(vl_invalidate(b.qp, b.scq, inner->rkey) == IBV_WC_SUCCESS);
    ok(use(a.qp, IBV_WR_RDMA_WRITE, 0, 32, outer->rkey) == IBV_WC_REM_ACCESS_ERR,
       "after the window inside is invalidated: remote access error");
    connect_again();
    need(ibv_dealloc_mw(inner) == 0 && ibv_dealloc_mw(outer) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    connect_again();
    need((other[0] = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (other[1] = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(other[0], &a.gid, other[1], &b.gid);
    overlaps();
    owner();
    nested();
    need(ibv_destroy_qp(other[0]) == 0 && ibv_destroy_qp(other[1]) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
