// SPDX-License-Identifier: BSD-2-Clause
/* Resizing a CQ that holds completions, and one that is armed. */
#include "tests/verbs/vt.h"

static struct vt_pair p;

static void fill(int num)
{
    for (int i = 0; i < num; i++)
        need(vt_send(&p, 0, (uint64_t)i, 0, 0, IBV_SEND_SIGNALED) == 0);
}

static bool drain(int num)
{
    struct ibv_wc wc[64];
    bool right = vt_poll(p.scq, num, wc) == num;
    for (int i = 0; right && i < num; i++)
        right = wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == (uint64_t)i;
    return right && ibv_poll_cq(p.scq, 1, wc) == 0;
}

/* All num sends have completed when the peer has received as many. */
static void settle(int num)
{
    struct ibv_wc wc[64];
    need(vt_poll(p.rcq, num, wc) == num);
    usleep(50000);
    for (int i = 0; i < num; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0);
}

static void resize(void)
{
    struct ibv_qp_cap cap = {64, 64, 1, 1, 0};
    struct ibv_comp_channel *ch = ibv_create_comp_channel(vt_ctx);
    need(ch && (p.scq = ibv_create_cq(vt_ctx, 8, NULL, ch, 0)));
    vt_pair_make(&p, vt_ctx, &cap);
    vt_connect(&p);
    for (int i = 0; i < 40; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0);
    int before = p.scq->cqe;
    errno = ibv_resize_cq(p.scq, before);
    vt_needs_call(errno == 0, "ibv_resize_cq");
    ok(before >= 8, "at least as many entries as asked for");
    ok(vt_fails(ibv_resize_cq(p.scq, 0), EINVAL) && vt_fails(ibv_resize_cq(p.scq, -1), EINVAL) && p.scq->cqe == before,
       "to none: EINVAL");
    struct ibv_device_attr a;
    need(ibv_query_device(vt_ctx, &a) == 0);
    ok(vt_fails(ibv_resize_cq(p.scq, a.max_cqe + 1), EINVAL) && p.scq->cqe == before, "to more than max_cqe: EINVAL");
    for (int round = 0; round < 3; round++) { /* so that the indexes are no multiples of the sizes */
        need(ibv_resize_cq(p.scq, 8) == 0);
        fill(7);
        settle(7);
        ok(ibv_resize_cq(p.scq, 30) == 0 && p.scq->cqe >= 30, "up, with seven live entries");
        ok(drain(7), "the seven are there, in order");
        fill(20);
        settle(20);
        ok(vt_fails(ibv_resize_cq(p.scq, 4), EINVAL), "down to fewer than are live: EINVAL");
        ok(ibv_resize_cq(p.scq, 20) == 0 && p.scq->cqe >= 20, "down to just enough");
        ok(drain(20), "the twenty are there, in order");
    }
    need(ibv_req_notify_cq(p.scq, 0) == 0 && ibv_resize_cq(p.scq, 40) == 0);
    fill(1);
    struct pollfd f = {.fd = ch->fd, .events = POLLIN};
    struct ibv_cq *cq = NULL;
    void *context;
    ok(poll(&f, 1, 5000) == 1 && ibv_get_cq_event(ch, &cq, &context) == 0 && cq == p.scq,
       "a wish for an event moves along");
    ibv_ack_cq_events(p.scq, 1);
    ok(drain(1), "with its completion");
    ok(vt_pair_end(&p) && ibv_destroy_comp_channel(ch) == 0, "everything is destroyed");
}

int main(void)
{
    vt_part("resize", resize);
    return vt_failed;
}
