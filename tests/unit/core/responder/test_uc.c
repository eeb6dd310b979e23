// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable connections (IBA 9.8.2): what is sent, what is delivered, what is dropped, and the state SQE. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"

#define PEER_PSN 100u /* fix_attr's rq_psn */
#define MTU 256u

static struct fixture fix;
static struct qp *qp;
static uint32_t key;
static uint8_t payload[1024];
static uint8_t out[65536];

static void setup(void)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp_of(&fix, QPT_UC);
    fix_bring(qp, QPS_RTS);
    for (unsigned i = 0; i < sizeof payload; i++) {
        payload[i] = (uint8_t)(i * 7 + 1);
    }
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(uc, .init = setup, .fini = teardown);

static void post_recv(uint64_t wr_id, uint32_t off, uint32_t len)
{
    struct sge sge = {FIX_VA + off, len, key};
    struct recv_wr wr = {.wr_id = wr_id, .num_sge = 1};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
}

static void post_send(uint8_t opcode, uint64_t wr_id, uint32_t len, uint32_t lkey)
{
    struct sge sge = {FIX_VA, len, lkey};
    struct send_wr wr = {.opcode = opcode, .wr_id = wr_id, .flags = SEND_SIGNALED, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* A packet from the peer. psn is relative to the first one expected. */
static void rx(uint8_t operation, uint32_t psn, uint32_t len)
{
    struct pkt p = {.opcode = (uint8_t)(OP_SERVICE_UC | operation),
                    .dest_qpn = qp_number(qp),
                    .psn = PEER_PSN + psn,
                    .payload = payload + (psn * MTU) % 512,
                    .payload_len = len,
                    .imm = {1, 2, 3, 4}};
    p.reth.va = FIX_VA + 4096;
    p.reth.rkey = key;
    p.reth.length = operation == OP_WRITE_FIRST ? 2 * MTU : len;
    fix_rx(&fix, &p);
}

static void none(void)
{
    struct pkt p;
    cr_expect_null(engine_peek_completion(fix.e), "no completion");
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0, "nothing is ever answered");
    if (engine_deadline(fix.e) != NEVER) { /* the flow control of the destination may wait for a time */
        fix.now = engine_deadline(fix.e) + 100000;
        engine_expire(fix.e, fix.now);
    }
    cr_expect_eq(engine_deadline(fix.e), NEVER);
}

/* --- requester --------------------------------------------------------------------------------- */

Test(uc, a_send_completes_when_it_is_sent)
{
    struct pkt p[4];
    post_send(WR_SEND, 7, 2 * MTU + 10, key);
    cr_assert_eq(fix_tx(&fix, out, p, 4), 3);
    static const uint8_t operation[] = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST};
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(p[i].opcode, OP_SERVICE_UC | operation[i]);
        cr_expect_eq(p[i].psn, 200 + i);
        cr_expect_not(p[i].ackreq, "there is nobody who would acknowledge");
    }
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.wr_id, 7);
    cr_expect_eq(c.status, WC_SUCCESS);
    none();
}

Test(uc, requests_complete_in_order_with_consecutive_psns)
{
    struct pkt p[8];
    post_send(WR_RDMA_WRITE, 1, MTU + 1, key);
    post_send(WR_SEND_WITH_IMM, 2, 0, key);
    post_send(WR_RDMA_WRITE_WITH_IMM, 3, 5, key);
    cr_assert_eq(fix_tx(&fix, out, p, 8), 4);
    for (uint32_t i = 0; i < 4; i++) {
        cr_expect_eq(p[i].psn, 200 + i);
    }
    for (uint64_t i = 1; i <= 3; i++) {
        cr_expect_eq(fix_take(&fix).wr_id, i);
    }
    none();
}

Test(uc, operations_of_rc_alone_are_refused)
{
    static const uint8_t opcodes[] = {WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD, WR_SEND_WITH_INV};
    for (size_t i = 0; i < sizeof opcodes; i++) {
        struct sge sge = {FIX_VA, 8, key};
        struct send_wr wr = {.opcode = opcodes[i], .num_sge = 1};
        cr_expect_eq(qp_post_send(qp, &wr, &sge, NULL), -EINVAL, "opcode %u", opcodes[i]);
    }
}

Test(uc, a_bad_send_leads_to_sqe_and_receiving_continues)
{
    struct pkt p[4];
    post_recv(9, 0, MTU);
    post_send(WR_SEND, 1, 10, key);
    post_send(WR_SEND, 2, 10, key + 1);
    post_send(WR_SEND, 3, 10, key);
    cr_expect_eq(fix_tx(&fix, out, p, 4), 1);
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.status, WC_SUCCESS);
    c = fix_take(&fix);
    cr_expect(c.wr_id == 2 && c.status == WC_LOC_PROT_ERR);
    c = fix_take(&fix);
    cr_expect(c.wr_id == 3 && c.status == WC_WR_FLUSH_ERR);
    cr_expect_eq(qp_state(qp), QPS_SQE);
    post_send(WR_SEND, 4, 10, key);
    cr_expect_eq(fix_tx(&fix, out, p, 4), 0, "in SQE nothing is sent");
    c = fix_take(&fix);
    cr_expect(c.wr_id == 4 && c.status == WC_WR_FLUSH_ERR);

    rx(OP_SEND_ONLY, 0, 10); /* but the QP still receives */
    cr_expect_eq(fix_take(&fix).wr_id, 9);

    struct qp_attr a = {.state = QPS_RTS, .cur_state = QPS_SQE};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE | QPA_CUR_STATE, NULL), 0);
    post_send(WR_SEND, 5, 10, key);
    cr_assert_eq(fix_tx(&fix, out, p, 4), 1);
    cr_expect_eq(p[0].psn, 201, "what was flushed took no PSN");
    c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.status == WC_SUCCESS);
    none();
}

Test(uc, sqe_flushes_all_posted_requests_as_room_allows)
{
    struct pkt p;
    for (uint32_t i = 0; i < fix.cfg.completion_slots; i++) {
        post_send(WR_SEND, 100 + i, 1, key);
        cr_assert_eq(fix_tx(&fix, out, &p, 1), 1);
    }
    post_send(WR_SEND, 1, 1, key + 1);
    post_send(WR_SEND, 2, 1, key);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0);
    cr_expect_eq(qp_state(qp), QPS_SQE);
    struct qp_attr a = {.state = QPS_RTS};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post_send(WR_SEND, 3, 1, key);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0, "those before it are not completed yet");
    for (uint32_t i = 0; i < fix.cfg.completion_slots; i++) {
        fix_take(&fix);
    }
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 1);
    static const uint8_t status[] = {WC_LOC_PROT_ERR, WC_WR_FLUSH_ERR, WC_SUCCESS};
    for (uint64_t i = 0; i < 3; i++) {
        struct completion c = fix_take(&fix);
        cr_expect(c.wr_id == i + 1 && c.status == status[i], "%u: %u", (unsigned)c.wr_id, c.status);
    }
}

/* --- responder --------------------------------------------------------------------------------- */

Test(uc, a_message_in_order_is_delivered_and_not_acknowledged)
{
    post_recv(5, 0, 3 * MTU);
    rx(OP_SEND_FIRST, 0, MTU);
    rx(OP_SEND_MIDDLE, 1, MTU);
    rx(OP_SEND_LAST_IMM, 2, 3);
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.status == WC_SUCCESS && c.byte_len == 2 * MTU + 3);
    cr_expect(c.flags == WC_WITH_IMM && memcmp(c.imm, "\1\2\3\4", 4) == 0);
    cr_expect_eq(c.src_qp, 1234);
    cr_expect_eq(memcmp(fix.bytes, payload, 2 * MTU), 0);
    none();
}

Test(uc, a_gap_drops_up_to_the_next_message_and_keeps_the_receive_request)
{
    post_recv(5, 0, 3 * MTU);
    rx(OP_SEND_FIRST, 0, MTU);
    rx(OP_SEND_LAST, 2, 7); /* 1 is missing */
    none();
    rx(OP_SEND_MIDDLE, 3, MTU);
    rx(OP_SEND_LAST, 4, 7);
    none();
    rx(OP_SEND_ONLY, 6, 7); /* a message may begin with any PSN */
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.status == WC_SUCCESS && c.byte_len == 7, "the request is there for this one");
    rx(OP_SEND_ONLY, 7, 7);
    none();
}

Test(uc, a_message_that_begins_ends_the_one_before_it)
{
    post_recv(5, 0, 3 * MTU);
    rx(OP_SEND_FIRST, 0, MTU);
    rx(OP_SEND_FIRST, 1, MTU);
    rx(OP_SEND_LAST, 2, 7);
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.byte_len, MTU + 7, "without the bytes of the first one");
    cr_expect_eq(memcmp(fix.bytes, payload + MTU, MTU), 0);
    none();
}

Test(uc, a_write_does_not_continue_as_a_send)
{
    post_recv(5, 0, 3 * MTU);
    rx(OP_WRITE_FIRST, 0, MTU);
    rx(OP_SEND_LAST, 1, 7);
    none();
    rx(OP_WRITE_LAST, 2, MTU); /* and it does not continue after that either */
    cr_expect_eq(fix.writes, 1u);
    cr_expect_eq(qp_state(qp), QPS_RTS);
}

Test(uc, a_message_without_a_receive_request_is_dropped)
{
    struct qp_info info;
    rx(OP_SEND_FIRST, 0, MTU);
    post_recv(5, 0, 3 * MTU);
    rx(OP_SEND_LAST, 1, 7); /* too late for this message */
    none();
    rx(OP_SEND_ONLY, 2, 7);
    cr_expect_eq(fix_take(&fix).wr_id, 5);
    qp_info(qp, &info);
    cr_expect_eq(info.counters.rx_no_recv, 1u);
    none();
}

Test(uc, writes_arrive_and_immediate_data_takes_a_receive_request)
{
    rx(OP_WRITE_FIRST, 0, MTU);
    rx(OP_WRITE_LAST, 1, MTU);
    cr_expect_eq(memcmp(fix.bytes + 4096, payload, 2 * MTU), 0);
    none();
    post_recv(5, 0, 0);
    rx(OP_WRITE_ONLY_IMM, 2, 8);
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.opcode == WC_RECV_RDMA_WITH_IMM && c.byte_len == 8 && c.flags == WC_WITH_IMM);
    none();
}

Test(uc, a_refused_message_is_dropped_without_an_answer)
{
    struct event ev;
    post_recv(5, 0, 8);
    struct pkt p = {.opcode = OP_SERVICE_UC | OP_WRITE_ONLY, .dest_qpn = qp_number(qp), .psn = PEER_PSN};
    p.payload = payload;
    p.payload_len = 8;
    p.reth.va = FIX_VA;
    p.reth.rkey = key + 1;
    p.reth.length = 8;
    fix_rx(&fix, &p);
    rx(OP_SEND_ONLY, 1, 9); /* longer than the receive request */
    rx(OP_SEND_ONLY, 2, MTU + 1); /* longer than the path MTU */
    none();
    cr_expect_eq(fix.writes, 0u);
    cr_expect_eq(qp_state(qp), QPS_RTS);
    cr_expect_not(engine_pop_event(fix.e, &ev));
    rx(OP_SEND_ONLY, 3, 8);
    cr_expect_eq(fix_take(&fix).wr_id, 5);
}

Test(uc, a_bad_receive_request_ends_the_qp)
{
    struct sge sge = {FIX_VA, 64, key + 1};
    struct recv_wr wr = {.wr_id = 5, .num_sge = 1};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
    post_recv(6, 0, 64);
    rx(OP_SEND_ONLY, 0, 9);
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.status == WC_LOC_PROT_ERR);
    cr_expect_eq(qp_state(qp), QPS_ERR);
    c = fix_take(&fix);
    cr_expect(c.wr_id == 6 && c.status == WC_WR_FLUSH_ERR);
    none();
}

Test(uc, a_failed_deferred_write_is_reported_locally_only)
{
    post_recv(5, 0, MTU);
    rx(OP_SEND_ONLY, 0, MTU);
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    cr_expect_eq(fix_take(&fix).status, WC_LOC_PROT_ERR);
    cr_expect_eq(qp_state(qp), QPS_ERR);
    none();
}

Test(uc, the_first_packet_in_rtr_raises_an_event)
{
    struct qp *early = fix_qp_of(&fix, QPT_UC);
    struct event ev;
    fix_bring(early, QPS_RTR);
    qp = early;
    rx(OP_WRITE_ONLY, 0, 8);
    cr_assert(engine_pop_event(fix.e, &ev));
    cr_expect(ev.type == EVENT_COMM_EST && ev.qpn == qp_number(early));
    rx(OP_WRITE_ONLY, 1, 8);
    cr_expect_not(engine_pop_event(fix.e, &ev));
}

Test(uc, a_destroyed_uc_qp_has_no_time_wait)
{
    post_recv(5, 0, MTU);
    rx(OP_SEND_ONLY, 0, 8);
    fix_take(&fix);
    uint32_t qpn = qp_number(qp);
    qp_destroy(qp);
    struct pkt p = {.opcode = OP_SERVICE_UC | OP_SEND_ONLY, .dest_qpn = qpn, .psn = PEER_PSN, .payload = payload};
    fix_rx(&fix, &p);
    none();
}
