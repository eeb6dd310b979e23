// SPDX-License-Identifier: BSD-2-Clause
/* A process has no descriptors or no address space left. A call that needs one fails and leaves nothing behind.
 * Existing objects keep working. */
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/verbs/vt.h"

static struct ibv_context *ctx;
static struct vt_pair p;
static struct ibv_comp_channel *ch;
static struct ibv_xrcd *xrcd;

/* More rounds than the rings have places. */
static void traffic(const char *what)
{
    struct ibv_wc wc[8];
    bool right = true;
    for (int round = 0; right && round < 10; round++) {
        for (uint64_t i = 0; i < 4; i++)
            right &= vt_srq_recv(&p, p.srq, i, 1024, 8) == 0;
        for (uint64_t i = 0; i < 4; i++)
            right &= vt_send(&p, 0, i, 0, 8, IBV_SEND_SIGNALED) == 0;
        right &= vt_poll(p.scq, 4, wc) == 4 && vt_poll(p.rcq, 4, wc + 4) == 4;
        for (int i = 0; right && i < 8; i++)
            right = wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == (uint64_t)i % 4;
    }
    ok(right, what);
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr a = {
        .send_cq = p.scq, .recv_cq = p.rcq, .srq = p.srq, .cap = {4, 0, 1, 0, 0}, .qp_type = IBV_QPT_RC};
    errno = 0;
    return ibv_create_qp(p.pd, &a);
}

static struct ibv_qp *make_target(void)
{
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    errno = 0;
    return ibv_create_qp_ex(ctx, &a);
}

static struct ibv_srq *make_srq(void)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 2}};
    errno = 0;
    return ibv_create_srq(p.pd, &a);
}

static struct ibv_cq *make_cq(void)
{
    errno = 0;
    return ibv_create_cq(ctx, 16, NULL, ch, 0);
}

static bool make_channel(void)
{
    struct ibv_comp_channel *c = ibv_create_comp_channel(ctx);
    return c && ibv_destroy_comp_channel(c) == 0;
}

static int resize_srq(uint32_t max_wr)
{
    struct ibv_srq_attr a = {.max_wr = max_wr};
    return ibv_modify_srq(p.srq, &a, IBV_SRQ_MAX_WR);
}

static void no_descriptors(void)
{
    struct rlimit was;
    bool refused = true;
    int next = dup(STDIN_FILENO);
    close(next);
    need(next > 0 && getrlimit(RLIMIT_NOFILE, &was) == 0 &&
         setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, was.rlim_max}) == 0);
    for (int i = 0; i < 5000; i++) { /* more than a context may have */
        errno = 0;
        refused &= !make_channel() && errno == EMFILE;
    }
    ok(refused, "no descriptor: no channel, EMFILE");
    ok(!make_cq() && errno == EMFILE, "no CQ");
    ok(!make_srq() && errno == EMFILE, "no SRQ");
    ok(!make_qp() && errno == EMFILE, "no QP");
    ok(!make_target() && errno == EMFILE, "no XRC target");
    ok(ibv_resize_cq(p.scq, 200) == EMFILE, "a CQ keeps its size");
    ok(resize_srq(100) == EMFILE, "so does an SRQ");
    need(setrlimit(RLIMIT_NOFILE, &was) == 0);
    traffic("both work on");
    ok(make_channel(), "there can be channels again");
}

/* Bytes that the process has mapped. */
static size_t mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    need(f && fscanf(f, "%zu", &pages) == 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void no_address_space(void)
{
    struct ibv_device_attr d;
    struct rlimit was;
    need(ibv_query_device(ctx, &d) == 0 && resize_srq((uint32_t)d.max_srq_wr) == 0 && resize_srq(16) == 0);
    need(getrlimit(RLIMIT_AS, &was) == 0 &&
         setrlimit(RLIMIT_AS, &(struct rlimit){mapped() + (512 << 10), was.rlim_max}) == 0);
    int cq = ibv_resize_cq(p.scq, d.max_cqe), srq = resize_srq((uint32_t)d.max_srq_wr);
    need(setrlimit(RLIMIT_AS, &was) == 0);
    ok(cq == ENOMEM && srq == ENOMEM, "no address space: CQ and SRQ keep their sizes");
    traffic("both work on");
    ok(ibv_resize_cq(p.scq, 100) == 0 && p.scq->cqe >= 100 && resize_srq(100) == 0, "they can be resized again");
    traffic("and work on");
}

int main(void)
{
    VT_OWN("a process without descriptors or address space");
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    ctx = vt_open();
    p.pd = ibv_alloc_pd(ctx);
    need(p.pd && (p.srq = make_srq()) && (p.scq = ibv_create_cq(ctx, 8, NULL, NULL, 0)) &&
         (p.rcq = ibv_create_cq(ctx, 8, NULL, NULL, 0)));
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    need((ch = ibv_create_comp_channel(ctx)) && (xrcd = ibv_open_xrcd(ctx, &domain)));
    no_descriptors();
    no_address_space();
    ok(ibv_close_xrcd(xrcd) == 0 && ibv_destroy_comp_channel(ch) == 0, "no target and no CQ was left behind");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && ibv_dereg_mr(p.mr) == 0);
    ok(ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0, "nor a QP");
    ok(ibv_destroy_srq(p.srq) == 0 && ibv_dealloc_pd(p.pd) == 0 && ibv_close_device(ctx) == 0, "nor an SRQ");
    free(p.buf);
    return vt_failed;
}
