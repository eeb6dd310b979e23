// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues: what they refuse, the completions of a destroyed QP, and overruns. */
#include "tests/verbs/vt.h"

static void creation(void)
{
    struct ibv_device_attr a;
    need(ibv_query_device(vt_ctx, &a) == 0);
    ok(vt_none(ibv_create_cq(vt_ctx, 0, NULL, NULL, 0), EINVAL), "no entries: EINVAL");
    ok(vt_none(ibv_create_cq(vt_ctx, a.max_cqe + 1, NULL, NULL, 0), EINVAL), "more than max_cqe: EINVAL");
    ok(vt_none(ibv_create_cq(vt_ctx, 1, NULL, NULL, vt_ctx->num_comp_vectors), EINVAL),
       "a vector that is not there: EINVAL");
    struct ibv_cq *cq = ibv_create_cq(vt_ctx, a.max_cqe, NULL, NULL, 0);
    ok(cq && cq->cqe >= a.max_cqe && ibv_destroy_cq(cq) == 0, "max_cqe entries");
}

/* Are the completions of that QP in the CQ, in order? On Pumice there are no others. The specification lets a device
 * leave those of a destroyed QP. */
static bool left(struct ibv_cq *cq, uint32_t qpn, uint64_t first, uint64_t second)
{
    struct ibv_wc wc[16], its[16];
    int all = ibv_poll_cq(cq, 16, wc), n = 0;
    for (int i = 0; i < all; i++)
        if (wc[i].qp_num == qpn)
            its[n++] = wc[i];
    return n == 2 && its[0].wr_id == first && its[1].wr_id == second && (all == n || !vt_is_pumice());
}

/* Two pairs on the same CQs; the first is destroyed with completions waiting between those of the second. */
static void destroyed_qp(void)
{
    struct vt_pair p = {0}, q = {0};
    struct ibv_wc wc[16];
    vt_pair_make(&p, vt_ctx, NULL);
    q.scq = p.scq, q.rcq = p.rcq;
    vt_pair_make(&q, vt_ctx, NULL);
    vt_connect(&p);
    vt_connect(&q);
    for (uint32_t i = 0; i < 4; i++) {
        struct vt_pair *x = i % 2 ? &p : &q;
        sprintf(x->buf, "message %u", i);
        need(vt_recv(x, 1, i, 1024 * (1 + i), 64) == 0 && vt_send(x, 0, 10 + i, 0, 10, IBV_SEND_SIGNALED) == 0);
        usleep(20000);
    }
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    ok(left(p.scq, q.qp[0]->qp_num, 10, 12), "a destroyed QP's sends are gone, the others are there");
    ok(left(p.rcq, q.qp[1]->qp_num, 0, 2), "likewise its receives");
    ok(!strcmp(q.buf + 1024, "message 0") && !strcmp(q.buf + 3072, "message 2"), "with their data");
    ok(vt_recv(&q, 1, 5, 0, 64) == 0 && vt_send(&q, 0, 15, 64, 8, IBV_SEND_SIGNALED) == 0 &&
           vt_poll(p.rcq, 1, wc) == 1 && wc[0].wr_id == 5 && vt_poll(p.scq, 1, wc) == 1 && wc[0].wr_id == 15,
       "and the CQs go on");
    need(ibv_destroy_qp(q.qp[0]) == 0 && ibv_destroy_qp(q.qp[1]) == 0 && ibv_dereg_mr(p.mr) == 0 &&
         ibv_dereg_mr(q.mr) == 0);
    need(ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0 && ibv_dealloc_pd(p.pd) == 0 &&
         ibv_dealloc_pd(q.pd) == 0);
    free(p.buf);
    free(q.buf);
}

/* More completions than entries, where that is to be ignored: polling finds the later ones. */
static void ignored_overrun(void)
{
    struct ibv_cq_init_attr_ex a = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(vt_ctx, &a);
    vt_needs_call(cq, "IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN");
    need(cq);
    struct vt_pair p = {.scq = ibv_cq_ex_to_cq(cq)};
    struct ibv_wc wc[16];
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    int size = p.scq->cqe;
    if (size >= 14)
        vt_skip("the smallest CQ is larger than a send queue of the test");
    for (int i = 0; i < size + 2; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0 && vt_send(&p, 0, (uint64_t)i, 0, 8, IBV_SEND_SIGNALED) == 0);
    need(vt_poll(p.rcq, size + 2, wc) == size + 2);
    usleep(50000);
    int n = ibv_poll_cq(p.scq, 16, wc);
    ok(n >= 1 && wc[n - 1].wr_id == (uint64_t)size + 1, "an ignored overrun: the last completion is there");
    bool order = true;
    for (int i = 1; i < n; i++)
        order &= wc[i].wr_id == wc[i - 1].wr_id + 1;
    ok(order && ibv_poll_cq(p.scq, 1, wc) == 0, "those that are there are in order");
    ok(vt_recv(&p, 1, 0, 64, 8) == 0 && vt_send(&p, 0, 77, 0, 8, IBV_SEND_SIGNALED) == 0 &&
           vt_poll(p.scq, 1, wc) == 1 && wc[0].wr_id == 77,
       "and it goes on");
    ok(vt_pair_end(&p), "everything is destroyed");
}

int main(void)
{
    vt_part("creation", creation);
    vt_part("the completions of a destroyed QP", destroyed_qp);
    vt_part("an overrun that is ignored", ignored_overrun);
    return vt_failed;
}
