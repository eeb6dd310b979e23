// SPDX-License-Identifier: BSD-2-Clause
/* Operations of the send queue that send nothing: bind and local invalidate. Tests their place in the order of
 * requests, and that each is executed once, however often the packets around it are sent. */
#include <errno.h>

#include "tests/unit/core/one_qp.h"

static uint32_t mr, mw; /* the window is of type 2 */

static void setup(void)
{
    struct mr_init init = {.pd = FIX_PD,
                           .space = 1,
                           .va = FIX_VA,
                           .iova = FIX_VA,
                           .length = FIX_MEM,
                           .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND};
    fix_init(&fix);
    cr_assert_eq(mr_register(fix.e, &init, &mr), 0);
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &mw), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256; four requests at once */
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(local_ops, .init = setup, .fini = teardown);

static void post_flags(uint8_t opcode, uint32_t len, uint8_t flags)
{
    static uint64_t id;
    struct sge sge = {FIX_VA, len, mr};
    bool local = opcode == WR_BIND_MW || opcode == WR_LOCAL_INV;
    struct send_wr wr = {.wr_id = ++id, .opcode = opcode, .flags = flags, .num_sge = !local};
    wr.inv_rkey = mw;
    if (opcode == WR_BIND_MW) {
        wr.bind = (struct mw_bind){
            .mw_key = mw, .mr_key = mr, .access = ACCESS_REMOTE_READ, .addr = FIX_VA, .length = len ? len : 8};
    }
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static void post(uint8_t opcode, uint32_t len)
{
    post_flags(opcode, len, SEND_SIGNALED);
}

static void read_response(uint32_t psn, uint32_t len)
{
    static const uint8_t data[256];
    arrive((struct pkt){.opcode = OP_READ_RESP_ONLY, .psn = psn, .payload = data, .payload_len = len});
}

/* Expects that the next completion has this opcode and status. */
static void expect_wc(uint8_t opcode, uint8_t status)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c, "no completion, not one of opcode %u", opcode);
    cr_expect_eq(c->opcode, opcode, "opcode %u, not %u", c->opcode, opcode);
    cr_expect_eq(c->status, status, "opcode %u: status %u, not %u", opcode, c->status, status);
    cr_expect_not(c->is_recv);
    engine_drop_completion(fix.e);
}

static void expect_none(void)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_expect_null(c, "completion of opcode %u, status %u", c ? c->opcode : 0, c ? c->status : 0);
}

static bool is_bound(void)
{
    int err = mr_deregister(fix.e, mr);
    cr_assert(err == 0 || err == -EBUSY);
    return err != 0;
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

/* --- alone ------------------------------------------------------------------------------------- */

Test(local_ops, local_operations_need_no_packets_and_no_timer)
{
    for (int i = 0; i < 20; i++) {
        post(WR_BIND_MW, 8);
        cr_expect_eq(transmit(), 0);
        expect_wc(WC_BIND_MW, WC_SUCCESS);
        post(WR_LOCAL_INV, 0);
        cr_expect_eq(transmit(), 0);
        expect_wc(WC_LOCAL_INV, WC_SUCCESS);
        cr_expect_eq(engine_deadline(fix.e), NEVER);
    }
    cr_expect_eq(info().next_psn, 200u, "they take no PSN");
    cr_expect_eq(info().sq_posted, 0u);
    cr_expect_eq(engine_counters(fix.e)->mw_binds, 20u);
    cr_expect_eq(engine_counters(fix.e)->mw_invalidates, 20u);
}

Test(local_ops, many_operations_are_executed_in_order)
{
    post(WR_BIND_MW, 8);
    post(WR_LOCAL_INV, 0);
    post(WR_BIND_MW, 16);
    post(WR_LOCAL_INV, 0);
    cr_expect_eq(transmit(), 0);
    for (int i = 0; i < 2; i++) {
        expect_wc(WC_BIND_MW, WC_SUCCESS);
        expect_wc(WC_LOCAL_INV, WC_SUCCESS);
    }
    expect_none();
    cr_expect_not(is_bound());
}

Test(local_ops, unsignaled_operations_have_no_completions)
{
    post_flags(WR_BIND_MW, 8, 0);
    cr_expect_eq(transmit(), 0);
    expect_none();
    cr_expect_eq(qp_send_room(qp), 4u);
    post_flags(WR_LOCAL_INV, 8, 0);
    post_flags(WR_LOCAL_INV, 8, 0);
    cr_expect_eq(transmit(), 0);
    expect_wc(WC_LOCAL_INV, WC_LOC_QP_OP_ERR);
    expect_none();
}

Test(local_ops, local_operations_carry_no_data)
{
    struct sge sge = {FIX_VA, 8, mr};
    for (uint8_t opcode = WR_LOCAL_INV; opcode <= WR_BIND_MW; opcode++) {
        struct send_wr with_sge = {.opcode = opcode, .num_sge = 1};
        struct send_wr with_data = {.opcode = opcode, .flags = SEND_INLINE};
        cr_expect_eq(qp_post_send(qp, &with_sge, &sge, NULL), -EINVAL);
        cr_expect_eq(qp_post_send(qp, &with_data, NULL, ""), -EINVAL);
    }
}

/* --- order ------------------------------------------------------------------------------------- */

Test(local_ops, a_bind_runs_at_once_and_completes_in_order)
{
    post(WR_SEND, 8);
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 2);
    cr_expect(is_bound());
    expect_none();
    ack(200);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    expect_none();
    ack(201);
    expect_wc(WC_SEND, WC_SUCCESS);
}

Test(local_ops, requests_after_a_bind_are_sent_after_it)
{
    post(WR_RDMA_READ, 8);
    post_flags(WR_BIND_MW, 8, SEND_SIGNALED | SEND_FENCE);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1, "the bind is fenced, and the SEND waits behind it");
    cr_expect_not(is_bound());
    cr_expect(info().waiting_fence);
}

Test(local_ops, a_fenced_bind_runs_when_the_reads_are_done)
{
    post(WR_RDMA_READ, 8);
    post_flags(WR_BIND_MW, 8, SEND_SIGNALED | SEND_FENCE);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1);
    read_response(200, 8);
    expect_wc(WC_RDMA_READ, WC_SUCCESS);
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_SEND_ONLY);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    cr_expect(is_bound());
}

Test(local_ops, an_invalidation_waits_for_all_earlier_requests)
{
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    post(WR_LOCAL_INV, 0);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    expect_none();
    cr_expect(is_bound());
    cr_expect(info().waiting_fence);
    ack(200);
    expect_wc(WC_SEND, WC_SUCCESS);
    cr_expect_eq(transmit(), 1, "now the SEND behind it");
    cr_expect_eq(sent(0).psn, 201u);
    expect_wc(WC_LOCAL_INV, WC_SUCCESS);
    cr_expect_not(is_bound());
    expect_none();
}

Test(local_ops, a_key_sent_behind_its_bind_is_valid_when_it_comes)
{
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1);
    static uint8_t out[16384];
    struct pkt a, p = {.opcode = OP_READ_REQUEST, .psn = 100, .dest_qpn = qp_number(qp), .reth = {FIX_VA, mw, 8}};
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0);
    cr_expect_eq(a.opcode, OP_READ_RESP_ONLY);
}

/* --- failures ---------------------------------------------------------------------------------- */

Test(local_ops, a_failed_bind_fails_in_its_turn)
{
    post(WR_SEND, 8);
    mw ^= 0x100; /* no such window */
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1, "nothing behind it is sent");
    expect_none();
    cr_expect_eq(qp_state(qp), QPS_RTS);
    ack(200);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_MW_BIND_ERR);
    transmit();
    expect_wc(WC_SEND, WC_WR_FLUSH_ERR);
    cr_expect_eq(qp_state(qp), QPS_ERR);
}

Test(local_ops, a_failed_bind_is_kept_when_the_qp_rewinds)
{
    post(WR_SEND, 600);
    mw ^= 0x100;
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 3);
    nak(NAK_PSN_SEQUENCE, 200);
    cr_expect_eq(transmit(), 3);
    cr_expect_eq(sent(2).psn, 202u);
    expect_none();
    ack(202);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_MW_BIND_ERR);
}

Test(local_ops, err_executes_no_local_operation)
{
    fix_bring(qp, QPS_ERR);
    post(WR_BIND_MW, 8);
    post(WR_LOCAL_INV, 8);
    transmit();
    expect_wc(WC_BIND_MW, WC_WR_FLUSH_ERR);
    expect_wc(WC_LOCAL_INV, WC_WR_FLUSH_ERR);
    cr_expect_not(is_bound());
}

Test(local_ops, a_refused_request_flushes_the_bind_behind_it)
{
    post(WR_SEND, 8);
    post(WR_BIND_MW, 8);
    cr_expect_eq(transmit(), 1);
    nak(NAK_REMOTE_OPERATION, 200);
    expect_wc(WC_SEND, WC_REM_OP_ERR);
    expect_wc(WC_BIND_MW, WC_WR_FLUSH_ERR);
    cr_expect(is_bound(), "although it was carried out");
}

/* --- retransmission ---------------------------------------------------------------------------- */

/* The window is bound between packets that are sent again and again. A repeated bind would fail, because the window
 * is not free. */
Test(local_ops, a_bind_between_lost_packets_is_not_repeated)
{
    post(WR_SEND, 600); /* 200 … 202 */
    post(WR_BIND_MW, 8);
    post(WR_SEND, 600); /* 203 … 205 */
    cr_expect_eq(transmit(), 6);
    for (uint32_t from = 200; from < 206; from++) {
        nak(NAK_PSN_SEQUENCE, from);
        cr_expect_eq(transmit(), 206 - from);
        cr_expect_eq(sent(0).psn, from);
        if (from == 203) {
            expect_wc(WC_SEND, WC_SUCCESS);
            expect_wc(WC_BIND_MW, WC_SUCCESS);
        }
        expect_none();
    }
    ack(205);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_none();
    cr_expect_eq(engine_counters(fix.e)->mw_binds, 1u);
    cr_expect_eq(info().inflight_bytes, 0u);
}

/* The tail probe repeats the newest packet, not the bind behind it. */
Test(local_ops, a_bind_at_the_tail_is_not_probed)
{
    post(WR_SEND, 8);
    post(WR_BIND_MW, 8);
    post(WR_LOCAL_INV, 0);
    cr_expect_eq(transmit(), 1);
    for (int i = 0; i < 4; i++) {
        fix.now = engine_deadline(fix.e);
        cr_assert_neq(fix.now, NEVER);
        engine_expire(fix.e, fix.now);
        if (transmit() > 0)
            cr_expect_eq(sent(0).psn, 200u);
        expect_none();
    }
    ack(200);
    cr_expect_eq(transmit(), 0);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    expect_wc(WC_LOCAL_INV, WC_SUCCESS);
    cr_expect_not(is_bound());
}

Test(local_ops, a_bind_waits_while_the_receiver_is_not_ready)
{
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1);
    nak(AETH_RNR | 12, 200); /* 0.64 ms */
    post(WR_BIND_MW, 8);
    cr_expect_eq(transmit(), 0);
    cr_expect(info().waiting_rnr);
    expect_none();
    fix.now = engine_deadline(fix.e);
    engine_expire(fix.e, fix.now);
    cr_expect_eq(transmit(), 1);
    ack(200);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
}

/* The QP has just gone back for a retransmission when an ACK for the first transmission arrives. The ACK steps over
 * the bind, too. */
Test(local_ops, a_late_ack_passes_over_executed_operations)
{
    post(WR_SEND, 8);
    post(WR_BIND_MW, 8);
    post(WR_SEND, 8);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 3);
    nak(NAK_PSN_SEQUENCE, 200);
    ack(201);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    expect_wc(WC_SEND, WC_SUCCESS);
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 202u);
    ack(202);
    expect_wc(WC_SEND, WC_SUCCESS);
}

/* --- unreliable connections -------------------------------------------------------------------- */

/* On UC a send is done when it was sent. So there is nothing to wait for. */
Test(local_ops, local_operations_work_on_unreliable_connections)
{
    struct qp_init init = {
        .type = QPT_UC, .pd = FIX_PD, .caps = {4, 4, 2, 2, 32}, .send_cq = &fix, .recv_cq = &fix, .owner = &fix};
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    static const uint32_t need[] = {QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
                                    QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN, QPA_SQ_PSN};
    cr_assert_eq(qp_create(fix.e, &init, mem, &qp), 0);
    for (uint8_t state = QPS_INIT; state <= QPS_RTS; state++) {
        struct qp_attr a = fix_attr();
        a.state = state;
        cr_assert_eq(qp_modify(qp, &a, QPA_STATE | need[state - 1], NULL), 0);
    }
    post(WR_BIND_MW, 8);
    post(WR_SEND, 600);
    post(WR_LOCAL_INV, 0);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 4);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_LOCAL_INV, WC_SUCCESS);
    expect_wc(WC_SEND, WC_SUCCESS);
    post(WR_SEND, 8);
    post(WR_LOCAL_INV, 0);
    post(WR_SEND, 8);
    cr_expect_eq(transmit(), 1);
    expect_wc(WC_SEND, WC_SUCCESS);
    expect_wc(WC_LOCAL_INV, WC_LOC_QP_OP_ERR);
    expect_wc(WC_SEND, WC_WR_FLUSH_ERR);
    cr_expect_eq(qp_state(qp), QPS_SQE);
}

/* --- draining ---------------------------------------------------------------------------------- */

Test(local_ops, a_drained_queue_starts_no_local_operation)
{
    struct qp_attr a = {.state = QPS_SQD};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post(WR_BIND_MW, 8);
    cr_expect_eq(transmit(), 0);
    expect_none();
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    cr_expect_eq(transmit(), 0);
    expect_wc(WC_BIND_MW, WC_SUCCESS);
}
