// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows of both types: what they permit and for how long, rebinding, and what is refused. */
#include "tests/verbs/ends.h"

static struct vt_end a, b; /* b has the windows; a writes through them */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static enum ibv_wc_status access_at(enum ibv_wr_opcode op, uint64_t remote, uint32_t rkey, uint32_t len)
{
    struct ibv_send_wr wr = {
        .opcode = op, .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {.remote_addr = remote, .rkey = rkey}};
    need(vt_end_post(&a, &wr, 0, len) == 0);
    return vt_next(a.scq).status;
}
static enum ibv_wc_status write_at(uint32_t at, uint32_t rkey, uint32_t len)
{
    return access_at(IBV_WR_RDMA_WRITE, (uintptr_t)b.buf + at, rkey, len);
}

static struct ibv_mw_bind_info range(uint32_t at, uint32_t len, unsigned access)
{
    return (struct ibv_mw_bind_info){
        .mr = b.mr, .addr = (uintptr_t)b.buf + at, .length = len, .mw_access_flags = access};
}

static int bind1(struct ibv_mw *mw, struct ibv_mw_bind_info info, uint64_t id)
{
    struct ibv_mw_bind bind = {.wr_id = id, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    return ibv_bind_mw(b.qp, mw, &bind);
}

static int bind2(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
    struct ibv_send_wr wr = {.wr_id = 21,
                             .opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = info}},
                       *bad;
    return ibv_post_send(b.qp, &wr, &bad);
}

/* The bind of a window of type 2 is complete. Other libraries take the current rkey for the next bind from the window,
 * and leave it to the program to note it there. Pumice's knows it. */
static bool bound2(struct ibv_mw *mw, uint32_t rkey)
{
    if (vt_next(b.scq).status != IBV_WC_SUCCESS)
        return false;
    if (!vt_is_pumice())
        mw->rkey = rkey;
    return true;
}

static void type1(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    need(mw);
    ok(mw->type == IBV_MW_TYPE_1 && mw->pd == b.pd && mw->context == b.ctx, "a window of type 1");
    uint32_t first = mw->rkey;
    ok(bind1(mw, range(1024, 512, IBV_ACCESS_REMOTE_WRITE), 7) == 0 && mw->rkey != first && mw->rkey >> 8 == first >> 8,
       "binding gives it a new rkey at once");
    struct ibv_wc wc = vt_next(b.scq);
    ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 7, "the bind completes");
    strcpy(a.buf, "window");
    ok(write_at(1024, mw->rkey, 7) == IBV_WC_SUCCESS && !strcmp(b.buf + 1024, "window"), "a WRITE through it");
    ok(write_at(1536 - 7, mw->rkey, 7) == IBV_WC_SUCCESS, "up to its end");
    ok(write_at(1536 - 6, mw->rkey, 7) == IBV_WC_REM_ACCESS_ERR, "beyond it: remote access error");
    connect_again();
    ok(access_at(IBV_WR_RDMA_READ, (uintptr_t)b.buf + 1024, mw->rkey, 7) == IBV_WC_REM_ACCESS_ERR,
       "a READ through a window for WRITEs: remote access error");
    connect_again();
    uint32_t old = mw->rkey;
    need(bind1(mw, range(2048, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), 8) == 0);
    ok(vt_next(b.scq).status == IBV_WC_SUCCESS && write_at(2048, mw->rkey, 7) == IBV_WC_SUCCESS &&
           access_at(IBV_WR_RDMA_READ, (uintptr_t)b.buf + 2048, mw->rkey, 7) == IBV_WC_SUCCESS,
       "bound anew it lets other things through");
    ok(write_at(1024, old, 7) == IBV_WC_REM_ACCESS_ERR, "the old rkey: remote access error");
    connect_again();
    ok(vt_fails(ibv_dereg_mr(b.mr), EBUSY), "the region beneath is busy");
    need(bind1(mw, range(2048, 0, 0), 9) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    ok(write_at(2048, mw->rkey, 7) == IBV_WC_REM_ACCESS_ERR, "a bind of length 0 unbinds");
    connect_again();
    bool right = true;
    for (uint32_t i = 0; i < 1000 && right; i++) {
        right &= bind1(mw, range(i * 8, 8, IBV_ACCESS_REMOTE_WRITE), i) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS;
        if (i % 50 == 0)
            right &= write_at(i * 8, mw->rkey, 8) == IBV_WC_SUCCESS;
    }
    ok(right, "1000 times bound");
    ok(vt_fails(bind1(mw, range(0, 8, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED), 1), EINVAL),
       "a zero-based window of type 1: EINVAL");
    ok(vt_refuses(bind2(mw, mw->rkey + 1, range(0, 8, IBV_ACCESS_REMOTE_WRITE)), EINVAL, b.scq),
       "type 1 by ibv_post_send: EINVAL");
    ok(vt_fails(ibv_dealloc_pd(b.pd), EBUSY), "the PD is busy");
    ok(ibv_dealloc_mw(mw) == 0, "the window goes, though bound");
}

static enum ibv_wc_status invalidate_local(uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey},
                       *bad;
    need(ibv_post_send(b.qp, &wr, &bad) == 0);
    struct ibv_wc wc = vt_next(b.scq);
    return wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_LOCAL_INV ? 254 : wc.status;
}

static void type2(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    need(mw);
    uint32_t key = ibv_inc_rkey(mw->rkey);
    need(bind2(mw, key, range(1024, 512, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)) == 0);
    struct ibv_wc wc = vt_next(b.scq);
    ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 21, "a window of type 2 is bound");
    if (!vt_is_pumice())
        mw->rkey = key; /* as in bound2 */
    ok(write_at(1024, key, 7) == IBV_WC_SUCCESS, "a WRITE through it");
    ok(invalidate_local(key) == IBV_WC_SUCCESS, "local invalidation");
    ok(write_at(1024, key, 7) == IBV_WC_REM_ACCESS_ERR, "then a WRITE is refused");
    connect_again();
    key = ibv_inc_rkey(key);
    need(bind2(mw, key, range(0, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)) == 0);
    bool zero_based = bound2(mw, key) && access_at(IBV_WR_RDMA_WRITE, 8, key, 7) == IBV_WC_SUCCESS;
    ok(zero_based && !strcmp(b.buf + 8, "window"), "a zero-based window");
    if (!zero_based) { /* go on with a plain one */
        connect_again();
        need(ibv_dealloc_mw(mw) == 0 && (mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2)));
        key = ibv_inc_rkey(mw->rkey);
        need(bind2(mw, key, range(0, 64, IBV_ACCESS_REMOTE_WRITE)) == 0 && bound2(mw, key));
    }
    struct ibv_send_wr inv = {.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key};
    need(vt_end_recv(&b, 4, 4096, 64) == 0 && vt_end_post(&a, &inv, 0, 7) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "SEND with invalidate");
    wc = vt_next(b.rcq);
    if (!ok(wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == key,
            "its completion names the rkey"))
        printf("#   %s, wc_flags 0x%x\n", ibv_wc_status_str(wc.status), wc.wc_flags);
    ok(access_at(IBV_WR_RDMA_WRITE, zero_based ? 8 : (uintptr_t)b.buf + 8, key, 7) == IBV_WC_REM_ACCESS_ERR,
       "then a WRITE is refused");
    connect_again();
    key = ibv_inc_rkey(key);
    need(bind2(mw, key, range(0, 64, IBV_ACCESS_REMOTE_WRITE)) == 0 && bound2(mw, key));
    need(bind2(mw, ibv_inc_rkey(key), range(0, 64, IBV_ACCESS_REMOTE_WRITE)) == 0);
    ok(vt_next(b.scq).status == IBV_WC_MW_BIND_ERR, "binding it while it is bound: bind error");
    connect_again();
    /* The specification leaves open which error it is. */
    enum ibv_wc_status status = invalidate_local(key);
    ok(vt_is_pumice() ? status == IBV_WC_LOC_QP_OP_ERR : status != IBV_WC_SUCCESS,
       "the QP is gone that it was bound through, and another one can't invalidate it: local operation error");
    connect_again();
    status = invalidate_local(b.mr->rkey);
    ok(vt_is_pumice() ? status == IBV_WC_LOC_QP_OP_ERR : status != IBV_WC_SUCCESS,
       "a region's key can't be invalidated: local operation error");
    connect_again();
    ok(ibv_dealloc_mw(mw) == 0, "the window goes");
}

static void refused(void)
{
    errno = 0;
    ok(vt_none(ibv_alloc_mw(b.pd, (enum ibv_mw_type)3), EINVAL), "a window of type 3: EINVAL");
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1), *w2 = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    struct ibv_mw_bind bind = {.bind_info = range(0, 64, IBV_ACCESS_REMOTE_WRITE)};
    need(mw && w2);
    ok(vt_fails(ibv_bind_mw(b.qp, w2, &bind), EINVAL), "ibv_bind_mw of type 2: EINVAL");
    struct ibv_mr *plain = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mw_bind_info info = range(0, 64, IBV_ACCESS_REMOTE_WRITE);
    info.mr = plain;
    int rc = bind1(mw, info, 1);
    /* A device completes the request with this error (IBA 10.6.7). The library of an adapter may refuse it before. */
    ok(rc == 0 ? vt_next(b.scq).status == IBV_WC_MW_BIND_ERR : rc == EINVAL && !vt_is_pumice(),
       "a region that allows no windows: refused");
    connect_again();
    ok(bind1(mw, range(VT_BUF - 8, 16, IBV_ACCESS_REMOTE_WRITE), 1) == 0 && vt_next(b.scq).status == IBV_WC_MW_BIND_ERR,
       "a range beyond the region: bind error");
    connect_again();
    struct ibv_pd *other = ibv_alloc_pd(b.ctx);
    struct ibv_mw *foreign = ibv_alloc_mw(other, IBV_MW_TYPE_1);
    need(foreign);
    info = range(0, 64, IBV_ACCESS_REMOTE_WRITE);
    ok(vt_fails(bind1(foreign, info, 1), EPERM), "a window and a region of different PDs: EPERM");
    need(ibv_dealloc_mw(foreign) == 0 && ibv_dealloc_pd(other) == 0);
    need(ibv_dereg_mr(plain) == 0 && ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(w2) == 0);
}

static void extended(void)
{
    struct ibv_qp *qp = vt_end_qp(&b, IBV_QPT_RC, NULL,
                                  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV);
    struct ibv_qp *peer = vt_end_qp(&a, IBV_QPT_RC, NULL, 0);
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    need(qp && peer && mw);
    vt_link(peer, &a.gid, qp, &b.gid);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
    struct ibv_mw_bind_info info = range(0, 64, IBV_ACCESS_REMOTE_WRITE);
    uint32_t key = ibv_inc_rkey(mw->rkey);
    ibv_wr_start(q);
    q->wr_id = 1, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(q, mw, key, &info);
    ok(ibv_wr_complete(q) == 0 && vt_next(b.scq).opcode == IBV_WC_BIND_MW, "ibv_wr_bind_mw");
    struct ibv_qp *saved = a.qp;
    a.qp = peer;
    ok(write_at(0, key, 7) == IBV_WC_SUCCESS, "a WRITE through it");
    ibv_wr_start(q);
    q->wr_id = 2, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_local_inv(q, key);
    struct ibv_wc wc;
    ok(ibv_wr_complete(q) == 0 && (wc = vt_next(b.scq)).opcode == IBV_WC_LOCAL_INV && wc.wr_id == 2,
       "ibv_wr_local_inv");
    ok(write_at(0, key, 7) == IBV_WC_REM_ACCESS_ERR, "then a WRITE is refused");
    a.qp = saved;
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0 && ibv_dealloc_mw(mw) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    bool one = !vt_lacks(cb, VT_MW), two = !vt_lacks(cb, VT_MW_TYPE_2);
    ok_pumice(one && two && vt_attr(cb).orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B,
              "the device has memory windows of types 1 and 2B");
    if (!one && !two)
        vt_skip("no memory windows (max_mw, device_cap_flags)");
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    connect_again();
    if (one)
        type1();
    else
        printf("# skipped: windows of type 1: %s\n", vt_lacks(cb, VT_MW));
    connect_again();
    if (two)
        type2();
    else
        printf("# skipped: windows of type 2: %s\n", vt_lacks(cb, VT_MW_TYPE_2));
    connect_again();
    if (one && two)
        refused();
    if (two)
        extended();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
