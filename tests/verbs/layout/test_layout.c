// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts by pumice/layout.h: rows become columns, by every use of local and remote keys. Also
 * nesting, access rights, bounds and refusals. No other byte changes. */
#include "tests/verbs/layout/layouts.h"

#define N 64 /* rows and columns of the matrices; cells are doubles */
#define ROW (N * sizeof(double))

static struct vt_end a, b; /* a writes, b has the windows */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static double *cell(struct vt_end *e, unsigned row, unsigned column)
{
    return (double *)(void *)e->buf + row * N + column;
}

static void fill(struct vt_end *e, double from)
{
    for (unsigned i = 0; i < N * N; i++)
        ((double *)(void *)e->buf)[i] = from + i;
}

static struct ibv_mw *window(struct vt_end *e, enum ibv_mw_type type, int descriptors)
{
    return vl_window(e->pd, type, descriptors);
}

static int post_bind(struct vt_end *e, struct ibv_mw *mw, const struct pumice_mw_bind_layout *l, unsigned access)
{
    return vl_post_bind(e->qp, mw, l, access);
}

static struct ibv_wc bind_to(struct vt_end *e, struct ibv_mw *mw, const struct pumice_mw_bind_layout *l,
                             unsigned access)
{
    need(post_bind(e, mw, l, access) == 0);
    return vt_next(e->scq);
}

/* A window of type 2 over one column of the matrix in e's buffer. */
static struct ibv_mw *column_window(struct vt_end *e, unsigned column, unsigned access)
{
    struct ibv_mw *mw = window(e, IBV_MW_TYPE_2, 1);
    struct pumice_mw_dimension dim = {.stride = ROW, .count = N};
    struct pumice_mw_bind_layout_entry entry = {
        .mr = e->mr, .addr = (uintptr_t)cell(e, 0, column), .length = sizeof(double), .interleaved = {1, 1, &dim}};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, 1, &entry};
    need(post_bind(e, mw, &l, access) == 0);
    /* it was copied */
    memset(&dim, 0xff, sizeof(dim));
    memset(&entry, 0xff, sizeof(entry));
    memset(&l, 0xff, sizeof(l));
    struct ibv_wc wc = vt_next(e->scq);
    ok(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 5, "bound to a column");
    return mw;
}

static enum ibv_wc_status rdma(enum ibv_wr_opcode op, struct ibv_sge local, uint32_t rkey, uint64_t addr)
{
    struct ibv_send_wr wr = {.sg_list = &local,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = addr, .rkey = rkey}},
                       *bad;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    return vt_next(a.scq).status;
}

/* True if b's matrix is as it was filled, except for one column, which holds a's row. */
static bool only_column(unsigned column, unsigned row)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < N; k++)
            if (*cell(&b, i, k) != (k == column ? *cell(&a, row, i) : 1e6 + i * N + k))
                return false;
    return true;
}

static void caps(struct ibv_context *ctx)
{
    struct pumice_ncm_caps c;
    uint64_t general;
    uint32_t n = 99;
    ok(pumice_query_ncm_caps(ctx, &c, sizeof(c)) == 0 && c.general_caps == 31 && c.max_mkey_ims_list_size >= 1024 &&
           c.max_mw_recursion_depth >= 8 && c.max_mw_stride_dimension >= 8,
       "all capabilities");
    ok(pumice_query_ncm_caps(ctx, (struct pumice_ncm_caps *)(void *)&general, sizeof(general)) == 0 && general == 31,
       "an older program's structure");
    struct ibv_context other = {.device = ctx->device};
    ok(pumice_query_ncm_caps(&other, &c, sizeof(c)) == EOPNOTSUPP, "another vendor's context");
    struct ibv_mw *mw = window(&b, IBV_MW_TYPE_2, 7), *plain = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    ok(pumice_mw_get_descriptor_num(mw, &n) == 0 && n == 7, "a window knows what it was allocated for");
    ok(pumice_mw_get_descriptor_num(plain, &n) == 0 && n == 0 && pumice_mw_get_lkey(plain, &n) == EINVAL,
       "an ordinary one has no descriptors and no lkey");
    struct pumice_mw_alloc_attr_ex attr = {.pd = b.pd, .type = IBV_MW_TYPE_2};
    ok(!pumice_alloc_mw_ex(&attr) && errno == EINVAL, "no descriptors");
    attr.max_descriptors = 1025;
    ok(!pumice_alloc_mw_ex(&attr) && errno == EINVAL, "too many descriptors");
    attr = (struct pumice_mw_alloc_attr_ex){.comp_mask = 1, .pd = b.pd, .type = IBV_MW_TYPE_2, .max_descriptors = 1};
    ok(!pumice_alloc_mw_ex(&attr) && errno == EINVAL, "comp_mask");
    need(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(plain) == 0);
}

static void columns(void)
{
    fill(&a, 0);
    fill(&b, 1e6);
    struct ibv_mw *mw = column_window(&b, 5, VL_ALL), *mine = column_window(&a, 9, VL_ALL);
    ok(rdma(IBV_WR_RDMA_WRITE, vt_at(&a, 3 * ROW, ROW), mw->rkey, 0) == IBV_WC_SUCCESS && only_column(5, 3),
       "a row is written into a column, and nothing else");
    ok(rdma(IBV_WR_RDMA_READ, vt_at(&a, 7 * ROW, ROW), mw->rkey, 0) == IBV_WC_SUCCESS &&
           !memcmp(cell(&a, 7, 0), cell(&a, 3, 0), ROW),
       "and read from it");
    struct ibv_sge half = {.addr = 12, .length = 20, .lkey = vl_lkey(mine)};
    memset(cell(&a, 20, 0), 0, ROW);
    ok(rdma(IBV_WR_RDMA_WRITE, half, mw->rkey, 100) == IBV_WC_SUCCESS &&
           rdma(IBV_WR_RDMA_READ, vt_at(&a, 20 * ROW, 20), mw->rkey, 100) == IBV_WC_SUCCESS &&
           !memcmp((char *)cell(&a, 20, 0), (char *)cell(&a, 1, 9) + 4, 4) &&
           !memcmp((char *)cell(&a, 20, 0) + 4, cell(&a, 2, 9), 8) &&
           !memcmp((char *)cell(&a, 20, 0) + 12, cell(&a, 3, 9), 8),
       "from a column into a column, at odd offsets");
    struct ibv_recv_wr recv = {.num_sge = 1}, *bad;
    for (uint32_t len = 8; len <= ROW;
         len += ROW - 8) { /* so small that it could travel in the completion, and large */
        struct ibv_sge to = {.addr = 0, .length = len, .lkey = vl_lkey(mw)};
        struct ibv_sge from = {.addr = 0, .length = len, .lkey = vl_lkey(mine)};
        struct ibv_send_wr send = {.sg_list = &from,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED},
                           *bad_send;
        recv.sg_list = &to;
        need(ibv_post_recv(b.qp, &recv, &bad) == 0 && ibv_post_send(a.qp, &send, &bad_send) == 0);
        ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS, "a SEND by lkeys");
        bool same = true;
        for (unsigned i = 0; i < len / 8; i++)
            same &= *cell(&a, i, 9) == *cell(&b, i, 5);
        ok(same, "arrives in the column");
    }
    ok(ibv_dereg_mr(b.mr) == EBUSY, "its region can't go");
    ok(rdma(IBV_WR_RDMA_WRITE, vt_at(&a, 0, 8), mw->rkey, ROW - 7) == IBV_WC_REM_ACCESS_ERR, "not beyond its end");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(mine) == 0);
}

static void atomics_and_rights(void)
{
    uint64_t one = 1;
    fill(&b, 0);
    struct ibv_mw *mw = column_window(&b, 2, VL_ALL);
    memcpy(cell(&b, 4, 2), &one, 8);
    struct ibv_sge s = vt_at(&a, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD}, *bad;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = 32;
    wr.wr.atomic.rkey = mw->rkey;
    wr.wr.atomic.compare_add = 41;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    uint64_t now;
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && (memcpy(&now, cell(&b, 4, 2), 8), now == 42), "an atomic in a cell");
    wr.wr.atomic.remote_addr = 36;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    ok(vt_next(a.scq).status == IBV_WC_REM_ACCESS_ERR, "not across two");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0);
    mw = column_window(&b, 2, IBV_ACCESS_REMOTE_READ);
    ok(rdma(IBV_WR_RDMA_READ, vt_at(&a, 0, 8), mw->rkey, 0) == IBV_WC_SUCCESS, "for reading only: read");
    ok(rdma(IBV_WR_RDMA_WRITE, vt_at(&a, 0, 8), mw->rkey, 0) == IBV_WC_REM_ACCESS_ERR, "but not written");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0);
    mw = column_window(&a, 2, IBV_ACCESS_REMOTE_READ);
    ok(rdma(IBV_WR_RDMA_WRITE, (struct ibv_sge){.length = 8, .lkey = vl_lkey(mw)}, b.mr->rkey, (uintptr_t)b.buf) ==
           IBV_WC_LOC_PROT_ERR,
       "without local access its lkey is none");
    connect_again();
    need(ibv_dealloc_mw(mw) == 0);
}

/* Type 1: a composite of an MR range, a column and two cells of another column by turns. */
static void nested(void)
{
    fill(&b, 0);
    struct ibv_mw *column = column_window(&b, 1, VL_ALL), *outer = window(&b, IBV_MW_TYPE_1, 3);
    struct pumice_mw_bind_layout_entry e[] = {
        {.mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = column, .addr = 16, .length = 16},
        {.mem_obj_type = PUMICE_MW_ENTRY_USE_MR, .mr = b.mr, .addr = (uintptr_t)cell(&b, 9, 0), .length = 8},
        {.mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = column, .addr = 8, .length = 8}};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE, 3, e};
    struct pumice_mw_bind bind = {.wr_id = 9, .send_flags = IBV_SEND_SIGNALED};
    uint32_t was = outer->rkey;
    bind.bind_info.layout = &l;
    bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | PUMICE_ACCESS_BIND_MW_NONCONTIG;
    ok(pumice_bind_mw(b.qp, outer, &bind) == 0 && outer->rkey != was && vt_next(b.scq).status == IBV_WC_SUCCESS,
       "a window over a window, of type 1");
    double *got = cell(&a, 0, 0);
    ok(rdma(IBV_WR_RDMA_READ, vt_at(&a, 0, 32), outer->rkey, 0) == IBV_WC_SUCCESS && got[0] == 2 * N + 1 &&
           got[1] == 3 * N + 1 && got[2] == 9 * N && got[3] == N + 1,
       "shows its pieces in order");
    ok(vl_invalidate(b.qp, b.scq, column->rkey) == IBV_WC_SUCCESS, "the inner one is invalidated");
    ok(rdma(IBV_WR_RDMA_READ, vt_at(&a, 0, 8), outer->rkey, 16) == IBV_WC_SUCCESS, "what is not of it can be read");
    ok(rdma(IBV_WR_RDMA_READ, vt_at(&a, 0, 16), outer->rkey, 16) == IBV_WC_REM_ACCESS_ERR, "what is, can't");
    connect_again();
    need(ibv_dealloc_mw(outer) == 0 && ibv_dealloc_mw(column) == 0);
}

static void refused(void)
{
    struct ibv_mw *mw = window(&b, IBV_MW_TYPE_2, 2);
    struct pumice_mw_dimension dim = {.stride = ROW, .count = N};
    struct pumice_mw_bind_layout_entry e[3] = {
        {.mr = b.mr, .addr = (uintptr_t)b.buf, .length = 8, .interleaved = {1, 1, &dim}}};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, 0, e};
    e[1] = e[2] = e[0];
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "no entries");
    l.entry_count = 3;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "more than the window has descriptors");
    l.entry_count = 2;
    l.comp_mask = 1;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "comp_mask");
    l.comp_mask = 0;
    e[1].comp_mask = 1;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "an entry's comp_mask");
    e[1].comp_mask = 0;
    e[1].interleaved.dimension_count = 9;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "nine dimensions");
    e[1].interleaved.dimension_count = 1;
    e[1].interleaved.dimension = NULL;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "dimensions that are not there");
    e[1] = e[0];
    e[1].mr = NULL;
    ok(post_bind(&b, mw, &l, VL_ALL) == EINVAL, "no region");
    e[1] = e[0];
    struct ibv_mw *plain = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    need(plain);
    ok(post_bind(&b, plain, &l, VL_ALL) == EINVAL, "an ordinary window");
    ok(post_bind(&b, mw, &l, VL_ALL | IBV_ACCESS_ON_DEMAND) == EINVAL, "other access flags");
    ok(vt_quiet(b.scq), "nothing of it was posted");
    ok(bind_to(&b, mw, &l, VL_ALL).status == IBV_WC_SUCCESS, "the sound one is bound");

    struct ibv_mw *other = window(&b, IBV_MW_TYPE_2, 2);
    e[1].addr += VT_BUF - ROW * (N - 1) - 7;
    struct ibv_wc wc = bind_to(&b, other, &l, VL_ALL);
    ok(wc.status == IBV_WC_MW_BIND_ERR && strstr(pumice_layout_strerror(wc.vendor_err), "outside"),
       "an item outside of its region");
    connect_again();
    e[1] = e[0];
    e[1].interleaved = (__typeof__(e[1].interleaved)){0};
    wc = bind_to(&b, other, &l, VL_ALL);
    ok(wc.status == IBV_WC_MW_BIND_ERR && strstr(pumice_layout_strerror(wc.vendor_err), "no dimensions"), "a mixture");
    connect_again();
    e[1] = e[0];
    wc = bind_to(&b, other, &l, VL_ALL);
    ok(wc.status == IBV_WC_SUCCESS, "and after all that a sound one again");
    need(ibv_dealloc_mw(mw) == 0 && ibv_dealloc_mw(other) == 0 && ibv_dealloc_mw(plain) == 0);
}

/* A thousand binds and invalidations, each with its own layout, posted as fast as the queue takes them. */
static void storm(void)
{
    struct ibv_mw *mw = window(&b, IBV_MW_TYPE_2, 1024);
    struct pumice_mw_dimension dim = {.stride = ROW, .count = N};
    static struct pumice_mw_bind_layout_entry e[1024];
    unsigned done = 0, posted = 0;
    bool good = true;
    while (done < 2000) {
        while (posted < 2000 && posted - done < 14) {
            struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, 1 + posted % 1024, e};
            for (unsigned i = 0; i < l.entry_count; i++)
                e[i] = (struct pumice_mw_bind_layout_entry){.mr = b.mr,
                                                            .addr = (uintptr_t)b.buf + (i + posted) % ROW,
                                                            .length = 1,
                                                            .interleaved = {1, 1, &dim}};
            struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED}, *bad;
            need(post_bind(&b, mw, &l, VL_ALL) == 0);
            inv.invalidate_rkey = mw->rkey;
            need(ibv_post_send(b.qp, &inv, &bad) == 0);
            posted += 2;
        }
        good &= vt_next(b.scq).status == IBV_WC_SUCCESS;
        done++;
    }
    ok(good, "a thousand binds and invalidations");
    need(ibv_dealloc_mw(mw) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    connect_again();
    caps(cb);
    columns();
    atomics_and_rights();
    nested();
    refused();
    storm();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
