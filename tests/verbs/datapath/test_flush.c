// SPDX-License-Identifier: BSD-2-Clause
/* FLUSH, as programs call it that were built with a later rdma-core. */
#include "src/verbs/base/verbs_v45.h"
#include "tests/verbs/ends.h"

static struct vt_end a, b;
static struct ibv_mr *open_mr; /* all of b.buf, to be flushed */

static void flush(struct ibv_qp_ex *q, uint32_t rkey, uint32_t at, size_t len, unsigned placement, unsigned selectivity)
{
    ((struct vb_qp_ex_v45 *)(void *)q)
        ->wr_flush(q, rkey, (uintptr_t)b.buf + at, len, (uint8_t)placement, (uint8_t)selectivity);
}

static void grant(struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr attr = {.qp_access_flags = access};
    need(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);
}

static struct ibv_qp_ex *connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, VB_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE)) &&
         (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    grant(b.qp, IBV_ACCESS_REMOTE_WRITE | VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_FLUSH_PERSISTENT);
    return ibv_qp_to_qp_ex(a.qp);
}

/* One FLUSH on a new connection; how it completed, -1: it was not accepted. */
static int alone(uint32_t rkey, uint32_t at, size_t len, unsigned placement, unsigned selectivity)
{
    struct ibv_qp_ex *q = connect_again();
    ibv_wr_start(q);
    q->wr_id = 9, q->wr_flags = IBV_SEND_SIGNALED;
    flush(q, rkey, at, len, placement, selectivity);
    int rc = ibv_wr_complete(q);
    if (rc)
        return rc == EINVAL ? -1 : -2;
    return vt_next(a.scq).status;
}

static void works(void)
{
    struct ibv_qp_ex *q = connect_again();
    struct ibv_wc wc[2];
    strcpy(a.buf, "to be seen");
    ibv_wr_start(q);
    q->wr_id = 1, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(q, open_mr->rkey, (uintptr_t)b.buf + 256);
    ibv_wr_set_sge(q, a.mr->lkey, (uintptr_t)a.buf, 11);
    q->wr_id = 2;
    flush(q, open_mr->rkey, 256, 11, VB_FLUSH_GLOBAL, 0);
    ok(ibv_wr_complete(q) == 0 && vt_poll(a.scq, 2, wc) == 2 && wc[0].wr_id == 1 && wc[1].wr_id == 2 &&
           wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS && (int)wc[1].opcode == VB_WC_FLUSH,
       "a WRITE and a FLUSH of its range");
    ok(!strcmp(b.buf + 256, "to be seen"), "which has arrived");
    ok(alone(open_mr->rkey, 0, 0, VB_FLUSH_GLOBAL, VB_FLUSH_MR) == IBV_WC_SUCCESS, "the whole region");
    ok(alone(open_mr->rkey, 0, VT_BUF, VB_FLUSH_GLOBAL, 0) == IBV_WC_SUCCESS, "a range that is all of it");
}

static void refused(void)
{
    ok(alone(open_mr->rkey, 1, VT_BUF, VB_FLUSH_GLOBAL, 0) == IBV_WC_REM_ACCESS_ERR,
       "beyond the region: remote access error");
    ok(alone(b.mr->rkey, 0, 8, VB_FLUSH_GLOBAL, 0) == IBV_WC_REM_ACCESS_ERR,
       "a region that is not to be flushed: remote access error");
    ok(alone(open_mr->rkey, 0, 8, VB_FLUSH_PERSISTENT, 0) == IBV_WC_REM_ACCESS_ERR,
       "to persistence: remote access error, since no region has that");
    ok(alone(open_mr->rkey, 0, 8, 0, 0) == -1, "to nothing: EINVAL");
    ok(alone(open_mr->rkey, 0, 8, 4, 0) == -1, "to what there is not: EINVAL");
    ok(alone(open_mr->rkey, 0, 8, VB_FLUSH_GLOBAL, 2) == -1, "of what there is not: EINVAL");
    ok(alone(open_mr->rkey, 0, ((size_t)1 << 31) + 1, VB_FLUSH_GLOBAL, 0) == -1, "more than a message: EINVAL");
    struct ibv_qp_ex *q = connect_again();
    grant(b.qp, IBV_ACCESS_REMOTE_WRITE);
    ibv_wr_start(q);
    q->wr_flags = IBV_SEND_SIGNALED;
    flush(q, open_mr->rkey, 0, 8, VB_FLUSH_GLOBAL, 0);
    ok(ibv_wr_complete(q) == 0 && vt_next(a.scq).status == IBV_WC_REM_INV_REQ_ERR,
       "the QP doesn't grant it: invalid request");
    ibv_wr_start(q);
    flush(q, open_mr->rkey, 0, 8, VB_FLUSH_GLOBAL, 0);
    ibv_wr_set_sge(q, a.mr->lkey, (uintptr_t)a.buf, 8);
    ok(vt_fails(ibv_wr_complete(q), EINVAL), "it takes no SGE: EINVAL");
    struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)VB_WR_FLUSH};
    ok(vt_fails(vt_end_post(&a, &wr, 0, 0), EINVAL), "by ibv_post_send: EINVAL");
    ok(vt_none(ibv_reg_mr(b.pd, b.buf, 64, IBV_ACCESS_LOCAL_WRITE | (int)VB_ACCESS_FLUSH_PERSISTENT), EINVAL),
       "a region of persistent memory: EINVAL");
    struct ibv_qp *uc = vt_end_qp(&a, IBV_QPT_UC, NULL, VB_EX_WITH_FLUSH);
    ok(!uc && errno == EOPNOTSUPP, "a UC QP that flushes: EOPNOTSUPP");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_FLUSH);
    vt_needs(cb, VT_FLUSH);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((open_mr = ibv_reg_mr(b.pd, b.buf, VT_BUF, VT_ALL_ACCESS | (int)VB_ACCESS_FLUSH_GLOBAL)));
    works();
    refused();
    need(ibv_dereg_mr(open_mr) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
