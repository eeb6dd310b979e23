// SPDX-License-Identifier: BSD-2-Clause
/* Messages to QPs whose SRQ matches tags: where their bytes go, and their completions. */
#include <errno.h>

#include "tests/unit/core/tm_engine.h"

TestSuite(tm_srq, .init = tm_setup, .fini = tm_teardown);

/* --- life -------------------------------------------------------------------------------------- */

Test(tm_srq, bounds)
{
    struct srq_init init = {.pd = 1, .max_wr = 4, .max_sge = 1, .owner = &srq_owner, .tm = tm};
    struct srq *s;
    void *mem = fix_zalloc(srq_size(4, 1));
    cr_expect_eq(srq_create(fix.e, &init, mem, &s), -EINVAL, "it needs a CQ");
    init.cq = &srq_cq;
    init.xrcd = 4;
    cr_expect_eq(srq_create(fix.e, &init, mem, &s), -EINVAL, "XRC or tags, not both");
    init.tm = NULL;
    init.xrcd = 0;
    cr_assert_eq(srq_create(fix.e, &init, mem, &s), 0);
    struct tm_op op = {.opcode = TM_SYNC};
    cr_expect_eq(srq_post_op(s, &op, 0), -EINVAL, "matches no tags");
    struct qp_init uc = {.type = QPT_UC, .pd = 1, .srq = srq, .send_cq = &qp_cq, .recv_cq = &qp_cq, .owner = &fix};
    struct qp *q;
    void *qpmem = fix_zalloc(qp_size(&uc));
    cr_expect_eq(qp_create(fix.e, &uc, qpmem, &q), -EINVAL, "RC only");
    cr_expect_eq(srq_destroy(srq), -EBUSY);
    free(qpmem);
    free(mem);
}

Test(tm_srq, operations_complete_in_order_at_the_srqs_cq)
{
    struct tm_op ops[] = {
        {.wr_id = 1, .slot = 11, .opcode = TM_ADD, .flags = TM_OP_SIGNALED, .handle = 0, .tag = 1, .mask = EXACT},
        {.wr_id = 2, .slot = 12, .opcode = TM_SYNC},
        {.wr_id = 3, .slot = 13, .opcode = TM_SYNC, .flags = TM_OP_SIGNALED, .unexpected_cnt = 9},
        {.wr_id = 4, .slot = 14, .opcode = TM_DEL, .flags = TM_OP_SIGNALED, .handle = 0},
        {.wr_id = 5, .slot = 15, .opcode = TM_DEL, .flags = TM_OP_SIGNALED, .handle = 0},
    };
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(srq_post_op(srq, &ops[i], 0), 0);
    struct completion c = EXPECT(-1, OF_TM_OP, WC_SUCCESS, WC_TM_ADD, 0, 11, 0);
    cr_expect(c.wr_id == 1 && c.qp_owner == NULL);
    EXPECT(-1, OF_TM_OP, WC_SUCCESS, WC_TM_SYNC, WC_TM_SYNC_REQ, 13, 0);
    EXPECT(-1, OF_TM_OP, WC_SUCCESS, WC_TM_DEL, WC_TM_SYNC_REQ, 14, 0);
    EXPECT(-1, OF_TM_OP, WC_TM_ERR, WC_TM_DEL, WC_TM_SYNC_REQ, 15, 0);
    EXPECT_NOTHING();
}

Test(tm_srq, operations_wait_for_room)
{
    struct tm_op op = {.opcode = TM_SYNC, .flags = TM_OP_SIGNALED};
    for (uint32_t i = 0; i < fix.cfg.completion_slots; i++)
        cr_assert_eq(srq_post_op(srq, &op, 0), 0);
    op.unexpected_cnt = 3;
    cr_expect_eq(srq_post_op(srq, &op, 0), -EAGAIN);
    cr_expect_eq(tm_state().sw_cnt, 0, "not done");
    fix_take(&fix);
    cr_expect_eq(srq_post_op(srq, &op, 0), 0);
}

/* --- eager ------------------------------------------------------------------------------------- */

Test(tm_srq, a_match_of_one_packet)
{
    add(3, 0x1234, 100);
    cr_expect_eq(eager(1, 0x1234, 100), ACKED);
    struct completion c = EXPECT(1, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 3, 100);
    cr_expect(c.tm_tag == 0x1234 && c.solicited && c.src_qp == 1234);
    EXPECT_NOTHING();
    cr_expect(tagged_data(3, 100), "without the header");
    cr_expect_eq(srq_posted(srq), 0, "no untagged buffer is needed");
}

Test(tm_srq, sizes_of_one_packet)
{
    for (uint32_t n = 0; n <= 240; n += 48) { /* at most 256 bytes with the header */
        memset(fix.bytes, 0, sizeof(fix.bytes));
        add((n / 48) << TM_SLOT_BITS, 5, 240);
        cr_expect_eq(eager(0, 5, n), ACKED);
        EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, n);
        cr_expect(tagged_data(0, n), "%u bytes", n);
    }
}

Test(tm_srq, a_match_of_several_packets)
{
    const uint8_t *m = message(TMH_EAGER, 9);
    add(2, 9, 500);
    cr_expect_eq(arrive(0, OP_SEND_FIRST, m, 256), SILENCE);
    struct completion c = EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 2, 0);
    cr_expect(c.tm_tag == 9 && !c.solicited);
    EXPECT_NOTHING();
    /* Meanwhile other messages match, and the entry can no longer be deleted. */
    add(4, 9, 10);
    cr_expect_eq(eager(1, 9, 10), ACKED);
    EXPECT(1, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 4, 10);
    struct tm_op del = {.opcode = TM_DEL, .flags = TM_OP_SIGNALED, .handle = 2};
    srq_post_op(srq, &del, 0);
    EXPECT(-1, OF_TM_OP, WC_TM_ERR, WC_TM_DEL, 0, 0, 0);
    cr_expect_eq(arrive(0, OP_SEND_LAST_IMM, m + 256, 200), ACKED);
    c = EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID | WC_WITH_IMM, 2, 440);
    cr_expect(c.solicited && c.imm[3] == 4);
    EXPECT_NOTHING();
    cr_expect(tagged_data(2, 440));
    cr_expect_eq(tm_state().consumed, 0);
}

Test(tm_srq, immediate_data)
{
    add(0, 9, 100);
    post_buffers(2);
    cr_expect_eq(arrive(0, OP_SEND_ONLY_IMM, message(TMH_EAGER, 9), 50), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH | WC_WITH_IMM, 0, 34);
    cr_expect_eq(arrive(0, OP_SEND_ONLY_IMM, message(TMH_EAGER, 9), 50), ACKED);
    EXPECT(0, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, WC_WITH_IMM, 0, 50);
    cr_expect_eq(arrive(0, OP_WRITE_ONLY_IMM, message(TMH_EAGER, 9), 0), ACKED);
    EXPECT(0, OF_TM_BUFFER, WC_SUCCESS, WC_RECV_RDMA_WITH_IMM, WC_WITH_IMM, 1, 0);
    cr_expect_eq(tm_state().hw_cnt, 1);
}

/* --- unexpected -------------------------------------------------------------------------------- */

Test(tm_srq, unmatched_messages_are_delivered_as_a_whole)
{
    post_buffers(6);
    cr_expect_eq(eager(0, 5, 100), ACKED);
    struct completion c = EXPECT(0, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 0, 116);
    cr_expect_eq(memcmp(c.inline_len ? c.data : fix.bytes, message(TMH_EAGER, 5), c.inline_len ? 0 : 116), 0);
    cr_expect_eq(rndv(1, 5, 1000), ACKED);
    EXPECT(1, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 1, 32);
    cr_expect_eq(arrive(2, OP_SEND_ONLY, message(TMH_NO_TAG, 5), 1), ACKED);
    EXPECT(2, OF_TM_BUFFER, WC_SUCCESS, WC_TM_NO_TAG, 0, 2, 1);
    cr_expect_eq(arrive(2, OP_SEND_ONLY, message(TMH_FIN, 5), 32), ACKED);
    EXPECT(2, OF_TM_BUFFER, WC_SUCCESS, WC_TM_NO_TAG, 0, 3, 32);
    cr_expect_eq(arrive(2, OP_SEND_ONLY, message(99, 5), 70), ACKED);
    EXPECT(2, OF_TM_BUFFER, WC_SUCCESS, WC_TM_NO_TAG, 0, 4, 70);
    cr_expect_eq(arrive(2, OP_SEND_ONLY, NULL, 0), ACKED);
    EXPECT(2, OF_TM_BUFFER, WC_SUCCESS, WC_TM_NO_TAG, 0, 5, 0);
    cr_expect(tm_state().hw_cnt == 2 && tm_state().inflight == 0);
    EXPECT_NOTHING();
}

Test(tm_srq, an_unexpected_message_of_several_packets)
{
    const uint8_t *m = message(TMH_EAGER, 9);
    post_buffers(2);
    cr_expect_eq(arrive(0, OP_SEND_FIRST, m, 256), SILENCE);
    EXPECT_NOTHING();
    cr_expect_eq(tm_state().inflight, 1);
    add(0, 9, 100);
    cr_expect_eq(tm_state().pending, 1, "the message was before it");
    cr_expect_eq(eager(1, 9, 3), ACKED);
    EXPECT(1, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 1, 19);
    cr_expect_eq(arrive(0, OP_SEND_LAST, m + 256, 100), ACKED);
    EXPECT(0, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 0, 356);
    cr_expect_eq(memcmp(fix.bytes, m, 356), 0);
    cr_expect(tm_state().hw_cnt == 2 && tm_state().inflight == 0);
}

/* A message without a buffer leaves no trace. It is decided again when it is sent again. */
Test(tm_srq, no_buffer)
{
    cr_expect_eq(eager(0, 7, 10), AETH_RNR | 12);
    cr_expect_eq(eager(0, 7, 10), AETH_RNR | 12);
    cr_expect_eq(arrive(1, OP_SEND_ONLY, message(TMH_NO_TAG, 0), 10), AETH_RNR | 12);
    cr_expect(tm_state().hw_cnt == 0 && tm_state().inflight == 0);
    EXPECT_NOTHING();
    add(0, 7, 10);
    cr_expect_eq(eager(0, 7, 10), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, 10);
    post_buffers(1);
    cr_expect_eq(arrive(1, OP_SEND_ONLY, message(TMH_NO_TAG, 0), 10), ACKED);
    EXPECT(1, OF_TM_BUFFER, WC_SUCCESS, WC_TM_NO_TAG, 0, 0, 10);
}

/* Duplicate packets are not matched, counted or delivered again. */
Test(tm_srq, duplicates)
{
    post_buffers(2);
    add(0, 7, 10);
    add(1, 7, 10);
    cr_expect_eq(eager(0, 7, 10), ACKED);
    psn[0]--;
    cr_expect_eq(eager(0, 7, 10), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, 10);
    cr_expect_eq(eager(0, 8, 10), ACKED);
    psn[0]--;
    cr_expect_eq(eager(0, 8, 10), ACKED);
    EXPECT(0, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 0, 26);
    EXPECT_NOTHING();
    cr_expect(tm_state().hw_cnt == 1 && tm_state().active == 1);
}

Test(tm_srq, completions_wait_for_room)
{
    struct tm_op op = {.opcode = TM_SYNC, .flags = TM_OP_SIGNALED};
    add(0, 7, 10);
    for (uint32_t i = 1; i < fix.cfg.completion_slots; i++)
        cr_assert_eq(srq_post_op(srq, &op, 0), 0);
    uint32_t before = psn[0];
    cr_expect_eq(eager(0, 7, 10), SILENCE, "as if it had been lost");
    cr_expect_eq(tm_state().active, 1);
    psn[0] = before;
    while (engine_peek_completion(fix.e))
        engine_drop_completion(fix.e);
    cr_expect_eq(eager(0, 7, 10), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, 10);
}

/* --- errors ------------------------------------------------------------------------------------ */

Test(tm_srq, a_message_too_long_for_the_tagged_buffer)
{
    add(0, 7, 99);
    cr_expect_eq(eager(0, 7, 100), NAK_INVALID_REQUEST);
    EXPECT(0, OF_TM_ENTRY, WC_LOC_LEN_ERR, WC_TM_RECV, 0, 0, 0);
    EXPECT_NOTHING();
    cr_expect_eq(qp_state(qp[0]), QPS_ERR);
    cr_expect(tm_state().consumed == 0 && tm_state().active == 0 && tm_state().in_sync);
    cr_expect_eq(fix.bytes[TAG_VA - FIX_VA], 0);
}

Test(tm_srq, a_message_that_is_too_long_at_a_later_packet)
{
    static const uint32_t rooms[] = {239, 300}; /* one fails at the first packet, the other one at the last */
    for (int i = 0; i < 2; i++) {
        const uint8_t *m = message(TMH_EAGER, 7);
        add((uint32_t)i, 7, rooms[i]);
        cr_expect_eq(arrive(i, OP_SEND_FIRST, m, 256), i ? SILENCE : NAK_INVALID_REQUEST);
        EXPECT(i, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, (uint32_t)i, 0);
        if (i)
            cr_expect_eq(arrive(i, OP_SEND_LAST, m + 256, 61), NAK_INVALID_REQUEST);
        EXPECT(i, OF_TM_ENTRY, WC_LOC_LEN_ERR, WC_TM_RECV, 0, (uint32_t)i, 0);
        EXPECT_NOTHING();
        cr_expect_eq(tm_state().consumed, 0);
    }
}

Test(tm_srq, an_unexpected_message_too_long_is_not_counted)
{
    const uint8_t *m = message(TMH_EAGER, 7);
    post_buffers(1);
    arrive(0, OP_SEND_FIRST, m, 256);
    arrive(0, OP_SEND_MIDDLE, m + 256, 256);
    cr_expect_eq(arrive(0, OP_SEND_LAST, m + 512, BUFFER_LEN - 512 + 1), NAK_INVALID_REQUEST);
    EXPECT(0, OF_TM_BUFFER, WC_LOC_LEN_ERR, WC_RECV, 0, 0, 0);
    cr_expect(tm_state().hw_cnt == 0 && tm_state().inflight == 0);
}

Test(tm_srq, bad_keys_are_found_when_data_come)
{
    add_with(0, 7, 100, key + 256);
    cr_expect_eq(eager(0, 7, 50), NAK_REMOTE_OPERATION);
    EXPECT(0, OF_TM_ENTRY, WC_LOC_PROT_ERR, WC_TM_RECV, 0, 0, 0);
    EXPECT_NOTHING();
    cr_expect_eq(tm_state().consumed, 0);
}

Test(tm_srq, a_rendezvous_request_too_long)
{
    const uint8_t *m = rndv_message(7, 100);
    add(0, 7, 100);
    cr_expect_eq(arrive(0, OP_SEND_FIRST, m, 256), NAK_INVALID_REQUEST);
    cr_expect_eq(next_event().type, EVENT_QP_REQ_ERR);
    EXPECT_NOTHING();
    cr_expect_eq(tm_state().active, 1);
}

/* A deferred write to the memory fails. The completion becomes an error before the program sees it. */
Test(tm_srq, deferred_writes_that_fail)
{
    post_buffers(1);
    add(0, 7, 400);
    arrive(0, OP_SEND_FIRST, message(TMH_EAGER, 7), 256);
    engine_mem_fault(fix.e, qp_number(qp[0]), 0);
    turn();
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    EXPECT(0, OF_TM_ENTRY, WC_LOC_PROT_ERR, WC_TM_RECV, 0, 0, 0);
    EXPECT_NOTHING();
    eager(1, 8, 100);
    cr_expect_eq(tm_state().hw_cnt, 1);
    engine_mem_fault(fix.e, qp_number(qp[1]), 0);
    EXPECT(1, OF_TM_UNEXPECTED, WC_LOC_PROT_ERR, WC_TM_RECV, 0, 0, 116);
    cr_expect_eq(tm_state().hw_cnt, 0, "not counted");
    add(1, 7, 100);
    eager(2, 7, 100);
    engine_mem_fault(fix.e, qp_number(qp[2]), 0);
    struct completion c = fix_take(&fix);
    cr_expect(c.of == OF_TM_ENTRY && c.status == WC_LOC_PROT_ERR && c.slot == 1);
    EXPECT_NOTHING();
}

/* --- QPs that go ------------------------------------------------------------------------------- */

enum way { TO_ERR, TO_RESET, DESTROYED };

static void go(int i, enum way way)
{
    if (way == TO_ERR)
        cr_assert_eq(fix_modify(qp[i], QPS_ERR), 0);
    else if (way == TO_RESET)
        cr_assert_eq(fix_modify(qp[i], QPS_RESET), 0);
    else
        qp_destroy(qp[i]);
    turn();
}

/* An unexpected message that is lost with its QP is not counted, and its buffer serves another one. */
Test(tm_srq, a_qp_is_destroyed_during_an_unexpected_message)
{
    post_buffers(3);
    add(0, 5, 100);
    for (int way = TO_ERR; way <= DESTROYED; way++) {
        arrive(way, OP_SEND_FIRST, message(TMH_EAGER, 7), 256);
        cr_expect_eq(tm_state().inflight, 1);
        go(way, (enum way)way);
        cr_expect(tm_state().inflight == 0 && tm_state().in_sync && tm_state().hw_cnt == 0, "way %d", way);
        if (way == TO_ERR)
            EXPECT(way, OF_TM_BUFFER, WC_WR_FLUSH_ERR, WC_RECV, 0, 0, 0);
        EXPECT_NOTHING();
    }
    cr_expect_eq(srq_posted(srq), 2);
}

/* A matched entry gets its last completion, whatever happens to the QP. */
Test(tm_srq, a_qp_is_destroyed_during_a_matched_message)
{
    uint32_t qpn[] = {qp_number(qp[0]), qp_number(qp[1]), qp_number(qp[2])};
    for (int way = TO_ERR; way <= DESTROYED; way++) {
        add((uint32_t)way, 7, 500);
        arrive(way, OP_SEND_FIRST, message(TMH_EAGER, 7), 256);
        EXPECT(way, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, (uint32_t)way, 0);
        go(way, (enum way)way);
        struct completion c = EXPECT(-1, OF_TM_ENTRY, WC_WR_FLUSH_ERR, WC_TM_RECV, 0, (uint32_t)way, 0);
        cr_expect_eq(c.qpn, qpn[way]);
        cr_expect_eq(c.qp_owner != NULL, way == TO_ERR, "nobody's pointer is told when he may be gone");
        EXPECT_NOTHING();
        cr_expect_eq(tm_state().consumed, 0);
    }
}

/* Completions that were not taken yet stay. Entries and counts belong to the SRQ, not to the QP. */
Test(tm_srq, completions_outlive_their_qp)
{
    post_buffers(1);
    add(0, 7, 10);
    eager(0, 7, 10);
    eager(0, 8, 10);
    uint32_t qpn = qp_number(qp[0]);
    qp_destroy(qp[0]);
    struct completion c = EXPECT(-1, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, 10);
    cr_expect(c.qpn == qpn && c.qp_owner == NULL);
    EXPECT(-1, OF_TM_UNEXPECTED, WC_SUCCESS, WC_TM_RECV, 0, 0, 26);
}

Test(tm_srq, destroy_drops_everything_of_the_srq)
{
    add(0, 7, 500);
    add(1, 8, 500);
    arrive(0, OP_SEND_FIRST, message(TMH_EAGER, 7), 256);
    for (int i = 0; i < TM_QPS; i++)
        qp_destroy(qp[i]);
    cr_assert_eq(srq_destroy(srq), 0);
    turn();
    EXPECT_NOTHING();
}
