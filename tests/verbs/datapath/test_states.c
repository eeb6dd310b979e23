// SPDX-License-Identifier: BSD-2-Clause
/* States of queue pairs with traffic: draining the send queue, RESET, ERR, and the first packet in RTR. */
#include "tests/verbs/tag_matching/tags.h"

#define MANY 8u

static struct vt_end a, b;

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static void write_one(uint64_t id)
{
    struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = b.mr->rkey;
    need(vt_end_post(&a, &wr, 0, 64) == 0);
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
    return attr;
}

/* SQD: the QP ends the requests that it has begun, and then reports an event. Requests that are posted in SQD wait for RTS. On Pumice the
 * test loses the answers of the other host for a while, so it sees the QP while it drains. */
static void draining(void)
{
    struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_wc wc[MANY];
    bool held = vt_is_pumice();
    connect_again();
    if (held)
        tm_fault("only=ack,loss=100%");
    for (unsigned i = 0; i < MANY; i++)
        write_one(i);
    if (held) /* they are on their way when the other host has them */
        for (double end = vt_now() + vt_wait_seconds(); query(a.qp).sq_psn != 1 + MANY && vt_now() < end;)
            ;
    need(ibv_modify_qp(a.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
    if (held) {
        ok(query(a.qp).qp_state == IBV_QPS_SQD && query(a.qp).sq_draining && vt_no_event(a.ctx),
           "the queue drains: sq_draining, and no event yet");
        tm_fault("");
    }
    ok(vt_event(a.ctx, IBV_EVENT_SQ_DRAINED, a.qp) && !query(a.qp).sq_draining, "SQ_DRAINED when all is answered");
    bool all = vt_poll(a.scq, MANY, wc) == MANY;
    for (unsigned i = 0; i < MANY && all; i++)
        all &= wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id == i;
    ok(all, "and all has completed");
    write_one(100);
    ok(vt_quiet(a.scq), "a request that is posted in SQD waits");
    need(vt_to_state(a.qp, IBV_QPS_SQD) == 0);
    ok(vt_no_event(a.ctx), "SQD again without the wish for an event: none");
    need(vt_to_state(a.qp, IBV_QPS_RTS) == 0);
    ok(vt_next(a.scq).wr_id == 100, "until RTS");
}

/* RESET drops all requests of both queues without a completion. Then the QP is as new. */
static void reset(void)
{
    struct ibv_send_wr wr = {.wr_id = 50, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    connect_again();
    for (unsigned i = 0; i < MANY; i++)
        need(vt_end_recv(&a, i, 4096, 64) == 0);
    write_one(0);
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    need(vt_to_state(a.qp, IBV_QPS_SQD) == 0);
    for (unsigned i = 0; i < MANY; i++)
        write_one(1 + i);
    ok(vt_to_state(a.qp, IBV_QPS_RESET) == 0 && vt_quiet(a.scq) && vt_quiet(a.rcq) && vt_no_event(a.ctx),
       "RESET: no completions and no event, though requests were waiting in both queues");
    ok(query(a.qp).qp_state == IBV_QPS_RESET && query(a.qp).dest_qp_num == 0, "nothing is left of the connection");
    need(vt_to_state(b.qp, IBV_QPS_RESET) == 0);
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    need(vt_end_recv(&b, 60, 0, 64) == 0 && vt_end_post(&a, &wr, 0, 8) == 0);
    ok(vt_next(a.scq).wr_id == 50 && vt_next(b.rcq).wr_id == 60, "connected again, it begins with what is posted now");
    need(vt_end_recv(&a, 70, 4096, 64) == 0 && vt_end_post(&b, &wr, 0, 8) == 0);
    ok(vt_next(b.scq).status == IBV_WC_SUCCESS && vt_next(a.rcq).wr_id == 70, "in both directions");
}

/* ERR flushes the requests of both queues in order, and those that are posted later. */
static void error(void)
{
    struct ibv_send_wr wr = {.wr_id = 100, .opcode = IBV_WR_SEND, .send_flags = 0};
    bool right = true;
    connect_again();
    need(vt_to_state(a.qp, IBV_QPS_SQD) == 0);
    for (unsigned i = 0; i < MANY; i++) {
        write_one(i);
        need(vt_end_recv(&a, 200 + i, 4096, 64) == 0);
    }
    need(vt_end_post(&a, &wr, 0, 8) == 0 && vt_to_state(a.qp, IBV_QPS_ERR) == 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct ibv_wc s = vt_next(a.scq), r = vt_next(a.rcq);
        right &=
            s.status == IBV_WC_WR_FLUSH_ERR && s.wr_id == i && r.status == IBV_WC_WR_FLUSH_ERR && r.wr_id == 200 + i;
    }
    struct ibv_wc unsignaled = vt_next(a.scq);
    ok(right && unsignaled.status == IBV_WC_WR_FLUSH_ERR && unsignaled.wr_id == 100,
       "ERR: all requests of both queues are flushed in order, also an unsignaled one");
    write_one(101);
    need(vt_end_recv(&a, 300, 4096, 64) == 0);
    struct ibv_wc s = vt_next(a.scq), r = vt_next(a.rcq);
    ok(s.status == IBV_WC_WR_FLUSH_ERR && s.wr_id == 101 && r.status == IBV_WC_WR_FLUSH_ERR && r.wr_id == 300,
       "what is posted in ERR is flushed, too");
    ok(vt_quiet(a.scq) && vt_quiet(a.rcq), "and nothing more comes");
}

/* The first packet in RTR. */
static void established(void)
{
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    need(vt_to_init(a.qp) == 0 && vt_to_init(b.qp) == 0);
    need(vt_to_rtr_at(a.qp, b.qp->qp_num, &b.gid) == 0 && vt_to_rtr_at(b.qp, a.qp->qp_num, &a.gid) == 0);
    need(vt_end_recv(&b, 1, 0, 64) == 0 && vt_end_recv(&b, 2, 0, 64) == 0);
    need(vt_to_rts(a.qp) == 0 && vt_end_post(&a, &wr, 0, 8) == 0);
    ok(vt_event(b.ctx, IBV_EVENT_COMM_EST, b.qp) && vt_next(b.rcq).wr_id == 1 &&
           vt_next(a.scq).status == IBV_WC_SUCCESS,
       "a packet in RTR is received and acknowledged: COMM_EST");
    need(vt_end_post(&a, &wr, 0, 8) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 2);
    ok(vt_no_event(b.ctx), "the event comes once");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    draining();
    reset();
    error();
    established();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
