// SPDX-License-Identifier: BSD-2-Clause
/* The daemon is killed. The requests in shared receive queues and in a matching list come back flushed, each once, by
 * the CQ in which it would have completed. Needs a daemon of its own: VT_DAEMON_PID. */
#include <fcntl.h>
#include <infiniband/tm_types.h>
#include <signal.h>

#include "tests/verbs/stop.h"
#include "tests/verbs/vt.h"

static struct vt_pair p; /* with a basic SRQ */
static struct ibv_srq *xrc, *tm;
static struct ibv_cq *xrc_cq;
static struct ibv_cq_ex *tm_cq;
static struct ibv_xrcd *domain;

static void make(struct ibv_context *ctx)
{
    struct ibv_srq_init_attr basic = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_xrcd_init_attr open = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_cq_init_attr_ex cq = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    need((p.pd = ibv_alloc_pd(ctx)) && (p.srq = ibv_create_srq(p.pd, &basic)));
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    need((domain = ibv_open_xrcd(ctx, &open)) && (xrc_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)) &&
         (tm_cq = ibv_create_cq_ex(ctx, &cq)));
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 8, .max_sge = 1},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                                                  IBV_SRQ_INIT_ATTR_XRCD,
                                     .srq_type = IBV_SRQT_XRC,
                                     .pd = p.pd,
                                     .xrcd = domain,
                                     .cq = xrc_cq};
    need((xrc = ibv_create_srq_ex(ctx, &a)));
    a.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    a.srq_type = IBV_SRQT_TM;
    a.cq = ibv_cq_ex_to_cq(tm_cq);
    a.tm_cap = (struct ibv_tm_cap){.max_num_tags = 4, .max_ops = 4};
    need((tm = ibv_create_srq_ex(ctx, &a)));
}

static int op(enum ibv_ops_wr_opcode opcode, uint64_t id, bool signaled)
{
    struct ibv_sge s = vt_sge(&p, 0, 64);
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = opcode, .flags = signaled ? IBV_OPS_SIGNALED : 0}, *bad;
    if (opcode == IBV_WR_TAG_ADD) {
        wr.tm.add.recv_wr_id = id + 100;
        wr.tm.add.sg_list = &s;
        wr.tm.add.num_sge = 1;
        wr.tm.add.mask = UINT64_MAX;
    }
    return ibv_post_srq_ops(tm, &wr, &bad);
}

/* num flushed requests, whose numbers are given, in any order, and then nothing. */
static bool flushed(struct ibv_cq *cq, int num, const uint64_t *ids)
{
    struct ibv_wc wc[16];
    bool right = vt_poll(cq, num, wc) == num;
    for (int i = 0; right && i < num; i++) {
        int found = 0;
        for (int k = 0; k < num; k++)
            found += wc[k].status == IBV_WC_WR_FLUSH_ERR && wc[k].wr_id == ids[i];
        right = found == 1;
    }
    return right && ibv_poll_cq(cq, 1, wc) == 0;
}
#define FLUSHED(cq, ...)                                                                                               \
    flushed((cq), (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)), (uint64_t[]){__VA_ARGS__})

static void check_basic(void)
{
    struct ibv_wc wc[8];
    uint64_t id = 30;
    ok(vt_poll(p.rcq, 3, wc) == 3 && wc[0].wr_id == 11 && wc[1].wr_id == 12 && wc[2].wr_id == 13 &&
           wc[2].status == IBV_WC_WR_FLUSH_ERR && (wc[2].qp_num == p.qp[0]->qp_num || wc[2].qp_num == p.qp[1]->qp_num),
       "requests of a basic SRQ are flushed in a CQ of its queue pairs");
    ok(ibv_poll_cq(p.rcq, 8, wc) == 0 && ibv_poll_cq(p.scq, 8, wc) == 0, "once");
    while (vt_srq_recv(&p, p.srq, id, 0, 64) == 0)
        id++;
    ok(id == 38 && FLUSHED(p.rcq, 30, 31, 32, 33, 34, 35, 36, 37), "what is posted later, too, as many as it holds");
    need(vt_srq_recv(&p, p.srq, 40, 0, 64) == 0);
}

/* An SRQ whose queue pairs have a CQ each. */
static struct vt_pair wide;
static struct ibv_cq *second;

static void make_wide(struct ibv_context *ctx)
{
    struct ibv_srq_init_attr basic = {.attr = {.max_wr = 8, .max_sge = 1}};
    need((wide.pd = ibv_alloc_pd(ctx)) && (wide.srq = ibv_create_srq(wide.pd, &basic)));
    vt_pair_make(&wide, ctx, NULL);
    need((second = ibv_create_cq(ctx, 16, NULL, NULL, 0)) && ibv_destroy_qp(wide.qp[1]) == 0);
    struct ibv_qp_init_attr a = {
        .send_cq = wide.scq, .recv_cq = second, .srq = wide.srq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    need((wide.qp[1] = ibv_create_qp(wide.pd, &a)));
    vt_connect(&wide);
    for (uint64_t i = 0; i < 4; i++)
        need(vt_srq_recv(&wide, wide.srq, 90 + i, 0, 64) == 0);
    for (uint64_t i = 0; i < 2; i++) {
        struct ibv_wc wc;
        need(vt_send(&wide, 0, i, 0, 8, IBV_SEND_SIGNALED) == 0 && vt_poll(wide.scq, 1, &wc) == 1);
    }
}

static void check_wide(void)
{
    struct ibv_wc wc[8];
    ok(FLUSHED(wide.rcq, 92, 93), "what waits in one CQ of an SRQ is not flushed in another");
    need(vt_srq_recv(&wide, wide.srq, 94, 0, 64) == 0);
    ok(FLUSHED(wide.rcq, 94), "what is posted later is");
    ok(vt_poll(second, 2, wc) == 2 && wc[0].wr_id == 90 && wc[0].status == IBV_WC_SUCCESS && wc[1].wr_id == 91 &&
           wc[1].status == IBV_WC_SUCCESS && ibv_poll_cq(second, 8, wc) == 0 && ibv_poll_cq(wide.rcq, 8, wc) == 0,
       "but comes when its CQ is polled, and nothing comes twice");
    uint64_t id = 200;
    while (vt_srq_recv(&wide, wide.srq, id, 0, 64) == 0)
        id++;
    ok(id == 208 && FLUSHED(second, 200, 201, 202, 203, 204, 205, 206, 207), "then the SRQ has room for all again");
    ok(ibv_destroy_qp(wide.qp[0]) == 0 && ibv_destroy_qp(wide.qp[1]) == 0 && ibv_destroy_srq(wide.srq) == 0 &&
           ibv_dereg_mr(wide.mr) == 0 && ibv_destroy_cq(wide.scq) == 0 && ibv_destroy_cq(wide.rcq) == 0 &&
           ibv_destroy_cq(second) == 0 && ibv_dealloc_pd(wide.pd) == 0,
       "and is destroyed");
    free(wide.buf);
}

/* PDs with one object each. */
static struct ibv_pd *pds[4];
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_srq *srq;
static struct ibv_qp *qp;

static void make_pds(struct ibv_context *ctx)
{
    static char memory[64];
    struct ibv_srq_init_attr basic = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_qp_init_attr a = {.send_cq = p.scq, .recv_cq = p.rcq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    for (int i = 0; i < 4; i++)
        need((pds[i] = ibv_alloc_pd(ctx)));
    need((mr = ibv_reg_mr(pds[0], memory, sizeof(memory), 0)) && (mw = ibv_alloc_mw(pds[1], IBV_MW_TYPE_2)) &&
         (srq = ibv_create_srq(pds[2], &basic)) && (qp = ibv_create_qp(pds[3], &a)));
}

static bool busy(int i)
{
    return ibv_dealloc_pd(pds[i]) == EBUSY;
}

static void check_pds(void)
{
    ok(busy(0) && ibv_dereg_mr(mr) == 0, "a PD with a memory region is busy still");
    ok(busy(1) && ibv_dealloc_mw(mw) == 0, "with a memory window");
    ok(busy(2) && ibv_destroy_srq(srq) == 0, "with an SRQ");
    ok(busy(3) && ibv_destroy_qp(qp) == 0, "with a queue pair");
    for (int i = 0; i < 4; i++)
        ok(ibv_dealloc_pd(pds[i]) == 0, "and goes after it");
}

int main(void)
{
    VT_OWN("the death of the daemon");
    const char *pid = getenv("VT_DAEMON_PID");
    struct ibv_async_event ev;
    struct ibv_wc wc[8];
    if (!pid) {
        printf("skip - VT_DAEMON_PID is not set\n");
        return 77;
    }
    struct ibv_context *ctx = vt_open();
    make(ctx);
    make_wide(ctx);
    make_pds(ctx);
    for (uint64_t i = 0; i < 4; i++)
        need(vt_srq_recv(&p, p.srq, 10 + i, 0, 64) == 0);
    for (uint64_t i = 0; i < 3; i++)
        need(vt_srq_recv(&p, xrc, 50 + i, 0, 64) == 0);
    for (uint64_t i = 0; i < 2; i++)
        need(vt_srq_recv(&p, tm, 60 + i, 0, 64) == 0);
    need(vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0 && vt_poll(p.scq, 1, wc) == 1);
    ok(vt_poll(p.rcq, 1, wc) == 1 && wc[0].status == IBV_WC_SUCCESS && wc[0].wr_id == 10, "a message before");
    need(op(IBV_WR_TAG_ADD, 70, true) == 0 && vt_poll(ibv_cq_ex_to_cq(tm_cq), 1, wc) == 1);
    ok(wc[0].status == IBV_WC_SUCCESS && wc[0].wr_id == 70, "an entry before");
    /* The entry without a completion is in the list when the next operation is complete. */
    need(op(IBV_WR_TAG_ADD, 71, false) == 0 && op(IBV_WR_TAG_SYNC, 79, true) == 0);
    need(vt_poll(ibv_cq_ex_to_cq(tm_cq), 1, wc) == 1 && wc[0].wr_id == 79);

    vt_stop_daemon((pid_t)atoi(pid));
    need(op(IBV_WR_TAG_SYNC, 72, true) == 0 && op(IBV_WR_TAG_ADD, 73, true) == 0);
    need(kill((pid_t)atoi(pid), SIGKILL) == 0);
    need(ibv_get_async_event(ctx, &ev) == 0 && ev.event_type == IBV_EVENT_DEVICE_FATAL);
    check_basic();
    check_wide();
    check_pds();
    ok(FLUSHED(xrc_cq, 50, 51, 52), "those of an XRC SRQ, in its own");
    ok(FLUSHED(ibv_cq_ex_to_cq(tm_cq), 72, 73, 170, 171, 60, 61),
       "of a matching list: signaled operations, then entries, then buffers; an entry whose ADD is flushed was none");
    ok(op(IBV_WR_TAG_ADD, 80, false) == 0 && op(IBV_WR_TAG_ADD, 81, true) == 0 &&
           FLUSHED(ibv_cq_ex_to_cq(tm_cq), 81, 180),
       "and what is posted later");
    ok(ibv_destroy_srq(p.srq) == EBUSY && ibv_dealloc_pd(p.pd) == EBUSY,
       "an SRQ and a PD that are in use are busy still");
    ok(ibv_destroy_srq(tm) == 0 && ibv_destroy_srq(xrc) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(tm_cq)) == 0 &&
           ibv_destroy_cq(xrc_cq) == 0 && ibv_close_xrcd(domain) == 0,
       "all can be destroyed");
    ok(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_srq(p.srq) == EBUSY, "one of two queue pairs is left");
    ok(ibv_destroy_qp(p.qp[1]) == 0 && ibv_dealloc_pd(p.pd) == EBUSY && ibv_destroy_srq(p.srq) == 0,
       "then the SRQ can go, also with requests outstanding");
    ok(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0 &&
           ibv_dealloc_pd(p.pd) == 0 && ibv_close_device(ctx) == 0,
       "and the PD after its last object");
    free(p.buf);
    return vt_failed;
}
