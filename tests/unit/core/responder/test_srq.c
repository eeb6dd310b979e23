// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: creation, posting, the order in which messages take requests, and the limit. */
#include "tests/unit/core/srq_fixture.h"

TestSuite(srq, .init = setup, .fini = teardown);

/* --- life -------------------------------------------------------------------------------------- */

Test(srq, bounds)
{
    struct srq_init good = {.pd = 1, .max_wr = 4, .max_sge = 1, .owner = &owner};
    struct srq *s;
    uint64_t mem[512] = {0};
    cr_expect_eq(srq_size(0, 1), 0);
    cr_expect_eq(srq_size(32769, 1), 0);
    cr_expect_neq(srq_size(32768, 1), 0);
    cr_expect_eq(srq_size(1, ENGINE_MAX_SGE + 1), 0);
    cr_assert_leq(srq_size(4, 1), sizeof mem);
    struct srq_init bad = good;
    bad.pd = 0;
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
    bad = good;
    bad.owner = NULL;
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
    bad = good;
    bad.xrcd = 3; /* XRC without a CQ */
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
}

Test(srq, numbers_are_unique_and_are_not_reused_at_once)
{
    void *mem[8];
    struct srq *s[8];
    for (int i = 0; i < 3; i++) { /* with the fixture's SRQ these are all of max_srq, 4 */
        s[i] = make_srq(4, 1, &mem[i]);
        cr_expect(srq_number(s[i]) != 0 && srq_number(s[i]) <= 0xffffff);
        cr_expect_neq(srq_number(s[i]), i ? srq_number(s[i - 1]) : srq_number(srq));
    }
    struct srq_init init = {.pd = 1, .max_wr = 4, .max_sge = 1, .owner = &owner};
    mem[3] = fix_zalloc(srq_size(4, 1));
    cr_expect_eq(srq_create(fix.e, &init, mem[3], &s[3]), -ENOMEM);
    uint32_t old = srq_number(s[1]);
    cr_assert_eq(srq_destroy(s[1]), 0);
    cr_assert_eq(srq_create(fix.e, &init, mem[3], &s[3]), 0);
    cr_expect_neq(srq_number(s[3]), old);
    for (int i = 0; i < 4; i++) {
        free(mem[i]);
    }
}

Test(srq, a_qp_with_an_srq_has_no_receive_queue)
{
    struct recv_wr wr = {.num_sge = 0};
    cr_expect_eq(qp_post_recv(qp[0], &wr, NULL), -EINVAL);
    cr_expect_eq(qp_recv_room(qp[0]), 0);
}

Test(srq, destroy_fails_while_qps_use_the_srq)
{
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(srq_destroy(srq), -EBUSY);
        qp_destroy(qp[i]);
    }
    cr_expect_eq(srq_destroy(srq), 0);
}

Test(srq, post_fails_when_the_queue_is_full_or_has_too_many_sges)
{
    struct recv_wr wr = {.num_sge = 3};
    struct sge sge[3] = {{0}};
    cr_expect_eq(srq_post_recv(srq, &wr, sge), -EINVAL);
    cr_expect_eq(srq_room(srq), DEPTH);
    post_many(DEPTH);
    cr_expect_eq(srq_room(srq), 0);
    cr_expect_eq(srq_posted(srq), DEPTH);
    cr_expect_eq(post(1, 1, srq_key), -ENOMEM);
}

/* --- requests find their messages -------------------------------------------------------------- */

Test(srq, messages_take_requests_in_order_of_arrival)
{
    post_many(5);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 3), ACKED);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff); /* takes slot 1 */
    cr_expect_eq(arrive_at(2, OP_WRITE_ONLY_IMM, 0), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(arrive_at(0, OP_SEND_MIDDLE, 256), 0xff);
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    expect_recv(2, 2, WC_SUCCESS);
    expect_recv(1, 3, WC_SUCCESS);
    expect_recv(0, 1, WC_SUCCESS);
    expect_no_completion();
    cr_expect_eq(srq_posted(srq), 1);
}

Test(srq, a_taken_request_occupies_its_slot_until_it_completes)
{
    post_many(DEPTH);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(srq_posted(srq), DEPTH - 1);
    cr_expect_eq(srq_room(srq), 0);
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    cr_expect_eq(srq_room(srq), 1);
}

Test(srq, an_empty_srq_delays_only_messages_that_need_a_request)
{
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), AETH_RNR | 12);
    cr_expect_eq(arrive_at(1, OP_WRITE_ONLY, 0), ACKED);
    post_many(1);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 3), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), AETH_RNR | 12);
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
}

Test(srq, an_empty_srq_asks_its_owner_for_requests)
{
    fix.refill_srq = srq;
    fix.refill_left = 1;
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(fix.refills, 1);
    cr_expect_eq(engine_peek_completion(fix.e)->slot, 1000);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), AETH_RNR | 12);
    cr_expect_eq(fix.refills, 2);
}

Test(srq, receive_buffers_belong_to_the_protection_domain_of_the_srq)
{
    cr_assert_eq(post(0, 100, srq_key), 0);
    cr_assert_eq(post(1, 100, qp_key), 0);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 80), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
    cr_expect_eq(fix.bytes[0], 1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 80), NAK_REMOTE_OPERATION);
    expect_recv(0, 1, WC_LOC_PROT_ERR);
}

Test(srq, a_message_that_is_too_long_consumes_its_request)
{
    cr_assert_eq(post(0, 100, srq_key), 0);
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 101), NAK_INVALID_REQUEST);
    expect_recv(0, 0, WC_LOC_LEN_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 1);
    cr_expect_eq(qp_state(qp[1]), QPS_RTS);
}

/* --- the limit --------------------------------------------------------------------------------- */

Test(srq, the_limit_event_comes_once)
{
    post_many(10);
    srq_set_limit(srq, 7);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(arrive_at(i, OP_SEND_ONLY, 1), ACKED);
    }
    expect_no_event(); /* seven requests are left */
    cr_expect_eq(srq_limit(srq), 7);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    cr_expect_eq(srq_limit(srq), 0);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_no_event();
    srq_set_limit(srq, 6); /* armed again below the limit */
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    expect_no_event();
}

Test(srq, the_limit_includes_requests_that_the_owner_still_holds)
{
    post_many(2);
    fix.refill_srq = srq;
    fix.refill_left = 3;
    srq_set_limit(srq, 3);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED); /* 1 + 3 */
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
}

Test(srq, the_limit_event_comes_when_the_srq_is_empty)
{
    srq_set_limit(srq, 1);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), AETH_RNR | 12);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
}
