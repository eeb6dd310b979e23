// SPDX-License-Identifier: BSD-2-Clause
/* XRC initiators and targets, packet by packet: attributes, the SRQ that takes a message, and what remains of a
 * destroyed target. */
#include "tests/unit/core/xrc_fixture.h"

TestSuite(xrc, .init = setup, .fini = teardown);

/* --- what there is ----------------------------------------------------------------------------- */

Test(xrc, create_checks_what_each_kind_of_qp_needs)
{
    struct qp_init init = {.type = QPT_XRC_SEND, .pd = PD_A, .send_cq = &ini, .caps = {4, 0, 1, 0, 0}};
    struct qp *q;
    uint64_t mem[4096] = {0};
    cr_assert(qp_size(&init) <= sizeof mem);
    struct qp_init bad = init;
    bad.pd = 0;
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = init;
    bad.send_cq = NULL;
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = init;
    bad.srq = srq[A];
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = (struct qp_init){.type = QPT_XRC_RECV};
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL, "no domain");
    bad = (struct qp_init){.type = QPT_RC, .pd = 1, .send_cq = &ini, .recv_cq = &ini, .srq = srq[A]};
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL, "an XRC SRQ is not for RC QPs");
}

Test(xrc, targets_refuse_posts_and_initiators_refuse_receives)
{
    struct send_wr s = {.opcode = WR_SEND};
    struct recv_wr r = {.num_sge = 0};
    cr_assert_eq(fix_modify(tgt, QPS_RTS), 0);
    cr_expect_eq(qp_post_send(tgt, &s, NULL, NULL), -EINVAL);
    cr_expect_eq(qp_post_recv(tgt, &r, NULL), -EINVAL);
    cr_expect_eq(qp_post_recv(ini, &r, NULL), -EINVAL);
    cr_expect_eq(qp_recv_room(tgt), 0);
    cr_expect_eq(qp_recv_room(ini), 0);
    cr_expect_eq(qp_send_room(tgt), 0);
}

Test(xrc, initiators_drop_requests_and_targets_drop_responses)
{
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    struct pkt ack = {.opcode = OP_SERVICE_XRC | OP_ACK, .psn = 200, .aeth = {ACKED, 1}};
    post_one(A, 0);
    p.dest_qpn = qp_number(ini);
    ack.dest_qpn = qp_number(tgt);
    fix_rx(&fix, &p);
    fix_rx(&fix, &ack);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_opcode, 2);
    p = request(OP_SEND_ONLY, 0, 1);
    p.opcode = OP_SEND_ONLY; /* an opcode of RC */
    fix_rx(&fix, &p);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_opcode, 3);
    cr_expect_eq(fix_tx(&fix, buf, NULL, 0), 0);
    expect_untouched(A, 1);
}

static int modify(struct qp *qp, enum qp_state to, uint32_t more)
{
    struct qp_attr a = fix_attr();
    struct qp_info info;
    qp_info(qp, &info);
    a.state = (uint8_t)to;
    uint32_t mask = QPA_STATE | fix_required_of((enum qp_type)info.type, qp_state(qp), to) | more;
    return qp_modify(qp, &a, mask, NULL);
}

Test(xrc, modify_needs_only_the_attributes_of_the_qps_half)
{
    cr_assert_eq(modify(ini, QPS_RESET, 0), 0);
    cr_assert_eq(modify(ini, QPS_INIT, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTR, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTS, 0), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, QPA_MIN_RNR_TIMER), 0);
    cr_assert_eq(modify(tgt, QPS_SQD, 0), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, 0), 0);
    cr_expect_eq(modify(tgt, QPS_RTS, QPA_SQ_PSN), -EINVAL);
    cr_expect_eq(modify(ini, QPS_RTS, QPA_RETRY_CNT), -EINVAL);
}

Test(xrc, modify_ignores_attributes_of_the_other_half)
{
    struct qp_attr a;
    cr_assert_eq(modify(ini, QPS_RESET, 0), 0);
    cr_assert_eq(modify(ini, QPS_INIT, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTR, QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER), 0);
    qp_query(ini, &a);
    cr_expect(a.max_dest_rd_atomic == 0 && a.min_rnr_timer == 0);
    cr_assert_eq(modify(ini, QPS_RTS, QPA_MIN_RNR_TIMER), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC), 0);
    qp_query(tgt, &a);
    cr_expect(a.retry_cnt == 0 && a.rnr_retry == 0 && a.max_rd_atomic == 0);
}

/* --- the initiator ----------------------------------------------------------------------------- */

Test(xrc, every_request_packet_names_the_srq)
{
    static const uint8_t opcode[] = {OP_SEND_FIRST,   OP_SEND_MIDDLE, OP_SEND_LAST_IMM,
                                     OP_READ_REQUEST, OP_FETCH_ADD,   OP_WRITE_ONLY_IMM};
    struct pkt p[8];
    struct sge sge = {FIX_VA, 600, key[0]};
    struct send_wr wr = {.opcode = WR_SEND_WITH_IMM, .num_sge = 1, .srqn = 0x123456};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL), 0);
    wr = (struct send_wr){.opcode = WR_RDMA_READ, .num_sge = 1, .srqn = 0x123457};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL), 0);
    sge.length = 8;
    wr = (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1, .srqn = 0x123458};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL), 0);
    wr = (struct send_wr){.opcode = WR_RDMA_WRITE_WITH_IMM, .num_sge = 1, .srqn = 0x123459};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 8), 6);
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(p[i].opcode, OP_SERVICE_XRC | opcode[i], "%#x", p[i].opcode);
        cr_expect_eq(p[i].srqn, i < 3 ? 0x123456u : 0x123454u + (uint32_t)i, "packet %d: %#x", i, p[i].srqn);
    }
}

Test(xrc, an_initiator_sends_no_nak_after_a_local_memory_fault)
{
    struct pkt p[2];
    struct sge sge = {FIX_VA, 8, key[0]};
    struct send_wr wr = {.opcode = WR_RDMA_READ, .num_sge = 1, .srqn = 5};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 2), 1);
    engine_mem_fault(fix.e, qp_number(ini), 0);
    cr_expect_eq(fix_tx(&fix, buf, p, 2), 0, "no NAK: it has no responder");
    cr_expect_eq(fix_take(&fix).status, WC_LOC_PROT_ERR);
    cr_expect_eq(qp_state(ini), QPS_ERR);
}

Test(xrc, a_destroyed_initiator_answers_no_packets)
{
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    p.dest_qpn = qp_number(ini);
    p.psn = 99; /* before the PSN that it expects */
    qp_destroy(ini);
    fix_rx(&fix, &p);
    cr_expect_eq(fix_tx(&fix, buf, NULL, 0), 0);
    cr_expect_eq(engine_counters(fix.e)->rx_unknown_qp, 1);
}

/* --- the target -------------------------------------------------------------------------------- */

Test(xrc, messages_go_to_the_srq_that_they_name)
{
    struct pkt answer;
    for (uint32_t i = 0; i < 2; i++) {
        post_one(A, i);
        post_one(B, 4 + i);
    }
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 256), ACKED);
    expect_recv(B, 4, WC_SUCCESS);
    cr_expect_eq(fix.bytes[4096], 0xaa);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(send_to(A, OP_SEND_LAST, 10), ACKED);
    expect_recv(A, 0, WC_SUCCESS);
    struct pkt p = request(OP_WRITE_ONLY_IMM, srq_number(srq[B]), 0);
    cr_expect_eq(feed(p, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_ACK);
    expect_recv(B, 5, WC_SUCCESS);
    expect_untouched(A, 1);
    expect_untouched(B, 0);
}

Test(xrc, an_empty_srq_delays_only_messages_to_it)
{
    post_one(B, 4);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), AETH_RNR | 12);
    expect_untouched(B, 1);
    post_one(A, 0);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    expect_recv(A, 0, WC_SUCCESS);
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 1), ACKED);
    expect_recv(B, 4, WC_SUCCESS);
}

Test(xrc, an_empty_srq_asks_its_owner_for_requests)
{
    fix.refill_srq = srq[B];
    fix.refill_left = 1;
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(fix.refills, 1);
}

/* --- faults of memory -------------------------------------------------------------------------- */

Test(xrc, a_failed_deferred_write_completes_in_the_cq_of_the_srq)
{
    post_one(A, 0);
    post_one(A, 1);
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 80);
    fix_rx(&fix, &p);
    engine_mem_fault(fix.e, qp_number(tgt), 0);
    cr_assert_eq(fix_tx(&fix, buf, &p, 1), 1);
    cr_expect_eq(p.opcode, OP_SERVICE_XRC | OP_ACK);
    cr_expect_eq(p.aeth.syndrome, NAK_REMOTE_OPERATION);
    expect_recv(A, 0, WC_LOC_PROT_ERR);
    expect_untouched(A, 1);
}

/* --- targets that go --------------------------------------------------------------------------- */

Test(xrc, completions_survive_the_target)
{
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    uint32_t n = qp_number(tgt);
    qp_destroy(tgt);
    struct completion c = fix_take(&fix);
    cr_expect(c.cq == &cq[A] && c.srq_owner == &owner[A] && c.slot == 0 && c.status == WC_SUCCESS && c.qpn == n);
    cr_expect_null(c.qp_owner);
    cr_expect_eq(srq_posted(srq[A]), 1, "the other one was put back");
}

Test(xrc, a_destroyed_target_still_acknowledges_what_it_had)
{
    struct pkt answer, p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    post_one(A, 0);
    cr_expect_eq(feed(p, NULL), ACKED);
    qp_destroy(tgt);
    cr_expect_eq(feed(p, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_ACK);
}

Test(xrc, err_flushes_the_taken_request_without_last_wqe_reached)
{
    struct event ev;
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    while (engine_pop_event(fix.e, &ev)) {
    }
    cr_assert_eq(fix_modify(tgt, QPS_ERR), 0);
    fix_tx(&fix, buf, NULL, 0);
    expect_recv(A, 0, WC_WR_FLUSH_ERR);
    expect_untouched(A, 1);
    cr_expect_not(engine_pop_event(fix.e, &ev), "a target is not attached to an SRQ");
}
