// SPDX-License-Identifier: BSD-2-Clause
/* Windows over layouts that go away in the middle of a transfer: invalidated, deallocated, or with their QP, their
 * region or their memory. The bytes that have arrived stay, the rest is refused, and no byte between the items ever
 * changes. */
#include <string.h>
#include <sys/mman.h>

#include "tests/verbs/layout/layouts.h"

#define ITEM 8u
#define STRIDE 64u
#define ITEMS 16384u
#define BYTES (ITEMS * ITEM)
#define MEMORY (ITEMS * STRIDE)

static struct vt_end a, b; /* a sends, b has the windows */
static uint8_t *memory; /* b's */
static struct ibv_mr *region;
static uint8_t *plain; /* a's, BYTES of it */
static struct ibv_mr *plain_mr;
static struct ibv_mw *inner, *outer;
static unsigned cut, whole; /* transfers that were refused midway, or at all; and that were not */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && (!b.qp || ibv_destroy_qp(b.qp) == 0));
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static void make_windows(void)
{
    need((memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
    memset(memory, 0xee, MEMORY);
    need((region = ibv_reg_mr(b.pd, memory, MEMORY, VT_ALL_ACCESS)));
    inner = vl_items(b.qp, b.scq, region, memory + 16, ITEM, STRIDE, ITEMS, VL_ALL);
    outer = vl_window(b.pd, IBV_MW_TYPE_2, 1);
    struct pumice_mw_bind_layout_entry e = {
        .mem_obj_type = PUMICE_MW_ENTRY_USE_MW, .mw = inner, .addr = 0, .length = BYTES};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE, 1, &e};
    need(vl_post_bind(b.qp, outer, &l, VL_ALL) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
}

static bool gaps_untouched(void)
{
    for (uint32_t i = 0; i < MEMORY; i++)
        if ((i % STRIDE < 16 || i % STRIDE >= 16 + ITEM) && memory[i] != 0xee)
            return false;
    return true;
}

static void start(enum ibv_wr_opcode op, const struct ibv_mw *mw)
{
    struct ibv_sge s = {.addr = (uintptr_t)plain, .length = BYTES, .lkey = plain_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.rkey = mw->rkey;
    for (unsigned i = 0; i < 3; i++)
        need(ibv_post_send(a.qp, &wr, &bad) == 0);
}

/* The three transfers: whole ones, then perhaps one with this error, with the others flushed. */
static bool ended(enum ibv_wc_status error)
{
    bool failed = false, right = true;
    for (unsigned i = 0; i < 3; i++) {
        enum ibv_wc_status s = vt_next(a.scq).status;
        if (failed)
            right &= s == IBV_WC_WR_FLUSH_ERR;
        else
            right &= s == IBV_WC_SUCCESS || s == error;
        failed |= s != IBV_WC_SUCCESS;
    }
    cut += failed;
    whole += !failed;
    return right;
}

/* --- what becomes of it in the meantime */

static void inv(const struct ibv_mw *mw)
{
    need(vl_invalidate(b.qp, b.scq, mw->rkey) == IBV_WC_SUCCESS);
}
static void invalidate_outer(void)
{
    inv(outer);
}
static void invalidate_inner(void)
{
    inv(inner);
}
static void dealloc_outer(void)
{
    need(ibv_dealloc_mw(outer) == 0);
    outer = NULL;
}
static void dealloc_inner(void)
{
    need(ibv_dealloc_mw(inner) == 0);
    inner = NULL;
}
static void drop_region(void)
{
    need(ibv_dereg_mr(region) == EBUSY);
    inv(outer); /* may end the queue pair, so the other one can't be invalidated through it */
    need(ibv_dereg_mr(region) == EBUSY);
    dealloc_inner();
    need(ibv_dereg_mr(region) == 0);
    region = NULL;
}
static void drop_memory(void)
{
    need(munmap(memory + MEMORY / 2, MEMORY / 2) == 0); /* while it is registered */
}
static void destroy_qp(void)
{
    need(ibv_destroy_qp(b.qp) == 0);
    b.qp = NULL;
}

static const struct {
    const char *what;
    void (*end)(void);
    enum ibv_wc_status error; /* of a transfer that it cuts off */
} ends[] = {
    {"the window is invalidated", invalidate_outer, IBV_WC_REM_ACCESS_ERR},
    {"an inner window is invalidated", invalidate_inner, IBV_WC_REM_ACCESS_ERR},
    {"the window is deallocated", dealloc_outer, IBV_WC_REM_ACCESS_ERR},
    {"an inner window is deallocated", dealloc_inner, IBV_WC_REM_ACCESS_ERR},
    {"windows and region go", drop_region, IBV_WC_REM_ACCESS_ERR},
    {"half of the memory is unmapped: no error, as with pinned pages", drop_memory, IBV_WC_SUCCESS},
    {"the queue pair is destroyed", destroy_qp, IBV_WC_RETRY_EXC_ERR},
};

static void drop_windows(bool half)
{
    need((!outer || ibv_dealloc_mw(outer) == 0) && (!inner || ibv_dealloc_mw(inner) == 0));
    need(!region || ibv_dereg_mr(region) == 0);
    need(munmap(memory, half ? MEMORY / 2 : MEMORY) == 0);
}

static bool run(unsigned i, enum ibv_wr_opcode op, unsigned us)
{
    bool half = ends[i].end == drop_memory, right;
    connect_again();
    make_windows();
    start(op, i & 1 ? inner : outer);
    usleep(us);
    ends[i].end();
    right = ended(ends[i].error) && (half || gaps_untouched());
    drop_windows(half);
    return right;
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((plain = malloc(BYTES)) && (plain_mr = ibv_reg_mr(a.pd, plain, BYTES, IBV_ACCESS_LOCAL_WRITE)));
    memset(plain, 0x11, BYTES);
    cut = whole = 0;
    for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        bool right = true;
        /* A requester takes two seconds to find out that its peer is gone, so that is tried less often. */
        unsigned most = ends[i].end == destroy_qp ? 300 : 8000;
        for (unsigned us = 0; us < most; us = us ? 3 * us : 100)
            right &= run(i, IBV_WR_RDMA_WRITE, us) && run(i, IBV_WR_RDMA_READ, us);
        ok(right, ends[i].what);
    }
    printf("# %u transfers were cut off, %u were not\n", cut, whole);
    bool hosts = memcmp(&a.gid, &b.gid, sizeof(a.gid)) != 0; /* within one device, all may be copied at once */
    ok(cut > 0 || !hosts, "some of it in the middle of transfers");
    need(ibv_dereg_mr(plain_mr) == 0);
    free(plain);
    need(ibv_destroy_qp(a.qp) == 0);
    a.qp = NULL;
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    return vt_both(test);
}
