// SPDX-License-Identifier: BSD-2-Clause
/* Windows over layouts at the limits that the device advertises; each is used for a transfer. A billion items cost no
 * more than one. Also rare uses: shared receive queues, and invalidation by the peer. */
#include "tests/verbs/layout/layouts.h"

#define MANY 1000000000u

static struct vt_end a, b;
static struct pumice_ncm_caps caps;

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static enum ibv_wc_status rdma(enum ibv_wr_opcode op, uint32_t at, uint32_t len, const struct ibv_mw *mw, uint64_t off)
{
    struct ibv_send_wr wr = {.opcode = op, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.rkey = mw->rkey;
    wr.wr.rdma.remote_addr = off;
    need(vt_end_post(&a, &wr, at, len) == 0);
    return vt_next(a.scq).status;
}

static struct ibv_mw *bound(unsigned type, uint32_t count, struct pumice_mw_bind_layout_entry *e)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_2, (int)count);
    struct pumice_mw_bind_layout l = {0, (enum pumice_mw_bind_layout_type)type, count, e};
    need(vl_post_bind(b.qp, mw, &l, VL_ALL) == 0);
    struct ibv_wc wc = vt_next(b.scq);
    if (wc.status != IBV_WC_SUCCESS)
        printf("# %s\n", pumice_layout_strerror(wc.vendor_err));
    need(wc.status == IBV_WC_SUCCESS);
    return mw;
}

static void fill(void)
{
    for (int i = 0; i < VT_BUF; i++) {
        a.buf[i] = (char)(i * 11 + 5);
        b.buf[i] = (char)(i * 7 + i / 251);
    }
}

/* --- at the limits */

/* As many dimensions as there may be, of two items each, with strides that don't join: bit d of an item's number counts
 * stride[d]. */
static void dimensions(void)
{
    struct pumice_mw_dimension dim[8];
    struct pumice_mw_bind_layout_entry e = {
        .mr = b.mr, .addr = (uintptr_t)b.buf, .length = 1, .interleaved = {1, caps.max_mw_stride_dimension, dim}};
    uint64_t stride = 3;
    bool right = caps.max_mw_stride_dimension == 8;
    need(right);
    for (unsigned d = 0; d < 8; d++, stride = stride * 2 + 1)
        dim[d] = (struct pumice_mw_dimension){stride, 2};
    fill();
    struct ibv_mw *mw = bound(1, 1, &e);
    right &= rdma(IBV_WR_RDMA_READ, 0, 256, mw, 0) == IBV_WC_SUCCESS;
    for (unsigned i = 0; i < 256; i++) {
        uint64_t at = 0;
        for (unsigned d = 0; d < 8; d++)
            at += (i >> d & 1) * dim[d].stride;
        right &= a.buf[i] == b.buf[at];
    }
    ok(right, "eight dimensions");
    need(ibv_dealloc_mw(mw) == 0);
}

/* As many entries as there may be, one byte each, backwards. */
static void entries(void)
{
    static struct pumice_mw_bind_layout_entry e[1024];
    bool right = caps.max_mkey_ims_list_size == 1024;
    for (unsigned i = 0; i < 1024; i++)
        e[i] = (struct pumice_mw_bind_layout_entry){.mr = b.mr, .addr = (uintptr_t)b.buf + 2 * (1023 - i), .length = 1};
    fill();
    struct ibv_mw *mw = bound(0, 1024, e);
    right &= rdma(IBV_WR_RDMA_WRITE, 0, 1024, mw, 0) == IBV_WC_SUCCESS;
    for (unsigned i = 0; i < 1024; i++)
        right &= b.buf[2 * (1023 - i)] == a.buf[i] && b.buf[2 * i + 1] == (char)((2 * i + 1) * 7 + (2 * i + 1) / 251);
    ok(right, "1024 entries, and the bytes between them as they were");
    need(ibv_dealloc_mw(mw) == 0);
}

/* Each level shows every second byte of the one below. */
static void depth(void)
{
    struct ibv_mw *level[8];
    bool right = caps.max_mw_recursion_depth == 8;
    fill();
    for (unsigned i = 0; i < 8; i++) {
        struct pumice_mw_dimension dim = {2, 16384 >> i};
        struct pumice_mw_bind_layout_entry e = {
            .mr = b.mr, .addr = (uintptr_t)b.buf, .length = 1, .interleaved = {1, 1, &dim}};
        if (i) {
            e.mem_obj_type = PUMICE_MW_ENTRY_USE_MW;
            e.mw = level[i - 1];
            e.addr = 0;
        }
        level[i] = bound(1, 1, &e);
    }
    right &= rdma(IBV_WR_RDMA_READ, 0, 128, level[7], 0) == IBV_WC_SUCCESS;
    for (unsigned i = 0; i < 128; i++)
        right &= a.buf[i] == b.buf[256 * i];
    ok(right, "eight levels");
    ok(vl_invalidate(b.qp, b.scq, level[0]->rkey) == IBV_WC_SUCCESS &&
           rdma(IBV_WR_RDMA_READ, 0, 1, level[7], 0) == IBV_WC_REM_ACCESS_ERR,
       "the lowest one goes: nothing of it is left");
    connect_again();
    for (unsigned i = 0; i < 8; i++)
        need(ibv_dealloc_mw(level[i]) == 0);
}

/* --- a billion items */

/* KiB of the daemon's memory; 0: that can't be known. */
static long resident(void)
{
    char path[64];
    long all, here = 0;
    const char *pid = getenv("VT_DAEMON_PID");
    snprintf(path, sizeof(path), "/proc/%s/statm", pid ? pid : "-");
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &all, &here) != 2)
        here = 0;
    fclose(f);
    return here * (sysconf(_SC_PAGESIZE) / 1024);
}

static void billions(void)
{
    struct pumice_mw_dimension dim = {0, MANY};
    struct pumice_mw_bind_layout_entry e = {
        .mr = b.mr, .addr = (uintptr_t)b.buf + 64, .length = 8, .interleaved = {1, 1, &dim}};
    struct ibv_mw *mw[64];
    fill();
    need(ibv_dealloc_mw(bound(1, 1, &e)) == 0);
    long before = resident();
    double begin = vt_now();
    for (unsigned i = 0; i < 64; i++)
        mw[i] = bound(1, 1, &e);
    ok(vt_now() - begin < 10, "64 windows over a billion items each are bound while a listed one would not be");
    ok(resident() - before < 4096, "and take no memory for them");
    uint64_t end = 8ull * MANY;
    ok(rdma(IBV_WR_RDMA_READ, 0, 9, mw[63], end - 9) == IBV_WC_SUCCESS && a.buf[0] == b.buf[71] &&
           !memcmp(a.buf + 1, b.buf + 64, 8),
       "their last bytes");
    ok(rdma(IBV_WR_RDMA_WRITE, 100, 1, mw[5], end - 1) == IBV_WC_SUCCESS && b.buf[71] == a.buf[100], "can be written");
    ok(rdma(IBV_WR_RDMA_READ, 0, 2, mw[5], end - 1) == IBV_WC_REM_ACCESS_ERR, "and there is none behind");
    connect_again();
    for (unsigned i = 0; i < 64; i++)
        need(ibv_dealloc_mw(mw[i]) == 0);
}

/* --- rare uses */

static void shared_queue(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 3}};
    struct ibv_srq *srq = ibv_create_srq(b.pd, &init);
    struct ibv_qp *from = vt_end_qp(&a, IBV_QPT_RC, NULL, 0), *to = vt_end_qp(&b, IBV_QPT_RC, srq, 0), *saved = a.qp;
    need(srq && from && to);
    vt_link(from, &a.gid, to, &b.gid);
    struct ibv_mw *mw = vl_items(b.qp, b.scq, b.mr, b.buf + 4096, 3, 10, 400, IBV_ACCESS_LOCAL_WRITE);
    bool right = true;
    for (uint32_t len = 20; len <= 1020; len += 1000) { /* so small that it may travel in the completion, and large */
        struct ibv_sge list[] = {
            vt_at(&b, 0, 7), {.addr = 5, .length = len - 17, .lkey = vl_lkey(mw)}, vt_at(&b, 7, 10)};
        struct ibv_recv_wr recv = {.sg_list = list, .num_sge = 3}, *bad;
        struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
        fill();
        need(ibv_post_srq_recv(srq, &recv, &bad) == 0);
        a.qp = from;
        need(vt_end_post(&a, &send, 0, len) == 0);
        right &= vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS;
        for (uint32_t i = 0; i < len; i++) {
            uint32_t in = i - 7 + 5, at = i < 7 ? i : i >= len - 10 ? 7 + i - (len - 10) : 4096 + in / 3 * 10 + in % 3;
            right &= b.buf[at] == a.buf[i];
            b.buf[at] = (char)(at * 7 + at / 251);
        }
        for (int i = 0; i < VT_BUF; i++)
            right &= b.buf[i] == (char)(i * 7 + i / 251);
    }
    ok(right, "received by a shared queue in a list of a region, a window and a region");
    a.qp = saved;
    need(ibv_destroy_qp(from) == 0 && ibv_destroy_qp(to) == 0 && ibv_destroy_srq(srq) == 0 && ibv_dealloc_mw(mw) == 0);
}

static void invalidated_by_the_peer(void)
{
    struct ibv_mw *mw = vl_items(b.qp, b.scq, b.mr, b.buf, 8, 64, 100, VL_ALL);
    struct ibv_send_wr inv = {.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED};
    inv.invalidate_rkey = mw->rkey;
    ok(rdma(IBV_WR_RDMA_WRITE, 0, 800, mw, 0) == IBV_WC_SUCCESS, "the peer writes,");
    need(vt_end_recv(&b, 4, 32768, 64) == 0 && vt_end_post(&a, &inv, 0, 8) == 0);
    struct ibv_wc sent = vt_next(a.scq), wc = vt_next(b.rcq);
    ok(sent.status == IBV_WC_SUCCESS && wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_INV) &&
           wc.invalidated_rkey == mw->rkey,
       "and gives the window back");
    fill();
    ok(rdma(IBV_WR_RDMA_WRITE, 0, 8, mw, 0) == IBV_WC_REM_ACCESS_ERR && b.buf[0] == 0, "then its key opens nothing");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need(pumice_query_ncm_caps(cb, &caps, sizeof(caps)) == 0);
    connect_again();
    dimensions();
    entries();
    depth();
    billions();
    shared_queue();
    invalidated_by_the_peer();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
