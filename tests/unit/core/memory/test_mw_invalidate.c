// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows: how their owner or a peer ends a binding, and what happens to requests at that time. */
#include "tests/unit/core/mw_fixture.h"

TestSuite(mw_invalidate, .init = setup, .fini = teardown);

Test(mw_invalidate, local_invalidation_has_its_rules)
{
    struct qp *second = fix_qp(&fix);
    fix_bring(second, QPS_RTS);
    uint32_t one = alloc(MW_TYPE_1), two = window_2(RR), freed = alloc(MW_TYPE_2), others = alloc(MW_TYPE_2);
    struct mw_bind b = {.mw_key = one, .new_key = one ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    b.mw_key = others;
    b.new_key = 0;
    cr_assert_eq(bind_on(second, b), WC_SUCCESS);
    const uint32_t wrong[] = {mr, one ^ 1, freed, others, 0, UINT32_MAX, two ^ 1};
    cr_assert_eq(invalidate(two), WC_SUCCESS);
    cr_assert_eq(invalidate(two), WC_LOC_QP_OP_ERR, "twice");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        renew();
        cr_expect_eq(invalidate(wrong[i]), WC_LOC_QP_OP_ERR, "key %zu", i);
    }
    renew();
    cr_expect_eq(ask(READ, one ^ 1, IOVA, 8), 0, "still there");
}

static struct pkt send_inv(uint32_t rkey)
{
    static uint8_t data[8];
    return (struct pkt){.opcode = OP_SEND_ONLY_INV,
                        .psn = psn,
                        .ackreq = true,
                        .dest_qpn = qp_number(qp),
                        .inv_rkey = rkey,
                        .payload = data,
                        .payload_len = 8};
}

static void post_recv(void)
{
    struct recv_wr wr = {.num_sge = 1};
    struct sge sge = {IOVA, LENGTH, mr};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
}

Test(mw_invalidate, a_peer_invalidates_a_window_that_is_bound_through_its_qp)
{
    static uint8_t out[16384];
    uint32_t key = window_2(RR);
    struct pkt p = send_inv(key), a;
    post_recv();
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome & AETH_KIND_MASK, AETH_ACK);
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    cr_expect(c->status == WC_SUCCESS && c->opcode == WC_RECV && c->flags == WC_WITH_INV && c->inv_rkey == key);
    engine_drop_completion(fix.e);
    psn++;
    cr_expect_eq(ask(READ, key, IOVA, 8), NAK_REMOTE_ACCESS);
}

Test(mw_invalidate, a_duplicate_does_not_invalidate_a_later_bind)
{
    static uint8_t out[16384];
    uint32_t key = window_2(RR);
    struct pkt p = send_inv(key), a;
    struct mw_bind b = {.mw_key = key, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    post_recv();
    post_recv();
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    engine_drop_completion(fix.e);
    cr_assert_eq(bind_it(b), WC_SUCCESS, "with the same tag");
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
        cr_expect_eq(a.aeth.syndrome & AETH_KIND_MASK, AETH_ACK);
    }
    psn++;
    cr_expect_eq(ask(READ, key, IOVA, 8), 0);
    cr_expect_null(engine_peek_completion(fix.e), "one completion for one message");
}

Test(mw_invalidate, a_peer_cannot_invalidate_anything_else)
{
    static uint8_t out[16384];
    struct qp *second = fix_qp(&fix);
    fix_bring(second, QPS_RTS);
    uint32_t one = alloc(MW_TYPE_1), freed = alloc(MW_TYPE_2), others = alloc(MW_TYPE_2);
    struct mw_bind b = {.mw_key = one, .new_key = one ^ 1, .mr_key = mr, .access = RR, .addr = IOVA, .length = 8};
    cr_assert_eq(bind_it(b), WC_SUCCESS);
    b.mw_key = others;
    b.new_key = 0;
    cr_assert_eq(bind_on(second, b), WC_SUCCESS);
    uint32_t mine = window_2(RR);
    const uint32_t wrong[] = {mr, one ^ 1, freed, others, 0, UINT32_MAX, mine ^ 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pkt p = send_inv(wrong[i]), a;
        struct event ev;
        post_recv();
        cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
        cr_expect_eq(a.aeth.syndrome, NAK_REMOTE_ACCESS, "key %zu", i);
        cr_expect(engine_pop_event(fix.e, &ev) && ev.type == EVENT_QP_ACCESS_ERR, "key %zu", i);
        cr_assert_not_null(engine_peek_completion(fix.e));
        cr_expect_eq(engine_peek_completion(fix.e)->status, WC_WR_FLUSH_ERR);
        renew();
    }
    uint32_t at = 100;
    cr_expect_eq(ask_of(second, &at, READ, others, IOVA, 8), 0, "still bound");
}

Test(mw_invalidate, a_long_message_invalidates_at_its_last_packet)
{
    static uint8_t out[16384], data[256];
    uint32_t key = window_2(RR), at = 0;
    struct pkt p = send_inv(key), a;
    post_recv();
    p.opcode = OP_SEND_FIRST;
    p.payload = data;
    p.payload_len = 256;
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_null(engine_peek_completion(fix.e));
    cr_expect_eq(mr_deregister(fix.e, mr), -EBUSY, "still bound");
    p.opcode = OP_SEND_LAST_INV;
    p.psn++;
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_assert_not_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_peek_completion(fix.e)->inv_rkey, key);
    at = p.psn + 1;
    cr_expect_eq(ask_of(qp, &at, READ, key, IOVA, 8), NAK_REMOTE_ACCESS);
}

Test(mw_invalidate, a_write_stops_when_its_window_is_invalidated)
{
    static uint8_t out[16384], data[256];
    uint32_t key = window_2(RW);
    struct pkt a;
    struct pkt p = {.opcode = OP_WRITE_FIRST,
                    .psn = psn,
                    .ackreq = true,
                    .dest_qpn = qp_number(qp),
                    .payload = data,
                    .payload_len = 256,
                    .reth = {.va = IOVA, .rkey = key, .length = 512}};
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome & AETH_KIND_MASK, AETH_ACK);
    cr_assert_eq(invalidate(key), WC_SUCCESS);
    p.opcode = OP_WRITE_LAST;
    p.psn++;
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(fix.writes, 1u);
}

/* The network duplicates a READ request, and the copy arrives when the READ is done and its window is no longer
 * bound. No one waits for an answer, and nothing is wrong. */
Test(mw_invalidate, a_duplicate_of_a_read_may_come_after_the_invalidation)
{
    static uint8_t out[16384];
    uint32_t key = window_2(RR), old = psn;
    cr_expect_eq(ask(READ, key, IOVA, 8), 0);
    cr_assert_eq(invalidate(key), WC_SUCCESS);
    struct pkt a, p = {.opcode = OP_READ_REQUEST, .psn = old, .dest_qpn = qp_number(qp), .reth = {IOVA, key, 8}};
    cr_expect_eq(fix_exchange(&fix, &p, out, &a), -1, "no answer");
    cr_expect_eq(qp_state(qp), QPS_RTS);
    cr_expect_eq(ask(READ, window_2(RR), IOVA, 8), 0, "all goes on");
}

Test(mw_invalidate, a_read_stops_when_its_window_is_invalidated)
{
    static uint8_t buf[16384];
    struct rx_meta meta = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 1}};
    struct tx_batch b = {.buf = buf, .cap = 400}; /* one packet of 256 */
    uint32_t key = window_2(RR);
    struct pkt a;
    struct pkt p = {.opcode = OP_READ_REQUEST,
                    .psn = psn,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = qp_number(qp),
                    .reth = {.va = IOVA, .rkey = key, .length = 1024}};
    engine_rx(fix.e, &p, &meta, fix.now);
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 1u);
    cr_assert_eq(mw_dealloc(fix.e, key), 0);
    b = (struct tx_batch){.buf = buf, .cap = sizeof buf};
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 1u);
    cr_assert_eq(pkt_decode(buf, b.pkt[0].len, &a), PKT_OK);
    cr_expect_eq(a.opcode, OP_ACK);
    cr_expect_eq(a.aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(a.psn, psn + 1);
    cr_expect_eq(fix.reads, 1u);
}
