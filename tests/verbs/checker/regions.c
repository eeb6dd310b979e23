// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes with memory regions that the checker finds, and the right way beside each: regions that the program moves, and all
 * calls that register one. tests/e2e/cli/check.sh runs them one by one. Usage: regions NAME wrong|right */
#include <stdlib.h>

#include "tests/verbs/later.h"
#include "tests/verbs/vt.h"

static struct vt_pair p;
static bool wrong;

static struct ibv_wc take(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = 255};
    need(vt_poll(cq, 1, &wc) == 1);
    return wc;
}

static int receive(uint64_t addr, uint32_t length, uint32_t lkey)
{
    struct ibv_sge s = {addr, length, lkey};
    struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_recv(p.qp[1], &wr, &bad);
}

/* A region is deregistered while a message waits for the peer's receive request. In its error state, the queue pair is done with
 * the memory. */
static void dereg_after_error(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)p.buf, 64, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    if (!wrong)
        need(vt_to_state(p.qp[0], IBV_QPS_ERR) == 0);
    need(ibv_dereg_mr(mr) == 0);
}

/* Memory is freed that a receive request names. The right program has moved the region away from it. */
static void freed_moved(void)
{
    char *old = malloc(8192);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, old, 8192, IBV_ACCESS_LOCAL_WRITE);
    need(receive((uintptr_t)old, 512, mr->lkey) == 0);
    if (!wrong)
        need(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.buf + 8192, 4096, 0) == 0);
    free(old);
    need(vt_to_state(p.qp[1], IBV_QPS_ERR) == 0 && take(p.rcq).status == IBV_WC_WR_FLUSH_ERR && ibv_dereg_mr(mr) == 0);
}

/* A region of this call is to be filled: with the wrong rights, or beyond its end. */
static void fill(struct ibv_mr *mr, uint64_t addr, bool beyond)
{
    need(mr && receive(addr, wrong && beyond ? 4097 : 4096, mr->lkey) == 0);
    need(vt_to_state(p.qp[1], IBV_QPS_ERR) == 0 && take(p.rcq).status == IBV_WC_WR_FLUSH_ERR && ibv_dereg_mr(mr) == 0);
}

static void reg_mr_ex(void)
{
    need_function(ibv_reg_mr_ex);
    struct vb_mr_attr_v65 attr = {.length = 4096,
                                  .access = wrong ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE,
                                  .mask = VB_REG_MR_ADDR | VB_REG_MR_IOVA,
                                  .iova = 0x10000,
                                  .addr = p.buf};
    fill(ibv_reg_mr_ex(p.pd, (struct ibv_mr_init_attr *)(void *)&attr), 0x10000, false);
}

static void reg_buf_mr(void)
{
    struct ibv_buf *buf;
    need_function(ibv_reg_buf_mr);
    char *at = ibv_alloc_buf(p.pd, 8192, &buf);
    fill(ibv_reg_buf_mr(p.pd, buf, at, 4096, IBV_ACCESS_LOCAL_WRITE), (uintptr_t)at, true);
    ibv_free_buf(buf);
}

static void reg_mr_iova2(void)
{
    unsigned access = wrong ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE;
    fill(ibv_reg_mr_iova2(p.pd, p.buf, 4096, 0x20000, access), 0x20000, false);
}

static void reg_dm_mr(void)
{
    struct ibv_alloc_dm_attr attr = {.length = 8192};
    struct ibv_dm *dm = ibv_alloc_dm(p.ctx, &attr);
    fill(dm ? ibv_reg_dm_mr(p.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED) : NULL, 0, true);
    need(ibv_free_dm(dm) == 0);
}

static const struct {
    const char *name;
    void (*make)(void);
} cases[] = {
    {"dereg-after-error", dereg_after_error},
    {"freed-moved", freed_moved},
    {"reg-mr-ex", reg_mr_ex},
    {"reg-buf-mr", reg_buf_mr},
    {"reg-mr-iova2", reg_mr_iova2},
    {"reg-dm-mr", reg_dm_mr},
};

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    wrong = strcmp(argv[2], "wrong") == 0;
    vt_pair_make(&p, vt_open(), NULL);
    vt_connect(&p);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].make();
    }
    need(vt_pair_end(&p) && ibv_close_device(p.ctx) == 0);
    return vt_failed;
}
