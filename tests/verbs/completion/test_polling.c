// SPDX-License-Identifier: BSD-2-Clause
/* Between ibv_start_poll and ibv_end_poll a program may post requests in place of those that it has polled, even if
 * the CQ is full, and may ask for an event. */
#include "tests/verbs/vt.h"

#define SLOTS 16 /* of the CQ, and requests outstanding */

static struct ibv_context *ctx;
static struct vt_pair p;

static struct ibv_cq_ex *make_cq(struct ibv_comp_channel *ch)
{
    struct ibv_cq_init_attr_ex a = {.cqe = SLOTS, .channel = ch, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &a);
    need(cq && ibv_cq_ex_to_cq(cq)->cqe == SLOTS);
    return cq;
}

static void exchange(uint64_t id)
{
    need(vt_send(&p, 0, id, 0, 8, IBV_SEND_SIGNALED) == 0);
}

static void receive(uint64_t id)
{
    need((p.srq ? vt_srq_recv(&p, p.srq, id, 64, 8) : vt_recv(&p, 1, id, 64, 8)) == 0);
}

/* The CQ is full. One completion is polled, and another request posted, which completes while the first still is the
 * current one. All must come, in order, and no word of an overrun. */
static void one_more(struct ibv_cq_ex *cq, struct ibv_cq *other, const char *what)
{
    struct ibv_poll_cq_attr a = {0};
    struct ibv_wc wc[SLOTS];
    for (uint64_t i = 0; i < SLOTS; i++) {
        receive(i);
        exchange(i);
    }
    need(vt_poll(other, SLOTS, wc) == SLOTS);
    usleep(20000);
    need(ibv_start_poll(cq, &a) == 0);
    receive(SLOTS);
    exchange(SLOTS);
    usleep(50000);
    int num = 0, rc = 0;
    double end = vt_now() + 5;
    while (num <= SLOTS && vt_now() < end) {
        num += rc == 0 && cq->status == IBV_WC_SUCCESS && cq->wr_id == (uint64_t)num;
        rc = ibv_next_poll(cq);
    }
    ibv_end_poll(cq);
    ok(num == SLOTS + 1 && rc == ENOENT && vt_poll(other, 1, wc) == 1, what);
    ok(vt_no_event(ctx), "and no event says otherwise");
}

static void full(bool sends, bool shared, const char *what)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = SLOTS, .max_sge = 1}};
    struct ibv_cq_ex *cq = make_cq(NULL);
    p = (struct vt_pair){.pd = ibv_alloc_pd(ctx)};
    *(sends ? &p.scq : &p.rcq) = ibv_cq_ex_to_cq(cq);
    need(p.pd && (!shared || (p.srq = ibv_create_srq(p.pd, &a))));
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    one_more(cq, sends ? p.rcq : p.scq, what);
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && (!p.srq || ibv_destroy_srq(p.srq) == 0) &&
         ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0 &&
         ibv_dealloc_pd(p.pd) == 0);
    free(p.buf);
}

/* The usual order of an event-driven program: poll until nothing is left, ask for an event, look once more. */
static void arm(void)
{
    struct ibv_poll_cq_attr a = {0};
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
    struct ibv_cq_ex *cq = make_cq(ch);
    struct ibv_cq *event = NULL;
    struct ibv_wc wc;
    void *context;
    p = (struct vt_pair){.scq = ibv_cq_ex_to_cq(cq)};
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    receive(0), receive(1);
    exchange(0);
    need(vt_poll(p.rcq, 1, &wc) == 1);
    usleep(20000);
    alarm(5);
    need(ibv_start_poll(cq, &a) == 0 && ibv_next_poll(cq) == ENOENT);
    ok(ibv_req_notify_cq(p.scq, 0) == 0, "an event is asked for between two looks");
    ok(ibv_next_poll(cq) == ENOENT, "nothing came meanwhile");
    ibv_end_poll(cq);
    exchange(1);
    ok(ibv_get_cq_event(ch, &event, &context) == 0 && event == p.scq, "the event comes");
    alarm(0);
    ibv_ack_cq_events(event, 1);
    ok(vt_pair_end(&p) && ibv_destroy_comp_channel(ch) == 0, "all of it is destroyed");
}

int main(void)
{
    VT_OWN("requests that are posted while a full CQ is polled");
    ctx = vt_open();
    full(true, false, "a full CQ of sends: one more in the place of the one that was polled");
    full(false, false, "of receives");
    full(false, true, "of receives from an SRQ");
    arm();
    ok(ibv_close_device(ctx) == 0, "everything is destroyed");
    return vt_failed;
}
