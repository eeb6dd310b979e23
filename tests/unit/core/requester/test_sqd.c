// SPDX-License-Identifier: BSD-2-Clause
/* Draining a send queue (IBA 10.3.1.5). Requests that have begun are finished, no other one begins, and one event
 * reports the end. */
#include "tests/unit/core/one_qp.h"

static uint32_t key;

static void setup(void)
{
    struct mr_init init = {.pd = FIX_PD,
                           .space = 1,
                           .va = FIX_VA,
                           .iova = FIX_VA,
                           .length = FIX_MEM,
                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ};
    fix_init(&fix);
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256 */
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(sqd, .init = setup, .fini = teardown);

static void post(uint8_t opcode, uint32_t len, uint8_t flags)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {.opcode = opcode, .flags = SEND_SIGNALED | flags, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static void read_response(uint32_t psn)
{
    static const uint8_t data[8];
    arrive((struct pkt){.opcode = OP_READ_RESP_ONLY, .psn = psn, .payload = data, .payload_len = 8});
}

static void move(enum qp_state to, bool notify)
{
    struct qp_attr a = {.state = (uint8_t)to, .sqd_async_notify = notify};
    uint32_t mask = QPA_STATE | (to == QPS_SQD && notify ? QPA_EN_SQD_ASYNC_NOTIFY : 0u);
    cr_assert_eq(qp_modify(qp, &a, mask, NULL), 0);
}

static unsigned drained_events(void)
{
    struct event ev;
    unsigned n = 0;
    while (engine_pop_event(fix.e, &ev))
        n += ev.type == EVENT_SQ_DRAINED && ev.qpn == qp_number(qp);
    return n;
}

static bool is_draining(void)
{
    struct qp_attr a;
    qp_query(qp, &a);
    return a.sq_draining;
}

static void expect_done(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct completion *c = engine_peek_completion(fix.e);
        cr_assert_not_null(c);
        cr_expect_eq(c->status, WC_SUCCESS);
        engine_drop_completion(fix.e);
    }
    cr_expect_null(engine_peek_completion(fix.e));
}

Test(sqd, an_empty_queue_is_drained_at_once)
{
    move(QPS_SQD, true);
    cr_expect_eq(drained_events(), 1u);
    cr_expect_not(is_draining());
    transmit();
    cr_expect_eq(drained_events(), 0u, "once");
}

Test(sqd, the_event_comes_only_if_it_was_requested)
{
    move(QPS_SQD, true);
    cr_expect_eq(drained_events(), 1u);
    move(QPS_RTS, false);
    move(QPS_SQD, false);
    cr_expect_eq(drained_events(), 0u, "the last time does not count");
    move(QPS_RTS, false);
    move(QPS_SQD, true);
    cr_expect_eq(drained_events(), 1u);
}

Test(sqd, outstanding_requests_are_finished)
{
    post(WR_SEND, 768, 0);
    post(WR_SEND, 8, 0);
    cr_expect_eq(transmit_up_to(700), 2u, "two packets of three");
    move(QPS_SQD, true);
    cr_expect(is_draining());
    cr_expect_eq(transmit(), 1u, "the third, and not the second message");
    ack(201);
    cr_expect_eq(drained_events(), 0u);
    cr_expect(is_draining());
    ack(202);
    expect_done(1);
    cr_expect_eq(drained_events(), 1u);
    cr_expect_not(is_draining());
    cr_expect_eq(transmit(), 0u);
    move(QPS_RTS, false);
    cr_expect_eq(transmit(), 1u);
    ack(203);
    expect_done(1);
    cr_expect_eq(drained_events(), 0u);
}

Test(sqd, retransmission_goes_on)
{
    post(WR_SEND, 600, 0);
    cr_expect_eq(transmit(), 3u);
    move(QPS_SQD, true);
    nak(NAK_PSN_SEQUENCE, 200);
    cr_expect_eq(transmit(), 3u);
    fix.now = engine_deadline(fix.e);
    cr_assert_neq(fix.now, NEVER);
    engine_expire(fix.e, fix.now);
    cr_expect_geq(transmit(), 1u);
    ack(202);
    expect_done(1);
    cr_expect_eq(drained_events(), 1u);
    cr_expect_eq(engine_deadline(fix.e) == NEVER || transmit() == 0, true);
}

/* Requests that have PSNs but must wait have not begun. */
Test(sqd, a_request_that_waits_for_a_fence_stays_unsent)
{
    post(WR_RDMA_READ, 8, 0);
    post(WR_SEND, 8, SEND_FENCE);
    cr_expect_eq(transmit(), 1u);
    move(QPS_SQD, true);
    read_response(200);
    expect_done(1);
    cr_expect_eq(drained_events(), 1u);
    cr_expect_not(is_draining());
    cr_expect_eq(transmit(), 0u);
    move(QPS_RTS, false);
    cr_expect_eq(transmit(), 1u);
}

Test(sqd, a_request_that_waits_for_a_credit_stays_unsent)
{
    for (int i = 0; i < 4; i++) /* max_rd_atomic is 3 */
        post(WR_RDMA_READ, 8, 0);
    cr_expect_eq(transmit(), 3u);
    move(QPS_SQD, true);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(drained_events(), 0u);
        read_response(200 + i);
    }
    expect_done(3);
    cr_expect_eq(drained_events(), 1u);
    cr_expect_eq(transmit(), 0u);
    move(QPS_RTS, false);
    cr_expect_eq(transmit(), 1u);
}

Test(sqd, draining_waits_for_completions)
{
    for (int i = 0; i < 3; i++)
        post(WR_SEND, 8, 0);
    cr_expect_eq(transmit(), 3u);
    move(QPS_SQD, true);
    ack(200);
    ack(201);
    cr_expect_eq(drained_events(), 0u);
    ack(202);
    expect_done(3);
    cr_expect_eq(drained_events(), 1u);
}

Test(sqd, the_responder_continues)
{
    static uint8_t out[16384];
    struct pkt a, p = {.opcode = OP_READ_REQUEST, .psn = 100, .dest_qpn = qp_number(qp), .reth = {FIX_VA, key, 8}};
    move(QPS_SQD, false);
    post(WR_SEND, 8, 0);
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.opcode, OP_READ_RESP_ONLY);
    cr_expect_eq(transmit(), 0u, "and the SEND waits");
}

Test(sqd, attributes_of_the_path_can_be_changed)
{
    struct qp_attr a = fix_attr(), now;
    uint32_t mask = QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC |
                    QPA_MIN_RNR_TIMER | QPA_ACCESS_FLAGS;
    move(QPS_SQD, false);
    a.av.dgid[15] = 3;
    a.av.traffic_class = 9;
    a.timeout = 7;
    a.retry_cnt = 1;
    a.rnr_retry = 2;
    a.max_rd_atomic = 1;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 3;
    a.access = ACCESS_REMOTE_READ;
    cr_assert_eq(qp_modify(qp, &a, mask, NULL), 0);
    qp_query(qp, &now);
    cr_expect(now.av.dgid[15] == 3 && now.av.traffic_class == 9 && now.timeout == 7 && now.retry_cnt == 1 &&
              now.rnr_retry == 2 && now.max_rd_atomic == 1 && now.max_dest_rd_atomic == 1 && now.min_rnr_timer == 3 &&
              now.access == ACCESS_REMOTE_READ);
    post(WR_RDMA_READ, 8, 0);
    post(WR_RDMA_READ, 8, 0);
    move(QPS_RTS, false);
    cr_expect_eq(transmit(), 1u, "one credit");
    cr_expect_eq(batch.pkt[0].av->dgid[15], 3);
}

Test(sqd, cur_state_must_be_the_state)
{
    struct qp_attr a = {.state = QPS_RTS, .cur_state = QPS_RTS};
    move(QPS_SQD, false);
    cr_expect_neq(qp_modify(qp, &a, QPA_STATE | QPA_CUR_STATE, NULL), 0);
    cr_expect_eq(qp_state(qp), QPS_SQD);
    a.cur_state = QPS_SQD;
    cr_expect_eq(qp_modify(qp, &a, QPA_STATE | QPA_CUR_STATE, NULL), 0);
    cr_expect_eq(qp_state(qp), QPS_RTS);
}

Test(sqd, err_flushes_unsent_requests)
{
    move(QPS_SQD, true);
    post(WR_SEND, 8, 0);
    cr_expect_eq(transmit(), 0u);
    fix_bring(qp, QPS_ERR);
    transmit();
    cr_assert_not_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_peek_completion(fix.e)->status, WC_WR_FLUSH_ERR);
}
