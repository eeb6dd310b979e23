// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: what happens to requests and events when a QP or the SRQ fails, is reset, resized or
 * destroyed. */
#include "tests/unit/core/srq_fixture.h"

TestSuite(srq, .init = setup, .fini = teardown);

/* --- QPs that go ------------------------------------------------------------------------------- */

Test(srq, err_flushes_only_the_request_of_the_current_message)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    to_err(0);
    expect_recv(0, 0, WC_WR_FLUSH_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    turn();
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 2);
}

Test(srq, err_raises_last_wqe_reached_even_without_a_taken_request)
{
    post_many(1);
    to_err(0);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    cr_assert_eq(fix_modify(qp[0], QPS_RESET), 0);
    fix_bring(qp[0], QPS_RTS);
    psn[0] = 100;
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 1), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
    expect_no_event();
    to_err(0);
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
}

Test(srq, last_wqe_reached_waits_for_room_in_the_completion_queue)
{
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    for (int i = 0; i < 4; i++) { /* fill the completion queue with flushed sends */
        for (int k = 0; k < 4; k++) {
            struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED};
            cr_assert_eq(fix_modify(qp[1 + i % 2], QPS_ERR), 0);
            for (int n = 0; n < 4; n++) {
                qp_post_send(qp[1 + i % 2], &wr, NULL, NULL);
            }
            turn();
        }
    }
    while (next_event().type) {
    }
    to_err(0);
    expect_no_event();
    while (engine_peek_completion(fix.e) && !engine_peek_completion(fix.e)->is_recv) {
        engine_drop_completion(fix.e);
    }
    turn();
    expect_recv(0, 0, WC_WR_FLUSH_ERR);
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
}

static void put_back_by(bool destroy)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 1, WC_SUCCESS);
    if (destroy) {
        qp_destroy(qp[0]);
    } else {
        cr_assert_eq(fix_modify(qp[0], QPS_RESET), 0);
    }
    cr_expect_eq(srq_posted(srq), 2);
    cr_expect_eq(srq_room(srq), DEPTH - 2);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 2, WC_SUCCESS);
    expect_no_completion();
    expect_no_event();
}

Test(srq, a_destroyed_qp_puts_its_request_back)
{
    put_back_by(true);
}

Test(srq, a_reset_qp_puts_its_request_back)
{
    put_back_by(false);
}

Test(srq, a_refused_write_with_immediate_takes_no_request)
{
    struct pkt answer, p = {.opcode = OP_WRITE_ONLY_IMM, .psn = 100, .reth = {FIX_VA, srq_key, 1}};
    post_many(1);
    p.dest_qpn = qp_number(qp[0]);
    p.payload = buf + 8000;
    p.payload_len = 1;
    cr_assert_eq(fix_exchange(&fix, &p, buf, &answer), 0);
    cr_expect_eq(answer.aeth.syndrome, NAK_REMOTE_ACCESS, "a key of the SRQ's domain is not the QP's");
    expect_no_completion();
    cr_expect_eq(srq_posted(srq), 1);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
}

Test(srq, a_memory_fault_completes_the_request_with_an_error)
{
    post_many(2);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    engine_mem_fault(fix.e, qp_number(qp[0]), 0);
    turn();
    expect_recv(0, 0, WC_LOC_PROT_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 1);
}

Test(srq, destroy_qp_drops_the_completions_of_that_qp)
{
    post_many(2);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    qp_destroy(qp[0]);
    expect_recv(1, 1, WC_SUCCESS);
    expect_no_completion();
}

/* --- resizing, breaking ------------------------------------------------------------------------ */

Test(srq, resize_keeps_the_order_and_the_taken_requests)
{
    struct srq *bigger = NULL;
    post_many(8);
    for (int i = 0; i < 6; i++) { /* so that the ring wraps */
        cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
        expect_recv(1, (uint32_t)i, WC_SUCCESS);
    }
    post_many(6);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff); /* takes request 6 */
    void *mem = fix_zalloc(srq_size(64, 2));
    cr_expect_eq(srq_resize(srq, 7, mem, &bigger), -EINVAL);
    cr_expect_eq(srq_resize(srq, 0, mem, &bigger), -EINVAL);
    uint32_t n = srq_number(srq);
    cr_assert_eq(srq_resize(srq, 64, mem, &bigger), 0);
    memset(srqmem, 0xdb, srq_size(DEPTH, 2));
    srq = bigger;
    cr_expect_eq(srq_number(srq), n);
    cr_expect_eq(srq_posted(srq), 7);
    cr_expect_eq(srq_room(srq), 64 - 8);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 7, WC_SUCCESS);
    cr_expect_eq(arrive_at(2, OP_SEND_FIRST, 256), 0xff);
    qp_destroy(qp[2]); /* puts its request back, at the current head */
    for (uint32_t i = 0; i < 6; i++) {
        cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
        expect_recv(1, i, WC_SUCCESS);
    }
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    expect_recv(0, 6, WC_SUCCESS);
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
    cr_expect_eq(srq_destroy(srq), 0);
    free(mem);
}

Test(srq, a_failed_srq_fails_qps_that_need_a_request)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    srq_fail(srq);
    srq_fail(srq);
    expect_srq_event(EVENT_SRQ_ERR);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED); /* it has its receive request already */
    expect_recv(0, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(1, OP_WRITE_ONLY, 0), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), NAK_REMOTE_OPERATION);
    cr_expect_eq(qp_state(qp[1]), QPS_ERR);
    expect_qp_event(1, EVENT_QP_FATAL);
    expect_qp_event(1, EVENT_QP_LAST_WQE_REACHED);
    expect_no_completion();
    cr_expect_eq(qp_state(qp[2]), QPS_RTS);
}

Test(srq, destroy_drops_the_events_of_the_srq)
{
    srq_fail(srq);
    for (int i = 0; i < 3; i++) {
        qp_destroy(qp[i]);
    }
    cr_expect_eq(srq_destroy(srq), 0);
    expect_no_event();
}

/* --- more events than there is room for -------------------------------------------------------- */

/* Each program waits for its QP's last event before it destroys it. */
Test(srq_events, every_qp_gets_last_wqe_reached, .fini = teardown)
{
    struct qp *many[16];
    bool told[16] = {false};
    uint32_t total = 0, turns = 0, got;
    struct event ev;
    fix_init_with(&fix, 32, 4);
    srq = make_srq(DEPTH, 2, &srqmem);
    for (int i = 0; i < 16; i++) {
        many[i] = make_qp(srq);
    }
    for (int i = 0; i < 16; i++) {
        cr_assert_eq(fix_modify(many[i], QPS_ERR), 0);
    }
    do {
        turn();
        for (got = 0; engine_pop_event(fix.e, &ev); got++) {
            cr_expect_eq(ev.type, EVENT_QP_LAST_WQE_REACHED);
            for (int i = 0; i < 16; i++) {
                told[i] |= ev.qpn == qp_number(many[i]);
            }
        }
        total += got;
    } while (got > 0 && ++turns < 100);
    cr_assert_eq(total, 16, "%u events", total);
    for (int i = 0; i < 16; i++) {
        cr_assert(told[i], "QP %d", i);
    }
    cr_assert_eq(engine_counters(fix.e)->events_dropped, 0);
    qp_destroy(many[3]);
}

Test(srq_events, the_limit_stays_armed_while_the_event_queue_is_full, .fini = teardown)
{
    struct event ev;
    fix_init_with(&fix, 8, 1);
    srq = make_srq(DEPTH, 2, &srqmem);
    for (int i = 0; i < 2; i++) {
        qp[i] = make_qp(srq);
        psn[i] = 100;
    }
    post_many(4); /* the receive requests have no lkey */
    srq_set_limit(srq, 4);
    cr_assert_eq(fix_modify(qp[1], QPS_ERR), 0);
    turn();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(srq_limit(srq), 4, "the other QP's event takes the only place");
    cr_assert(engine_pop_event(fix.e, &ev) && ev.type == EVENT_QP_LAST_WQE_REACHED);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(srq_limit(srq), 0);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    expect_no_event();
}

Test(srq_events, dropped_events_are_counted, .fini = teardown)
{
    fix_init_with(&fix, 8, 1);
    srq = make_srq(DEPTH, 2, &srqmem);
    qp[0] = make_qp(srq);
    cr_assert_eq(fix_modify(qp[0], QPS_ERR), 0);
    turn();
    srq_fail(srq);
    cr_assert_eq(engine_counters(fix.e)->events_dropped, 1);
}
