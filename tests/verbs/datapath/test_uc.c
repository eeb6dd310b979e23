// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable connections: the operations that they carry. An error at the receiver does not affect the sender. */
#include "tests/verbs/ends.h"

static struct vt_end a, b;

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_UC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_UC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static int post(enum ibv_wr_opcode op, uint32_t at, uint32_t len, uint32_t remote, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = 3,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htonl(77),
                             .wr.rdma = {.remote_addr = (uintptr_t)b.buf + remote, .rkey = rkey}};
    return vt_end_post(&a, &wr, at, len);
}

static void carries(void)
{
    bool sends = true, writes = true;
    for (uint32_t len = 0; len <= 20000; len = len * 3 + 1) {
        for (uint32_t k = 0; k < len; k++)
            a.buf[k] = (char)(k * 13 + len);
        memset(b.buf, 0, VT_BUF);
        need(vt_end_recv(&b, len, 0, 30000) == 0 && post(IBV_WR_SEND, 0, len, 0, 0) == 0);
        struct ibv_wc s = vt_next(a.scq), r = vt_next(b.rcq);
        sends &= s.status == IBV_WC_SUCCESS && r.status == IBV_WC_SUCCESS && r.wr_id == len && r.byte_len == len &&
                 !memcmp(a.buf, b.buf, len);
        memset(b.buf, 0, VT_BUF);
        need(vt_end_recv(&b, len, 60000, 8) == 0 && post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, len, 100, b.mr->rkey) == 0);
        s = vt_next(a.scq), r = vt_next(b.rcq);
        writes &= s.status == IBV_WC_SUCCESS && r.status == IBV_WC_SUCCESS && r.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
                  r.imm_data == htonl(77) && r.byte_len == len && !memcmp(a.buf, b.buf + 100, len);
    }
    ok(sends, "SENDs of 0 to 20000 bytes");
    ok(writes, "WRITEs with immediate data");
    strcpy(a.buf, "plain write");
    need(post(IBV_WR_RDMA_WRITE, 0, 12, 500, b.mr->rkey) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
    double end = vt_now() + 2;
    while (strcmp(b.buf + 500, "plain write") && vt_now() < end)
        usleep(1000);
    ok(!strcmp(b.buf + 500, "plain write"), "a WRITE");
}

static void silent(void)
{
    need(post(IBV_WR_SEND, 0, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_quiet(b.rcq), "no receive request: sent, and dropped");
    need(post(IBV_WR_RDMA_WRITE, 0, 8, 0, b.mr->rkey ^ 0x55) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "a wrong rkey: sent");
    memset(b.buf, 0, 64);
    strcpy(a.buf, "later");
    need(vt_end_recv(&b, 9, 0, 64) == 0 && post(IBV_WR_SEND, 0, 6, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 9 && !strcmp(b.buf, "later"),
       "the connection goes on");
}

static void refused(void)
{
    ok(vt_refuses(post(IBV_WR_RDMA_READ, 0, 8, 0, b.mr->rkey), EINVAL, a.scq), "a READ: EINVAL");
    connect_again();
    ok(vt_refuses(post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, b.mr->rkey), EINVAL, a.scq), "an atomic: EINVAL");
    struct ibv_qp *qp = vt_end_qp(&a, IBV_QPT_UC, NULL, IBV_QP_EX_WITH_RDMA_READ);
    ok(!qp && errno == EOPNOTSUPP, "an extended QP with READs: EOPNOTSUPP");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_UNRELIABLE);
    vt_needs(cb, VT_UNRELIABLE);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    connect_again();
    carries();
    silent();
    refused();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
