// SPDX-License-Identifier: BSD-2-Clause
/* One binding is used a million times, as programs do that keep a layout for their whole life: by its lkey as the source,
 * and by its rkey as the target. Each request carries its number. The test checks every byte that a batch has written. */
#include "tests/verbs/layout/layouts.h"

#define USES 1000000u
#define BATCH 64u /* requests of a batch; each has an item of its own */
#define ITEM 8u
#define STRIDE 512u

static struct vt_end a, b;
static struct ibv_send_wr wr[BATCH];
static struct ibv_sge sge[BATCH];

static void make_requests(const struct ibv_mw *from, const struct ibv_mw *to)
{
    for (unsigned i = 0; i < BATCH; i++) {
        sge[i] = (struct ibv_sge){.addr = i * ITEM, .length = ITEM, .lkey = vl_lkey(from)};
        wr[i] = (struct ibv_send_wr){.wr_id = i,
                                     .next = i + 1 < BATCH ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = i + 1 < BATCH ? 0 : IBV_SEND_SIGNALED,
                                     .wr.rdma = {.remote_addr = i * ITEM, .rkey = to->rkey}};
    }
}

/* Posts a batch of requests with the numbers from first on. True if they succeed and write their numbers. */
static bool run_batch(uint64_t first)
{
    struct ibv_send_wr *bad;
    for (uint64_t i = 0; i < BATCH; i++) {
        uint64_t number = first + i;
        memcpy(a.buf + i * STRIDE, &number, ITEM);
    }
    if (ibv_post_send(a.qp, wr, &bad) != 0 || vt_next(a.scq).status != IBV_WC_SUCCESS)
        return false;
    bool right = true;
    for (unsigned i = 0; i < BATCH; i++)
        right &= memcmp(a.buf + i * STRIDE, b.buf + i * STRIDE, ITEM) == 0;
    return right;
}

static bool is_untouched(void)
{
    bool right = true;
    for (unsigned i = 0; i < BATCH; i++)
        for (unsigned k = ITEM; k < STRIDE; k++)
            right &= b.buf[i * STRIDE + k] == 0;
    return right;
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    struct ibv_qp_init_attr attr = {
        .send_cq = a.scq, .recv_cq = a.rcq, .cap = {BATCH, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    need((a.qp = ibv_create_qp(a.pd, &attr)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    struct ibv_mw *from = vl_items(a.qp, a.scq, a.mr, a.buf, ITEM, STRIDE, BATCH, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mw *to =
        vl_items(b.qp, b.scq, b.mr, b.buf, ITEM, STRIDE, BATCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    make_requests(from, to);
    uint64_t uses = 0;
    while (uses < USES && run_batch(uses))
        uses += BATCH;
    ok(uses >= USES, "a million requests by one binding at each end succeed, and write what they should");
    ok(is_untouched(), "no byte beside the items is written");
    need(ibv_dealloc_mw(from) == 0 && ibv_dealloc_mw(to) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("windows over layouts are an extension of libpumice");
    return vt_both(test);
}
