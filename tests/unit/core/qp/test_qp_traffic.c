// SPDX-License-Identifier: BSD-2-Clause
/* A QP without traffic has a small state, and nothing touches its memory for traffic (daemon/core/qp/qp_traffic.h). */
#include "tests/unit/core/one_qp.h"

/* The engine's part of an idle QP. The daemon's records and tables take the rest of the 1,024 bytes that
 * docs/scaling.md promises (test_qp_record.c). */
#define IDLE_BYTES 384u

static struct qp_init init;
static uint8_t *traffic; /* the QP's memory for traffic */
static size_t traffic_size;

static void setup_of(enum qp_type type)
{
    fix_init(&fix);
    init = (struct qp_init){
        .type = (uint8_t)type, .pd = FIX_PD, .caps = {16, 16, 2, 2, 32}, .send_cq = &fix, .recv_cq = &fix};
    traffic_size = qp_size(&init) - qp_state_size();
    init.queues = traffic = fix.qpmem[fix.nqpmem++] = fix_zalloc(traffic_size);
    void *state = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_state_size());
    cr_assert_eq(qp_create(fix.e, &init, state, &qp), 0);
}
static void setup(void)
{
    setup_of(QPT_RC);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(qp_traffic, .init = setup, .fini = teardown);

static bool is_untouched(void)
{
    for (size_t i = 0; i < traffic_size; i++)
        if (traffic[i])
            return false;
    return true;
}

/* Lets the engine work for a second. */
static void pass_time(void)
{
    for (unsigned i = 0; i < 100; i++) {
        fix.now += 10000000;
        engine_expire(fix.e, fix.now);
        cr_assert_eq(transmit(), 0);
    }
}

Test(qp_traffic, an_idle_qp_is_small)
{
    cr_assert_leq(
        qp_state_size(), IDLE_BYTES,
        "an idle QP takes %zu bytes in the engine, expected at most %u. Put what only a QP with traffic needs "
        "into struct qp_traffic (daemon/core/qp/qp_traffic.c)",
        qp_state_size(), IDLE_BYTES);
}

Test(qp_traffic, connecting_touches_no_memory_for_traffic)
{
    struct qp_attr a;
    struct qp_info info;
    for (enum qp_state to = QPS_INIT; to <= QPS_RTS; to++) {
        cr_assert_eq(fix_modify(qp, to), 0);
        pass_time();
        qp_query(qp, &a);
        qp_info(qp, &info);
        cr_assert_eq(qp_send_room(qp), 16);
        cr_assert_eq(qp_recv_room(qp), 16);
        cr_assert(is_untouched(), "the change to state %d touched the memory", to);
    }
    cr_expect_eq(engine_deadline(fix.e), NEVER, "an idle QP has no timer");
    cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
    fix_bring(qp, QPS_RTS);
    qp_destroy(qp);
    cr_assert(is_untouched());
    cr_expect_null(qp_find(fix.e, info.qpn));
}

Test(qp_traffic, an_idle_qp_shows_what_it_was_given)
{
    struct qp_attr a;
    struct qp_info info;
    fix_bring(qp, QPS_RTS);
    qp_query(qp, &a);
    cr_expect_eq(a.rq_psn, 100);
    cr_expect_eq(a.sq_psn, 200);
    qp_info(qp, &info);
    cr_expect_eq(info.epsn, 100);
    cr_expect(info.una_psn == 200 && info.next_psn == 200 && info.max_psn == 200);
    cr_expect(info.retries_left == 5 && info.rnr_retries_left == 6);
    cr_expect_eq(info.deadline, NEVER);
    cr_expect_eq(info.counters.rcvd_pkts, 0);
}

/* Both numbers of a QP that has had traffic are those of an idle one: only the memory differs. */
Test(qp_traffic, info_of_an_idle_qp_is_that_of_one_that_has_woken)
{
    struct qp_info idle, woken;
    memset(&idle, 0, sizeof(idle));
    memset(&woken, 0, sizeof(woken));
    fix_bring(qp, QPS_RTS);
    qp_info(qp, &idle);
    arrive((struct pkt){.opcode = OP_SERVICE_UD, .psn = 100}); /* of another service: dropped */
    cr_assert_not(is_untouched());
    qp_info(qp, &woken);
    cr_expect_eq(woken.counters.rcvd_pkts, 1);
    cr_expect_eq(woken.counters.rx_bad_opcode, 1);
    woken.counters = idle.counters;
    cr_expect_arr_eq(&idle, &woken, sizeof(idle));
}

static struct pkt send_only(uint32_t psn)
{
    return (struct pkt){.opcode = OP_SEND_ONLY, .psn = psn, .ackreq = true};
}

Test(qp_traffic, the_first_packet_wakes_the_responder)
{
    struct recv_wr wr = {.wr_id = 7};
    fix_bring(qp, QPS_RTS);
    cr_assert_eq(qp_post_recv(qp, &wr, NULL), 0);
    arrive(send_only(100));
    cr_expect_eq(fix_take(&fix).wr_id, 7);
    fix.now += 1000000000;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 100, "the ACK");
}

Test(qp_traffic, requests_posted_before_the_connection_stay)
{
    struct recv_wr wr = {.wr_id = 8};
    fix_bring(qp, QPS_INIT);
    cr_assert_eq(qp_post_recv(qp, &wr, NULL), 0);
    fix_bring(qp, QPS_RTS);
    arrive(send_only(100));
    cr_expect_eq(fix_take(&fix).wr_id, 8);
}

Test(qp_traffic, the_first_request_wakes_the_requester)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .wr_id = 9};
    fix_bring(qp, QPS_RTS);
    cr_assert_eq(qp_post_send(qp, &wr, NULL, NULL), 0);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 200);
    ack(200);
    cr_expect_eq(fix_take(&fix).wr_id, 9);
}

Test(qp_traffic, an_idle_qp_drains_and_fails_as_any_other)
{
    struct event ev;
    struct qp_attr a;
    fix_bring(qp, QPS_RTS);
    cr_assert_eq(fix_modify(qp, QPS_SQD), 0);
    qp_query(qp, &a);
    cr_expect_not(a.sq_draining);
    cr_assert_eq(fix_modify(qp, QPS_ERR), 0);
    cr_assert_eq(transmit(), 0);
    struct recv_wr wr = {.wr_id = 10};
    cr_assert_eq(qp_post_recv(qp, &wr, NULL), 0);
    transmit();
    cr_expect_eq(fix_take(&fix).status, WC_WR_FLUSH_ERR);
    while (engine_pop_event(fix.e, &ev))
        ;
}

Test(qp_traffic, an_idle_qp_ignores_forged_reports_and_faults)
{
    fix_bring(qp, QPS_RTS);
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    cr_expect_eq(qp_state(qp), QPS_RTS);
    cr_expect(is_untouched());
}

static void setup_ud(void)
{
    setup_of(QPT_UD);
}
TestSuite(ud_traffic, .init = setup_ud, .fini = teardown);

Test(ud_traffic, connecting_touches_no_memory_for_traffic)
{
    uint8_t group[16] = {0xff, [15] = 7};
    for (enum qp_state to = QPS_INIT; to <= QPS_RTS; to++)
        cr_assert_eq(fix_modify(qp, to), 0);
    cr_assert_eq(mcast_attach(qp, group), 0);
    pass_time();
    cr_assert(is_untouched());
    cr_assert_eq(mcast_detach(qp, group), 0);
    qp_destroy(qp);
}
