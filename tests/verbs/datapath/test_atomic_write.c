// SPDX-License-Identifier: BSD-2-Clause
/* ATOMIC WRITE, by ibv_post_send and by ibv_wr_atomic_write. */
#include "tests/verbs/ends.h"

static struct vt_end a, b;

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, IBV_QP_EX_WITH_ATOMIC_WRITE)) &&
         (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static int post(uint32_t at, uint32_t len, uint32_t remote, unsigned flags)
{
    struct ibv_send_wr wr = {.wr_id = 6,
                             .opcode = IBV_WR_ATOMIC_WRITE,
                             .send_flags = IBV_SEND_SIGNALED | flags,
                             .wr.rdma = {.remote_addr = (uintptr_t)b.buf + remote, .rkey = b.mr->rkey}};
    return vt_end_post(&a, &wr, at, len);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_ATOMIC_WRITE);
    vt_needs(cb, VT_ATOMIC_WRITE);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    connect_again();
    memcpy(a.buf, "12345678abcdefgh", 16);
    need(post(0, 8, 64, 0) == 0);
    struct ibv_wc wc = vt_next(a.scq);
    ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_ATOMIC_WRITE && wc.wr_id == 6 &&
           !memcmp(b.buf + 64, "12345678", 9),
       "eight bytes of an SGE");
    need(post(8, 8, 72, IBV_SEND_INLINE) == 0);
    memset(a.buf + 8, 0, 8); /* the bytes were taken when the request was posted */
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    memcpy(a.buf + 8, "abcdefgh", 8);
    ok(!memcmp(b.buf + 64, "12345678abcdefgh", 17), "eight bytes inline");
    ok(vt_fails(post(0, 7, 64, 0), EINVAL) && vt_fails(post(0, 9, 64, 0), EINVAL), "seven or nine: EINVAL");
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(a.qp);
    ibv_wr_start(q);
    q->wr_id = 7, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(q, b.mr->rkey, (uintptr_t)b.buf + 128, "ABCDEFGH");
    ok(ibv_wr_complete(q) == 0 && vt_next(a.scq).wr_id == 7 && !memcmp(b.buf + 128, "ABCDEFGH", 9),
       "ibv_wr_atomic_write");
    ibv_wr_start(q);
    ibv_wr_atomic_write(q, b.mr->rkey, (uintptr_t)b.buf + 128, "ABCDEFGH");
    ibv_wr_set_sge(q, a.mr->lkey, (uintptr_t)a.buf, 8);
    ok(vt_fails(ibv_wr_complete(q), EINVAL), "it takes no SGE: EINVAL");
    need(post(8, 8, 65, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_REM_INV_REQ_ERR && !memcmp(b.buf + 64, "12345678", 8),
       "an address that is not aligned: invalid request");
    connect_again();
    need(post(8, 8, VT_BUF, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_REM_ACCESS_ERR, "beyond the region: remote access error");
    connect_again();
    struct ibv_sge foreign = {.addr = (uintptr_t)a.buf, .length = 8, .lkey = a.mr->lkey ^ 1};
    struct ibv_send_wr wr = {.sg_list = &foreign,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey}},
                       *bad;
    ok(ibv_post_send(a.qp, &wr, &bad) == 0 && vt_next(a.scq).status == IBV_WC_LOC_PROT_ERR, "a wrong lkey");
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
