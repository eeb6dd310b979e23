// SPDX-License-Identifier: BSD-2-Clause
/* XRC targets: which SRQ numbers and which memory keys they refuse. */
#include "tests/unit/core/xrc_fixture.h"

TestSuite(xrc, .init = setup, .fini = teardown);

/* --- what it refuses --------------------------------------------------------------------------- */

Test(xrc, an_unknown_srq_number_is_refused)
{
    post_one(A, 0);
    cr_expect_eq(feed(request(OP_SEND_ONLY, 0xabcdef, 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    expect_untouched(A, 1);
    cr_expect_eq(engine_counters(fix.e)->xrc_refused, 1);
}

Test(xrc, srq_number_0_is_refused)
{
    cr_expect_eq(feed(request(OP_SEND_ONLY, 0, 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

Test(xrc, an_srq_of_another_domain_is_refused)
{
    static const uint8_t operation[] = {OP_SEND_ONLY, OP_SEND_FIRST, OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    for (unsigned i = 0; i < sizeof operation; i++) {
        struct pkt p = request(operation[i], srq_number(srq[C]), operation[i] == OP_SEND_FIRST ? 256 : 0);
        p.reth.rkey = p.atomic.rkey = key[0]; /* of the SRQ's protection domain */
        p.reth.va = p.atomic.va = FIX_VA;
        p.ackreq = true;
        if (srq_posted(srq[C]) == 0) {
            post_one(C, 0);
        }
        cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS, "operation %#x", operation[i]);
        expect_dead(EVENT_QP_ACCESS_ERR);
        expect_untouched(C, 1);
        qp_destroy(tgt);
        tgt = make_target(QPS_RTR);
        psn = 100;
    }
    cr_expect_eq(fix.writes + fix.atomics, 0);
}

Test(xrc, a_basic_srq_is_refused)
{
    struct srq_init init = {.pd = PD_A, .max_wr = 8, .max_sge = 2, .owner = &owner};
    void *mem = fix_zalloc(srq_size(8, 2));
    struct srq *basic;
    cr_assert_eq(srq_create(fix.e, &init, mem, &basic), 0);
    cr_expect_eq(feed(request(OP_SEND_ONLY, srq_number(basic), 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    free(mem);
}

Test(xrc, operation_sequence_errors_take_precedence)
{
    struct pkt p = request(OP_SEND_LAST, 0xabcdef, 1); /* of a message without a FIRST packet */
    cr_expect_eq(feed(p, NULL), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
}

Test(xrc, psn_errors_take_precedence)
{
    struct pkt p = request(OP_SEND_ONLY, 0xabcdef, 1);
    p.psn = psn + 1;
    cr_expect_eq(feed(p, NULL), NAK_PSN_SEQUENCE);
    p.psn = psn - 1;
    cr_expect_eq(feed(p, NULL), ACKED, "a duplicate");
    cr_expect_eq(qp_state(tgt), QPS_RTR);
}

Test(xrc, access_flag_errors_take_precedence)
{
    struct qp_attr a = fix_attr();
    a.state = QPS_RTS;
    a.access = 0;
    uint32_t mask = QPA_STATE | QPA_TIMEOUT | QPA_SQ_PSN | QPA_ACCESS_FLAGS;
    cr_assert_eq(qp_modify(tgt, &a, mask, NULL), 0);
    cr_expect_eq(feed(request(OP_WRITE_ONLY, 0xabcdef, 0), NULL), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
}

Test(xrc, a_send_that_changes_its_srq_is_refused)
{
    post_one(A, 0);
    post_one(B, 4);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(send_to(B, OP_SEND_LAST, 1), NAK_INVALID_REQUEST);
    expect_recv(A, 0, WC_WR_FLUSH_ERR);
    expect_dead(EVENT_QP_REQ_ERR);
    expect_untouched(B, 1);
}

Test(xrc, a_write_that_changes_its_srq_is_refused)
{
    struct pkt p = request(OP_WRITE_FIRST, srq_number(srq[A]), 256);
    p.reth = (struct pkt_reth){FIX_VA, key[0], 257};
    post_one(B, 4);
    cr_expect_eq(feed(p, NULL), 0xff);
    cr_expect_eq(send_to(B, OP_WRITE_LAST_IMM, 1), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
    expect_untouched(B, 1);
}

Test(xrc, destroy_srq_in_the_middle_of_a_message_fails_the_target)
{
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    uint32_t n = srq_number(srq[A]);
    cr_expect_eq(srq_destroy(srq[A]), 0, "targets don't keep it");
    cr_expect_null(engine_peek_completion(fix.e), "its completions are dropped");
    memset(srqmem[A], 0xdb, srq_size(8, 2));
    cr_expect_eq(feed(request(OP_SEND_LAST, n, 1), NULL), NAK_REMOTE_ACCESS);
    psn--;
    cr_expect_null(engine_peek_completion(fix.e), "nor is there a flushed one");
    cr_expect_eq(qp_state(tgt), QPS_ERR);
}

/* --- protection -------------------------------------------------------------------------------- */

static void expect_protection(uint8_t operation)
{
    for (int i = 0; i < 4; i++) { /* keys of PDs A and B, through SRQs A and B */
        struct pkt answer, p = request(operation, srq_number(srq[i % 2]), operation == OP_WRITE_ONLY ? 8 : 0);
        p.reth = (struct pkt_reth){FIX_VA, key[i / 2], 8};
        p.atomic.va = FIX_VA;
        p.atomic.rkey = key[i / 2];
        uint8_t syndrome = feed(p, &answer);
        if (i % 2 == i / 2) {
            cr_expect_eq(syndrome, ACKED, "operation %#x: %#x", operation, syndrome);
            cr_expect_eq(answer.opcode & OP_SERVICE_MASK, OP_SERVICE_XRC);
        } else {
            cr_expect_eq(syndrome, NAK_REMOTE_ACCESS, "operation %#x: %#x", operation, syndrome);
            expect_dead(EVENT_QP_ACCESS_ERR);
            qp_destroy(tgt);
            tgt = make_target(QPS_RTR);
            psn = 100;
        }
    }
}

Test(xrc, remote_keys_belong_to_the_protection_domain_of_the_srq)
{
    expect_protection(OP_WRITE_ONLY);
    expect_protection(OP_READ_REQUEST);
    expect_protection(OP_FETCH_ADD);
    cr_expect_eq(fix.writes, 2);
    cr_expect_eq(fix.atomics, 2);
}

Test(xrc, a_repeated_read_keeps_its_protection_domain)
{
    struct pkt answer, read = request(OP_READ_REQUEST, srq_number(srq[A]), 0);
    struct pkt write = request(OP_WRITE_ONLY, srq_number(srq[B]), 0);
    read.reth = (struct pkt_reth){FIX_VA, key[0], 8};
    cr_expect_eq(feed(read, &answer), ACKED);
    write.psn = psn;
    cr_expect_eq(feed(write, NULL), ACKED);
    cr_expect_eq(feed(read, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_READ_RESP_ONLY);
    cr_expect_eq(answer.payload_len, 8);
}

Test(xrc, receive_buffers_belong_to_the_protection_domain_of_the_srq)
{
    struct recv_wr wr = {.num_sge = 1, .slot = 3, .wr_id = 7003};
    struct sge sge = {FIX_VA, 100, key[1]};
    cr_assert_eq(srq_post_recv(srq[A], &wr, &sge), 0);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 80), NAK_REMOTE_OPERATION);
    expect_recv(A, 3, WC_LOC_PROT_ERR);
}

Test(xrc, atomic_write_uses_the_protection_domain_of_the_srq)
{
    struct pkt p = request(OP_ATOMIC_WRITE, srq_number(srq[B]), 8);
    p.reth = (struct pkt_reth){FIX_VA, key[1], 8};
    cr_expect_eq(feed(p, NULL), ACKED);
    p = request(OP_ATOMIC_WRITE, srq_number(srq[A]), 8);
    p.reth = (struct pkt_reth){FIX_VA, key[1], 8};
    cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

/* Binds a window of PD_A to the first 64 bytes. */
static uint32_t bind_window(struct qp *by, uint8_t type, uint8_t status)
{
    uint32_t window, region;
    struct mr_init mr = {.pd = PD_A, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_MW_BIND;
    cr_assert_eq(mr_register(fix.e, &mr, &region), 0);
    cr_assert_eq(mw_alloc(fix.e, PD_A, type, &window), 0);
    uint32_t bound = (window & ~0xffu) | ((window + 1) & 0xff);
    struct send_wr wr = {.opcode = WR_BIND_MW, .flags = SEND_SIGNALED};
    wr.bind = (struct mw_bind){.mw_key = type == MW_TYPE_1 ? window : bound,
                               .new_key = type == MW_TYPE_1 ? bound : 0,
                               .mr_key = region,
                               .access = ACCESS_REMOTE_WRITE,
                               .addr = FIX_VA,
                               .length = 64};
    cr_assert_eq(qp_post_send(by, &wr, NULL, NULL), 0);
    fix_tx(&fix, buf, NULL, 0);
    cr_assert_eq(fix_take(&fix).status, status);
    return bound;
}

static struct qp *rc_qp(void)
{
    struct qp_init init = {
        .type = QPT_RC, .pd = PD_A, .caps = {4, 0, 0, 0, 0}, .send_cq = &ini, .recv_cq = &ini, .owner = &ini};
    return make_qp(&init, QPS_RTS);
}

static uint8_t write_by(uint32_t rkey, int i)
{
    struct pkt p = request(OP_WRITE_ONLY, srq_number(srq[i]), 8);
    p.reth = (struct pkt_reth){FIX_VA, rkey, 8};
    return feed(p, NULL);
}

Test(xrc, type_1_windows_belong_to_a_protection_domain)
{
    uint32_t rkey = bind_window(ini, MW_TYPE_1, WC_SUCCESS);
    cr_expect_eq(write_by(rkey, A), ACKED);
    cr_expect_eq(write_by(rkey, B), NAK_REMOTE_ACCESS);
}

Test(xrc, type_2_windows_belong_to_a_qp_that_is_no_target)
{
    cr_expect_eq(write_by(bind_window(ini, MW_TYPE_2, WC_SUCCESS), A), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

Test(xrc, type_2_windows_of_other_qps_are_not_reached)
{
    cr_expect_eq(write_by(bind_window(rc_qp(), MW_TYPE_2, WC_SUCCESS), A), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

Test(xrc, send_with_invalidate_to_a_target_is_refused)
{
    struct pkt p = request(OP_SEND_ONLY_INV, srq_number(srq[A]), 1);
    p.inv_rkey = bind_window(rc_qp(), MW_TYPE_2, WC_SUCCESS);
    post_one(A, 0);
    cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    expect_untouched(A, 1);
}
