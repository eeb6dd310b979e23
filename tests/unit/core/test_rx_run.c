// SPDX-License-Identifier: BSD-2-Clause
/* Tests runs: packets of one message that one QP of a device hands to another (daemon/core/base/pkt_run.h). The simulator
 * shows that the results are those of the packets. These tests show when a QP takes a run as a whole, and when packet by
 * packet. */
#include "daemon/core/qp/engine_state.h"
#include "tests/unit/core/core_fixture.h"

#define MTU 256u
#define TO 4096u /* offset of the target in the memory */

static struct fixture fix;
static struct qp *from, *to; /* connected to each other */
static uint32_t key;
static struct tx_batch b;
static uint8_t buf[65536];

static uint32_t number(const struct qp *qp)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i.qpn;
}

static void connect_to(struct qp *qp, const struct qp *peer, uint8_t last_of_address, uint8_t mtu)
{
    static const enum qp_state way[] = {QPS_INIT, QPS_RTR, QPS_RTS};
    for (int i = 0; i < 3; i++) {
        struct qp_attr a = fix_attr();
        struct qp_info info;
        qp_info(qp, &info);
        a.state = (uint8_t)way[i];
        a.dest_qpn = number(peer);
        a.rq_psn = a.sq_psn;
        a.path_mtu = mtu;
        a.av.dgid[15] = last_of_address;
        uint32_t mask = QPA_STATE | fix_required_of((enum qp_type)info.type, qp_state(qp), way[i]);
        cr_assert_eq(qp_modify(qp, &a, mask, NULL), 0);
    }
}

/* The peer's path MTU: enum ibv_mtu. */
static void begin(enum qp_type type, uint8_t address, uint8_t peers_mtu)
{
    fix_init(&fix);
    struct mr_init init = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    init.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    for (unsigned i = 0; i < FIX_MEM; i++)
        fix.bytes[i] = (uint8_t)(i * 7 + i / 256);
    from = fix_qp_of(&fix, type);
    to = fix_qp_of(&fix, type);
    connect_to(from, to, address, 1);
    connect_to(to, from, address, peers_mtu);
    b.hand_over = true;
}

static void end(void)
{
    fix_fini(&fix);
}

TestSuite(rx_run, .fini = end);

static void post(uint8_t opcode, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {.wr_id = 1,
                         .opcode = opcode,
                         .flags = SEND_SIGNALED,
                         .num_sge = 1,
                         .remote_addr = FIX_VA + TO,
                         .rkey = key,
                         .imm = {1, 2, 3, 4}};
    bool read = opcode == WR_RDMA_READ;
    sge.addr += read ? TO : 0;
    wr.remote_addr -= read ? TO : 0;
    cr_assert_eq(qp_post_send(from, &wr, &sge, fix.bytes), 0);
}

/* Lets the engine fill the batch. Returns the number of packets. */
static uint32_t send(void)
{
    b.buf = buf;
    b.cap = sizeof buf;
    b.n = b.runs = b.acks = 0;
    b.used = 0;
    return engine_tx(fix.e, &b, fix.now);
}

/* Gives all of the batch back to the engine. */
static void arrive(void)
{
    struct rx_meta meta = {.src_gid = {[15] = 1}, .dst_gid = {[15] = 1}, .like_pumice = true};
    for (uint32_t i = 0; i < b.n; i += b.pkt[i].run ? b.pkt[i].run->n : 1) {
        struct pkt p;
        meta.src_qpn = b.pkt[i].src_qpn;
        if (b.pkt[i].run) {
            engine_rx_run(fix.e, b.pkt[i].run, &meta, fix.now);
        } else if (b.pkt[i].plain) {
            engine_rx(fix.e, b.pkt[i].plain, &meta, fix.now);
        } else {
            cr_assert_eq(pkt_decode(buf + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
            engine_rx(fix.e, &p, &meta, fix.now);
        }
    }
}

static void finish(uint8_t status)
{
    while (send() > 0)
        arrive();
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.status, status, "status %u", c.status);
    cr_expect_null(engine_peek_completion(fix.e));
}

Test(rx_run, a_write_is_checked_and_written_once)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 10 * MTU + 3);
    cr_assert_eq(send(), 11, "a run counts as its packets");
    cr_assert(b.runs == 1 && b.pkt[0].run);
    const struct pkt_run *r = b.pkt[0].run;
    cr_expect(r->n == 11 && r->payload_len == 10 * MTU + 3 && r->mtu == MTU);
    cr_expect(r->first.opcode == OP_WRITE_FIRST && r->middle == OP_WRITE_MIDDLE && r->last.opcode == OP_WRITE_LAST);
    cr_expect(!r->first.ackreq && r->last.ackreq);
    arrive();
    cr_expect_eq(fix.writes, 1);
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 10 * MTU + 3);
    cr_expect_eq(engine_counters(fix.e)->rcvd_pkts, 11);
    cr_expect_eq(fix.e->scheduler.common.received, 10 * MTU + 3 + 11 * PACKET_COST, "the cost of the packets");
    finish(WC_SUCCESS);
}

Test(rx_run, a_read_is_answered_by_a_run)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_READ, 9 * MTU);
    cr_assert_eq(send(), 1);
    arrive();
    cr_assert_eq(send(), 9);
    cr_assert(b.pkt[0].run);
    arrive();
    cr_expect_eq(fix.writes, 1);
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 9 * MTU);
    finish(WC_SUCCESS);
}

Test(rx_run, a_send_fills_its_receive_request)
{
    begin(QPT_RC, 1, 1);
    struct sge sge = {FIX_VA + TO, 4096, key};
    struct recv_wr wr = {.wr_id = 2, .num_sge = 1};
    cr_assert_eq(qp_post_recv(to, &wr, &sge), 0);
    post(WR_SEND_WITH_IMM, 5 * MTU);
    cr_assert_eq(send(), 5);
    arrive();
    cr_expect_eq(fix.writes, 1);
    struct completion c = fix_take(&fix);
    cr_expect(c.is_recv && c.status == WC_SUCCESS && c.byte_len == 5 * MTU && c.imm[3] == 4);
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 5 * MTU);
    finish(WC_SUCCESS);
}

/* Whatever stands against a run, the answer is the one to the packet that it stands against. */
Test(rx_run, a_message_without_a_receive_request_gets_an_rnr_nak)
{
    begin(QPT_RC, 1, 1);
    post(WR_SEND, 5 * MTU);
    cr_assert_eq(send(), 5);
    arrive();
    cr_expect_eq(fix.writes, 0);
    cr_expect_eq(engine_counters(fix.e)->send_rnr_err, 1);
    cr_expect_eq(engine_counters(fix.e)->rcvd_pkts, 5);
}

Test(rx_run, a_peer_with_another_path_mtu_refuses_the_first_packet)
{
    begin(QPT_RC, 1, 2);
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4);
    arrive();
    cr_expect_eq(fix.writes, 0);
    finish(WC_REM_INV_REQ_ERR);
}

Test(rx_run, a_key_that_does_not_allow_it_refuses_the_first_packet)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, FIX_MEM - TO);
    cr_assert_eq(send(), (FIX_MEM - TO) / MTU);
    cr_assert_eq(mr_deregister(fix.e, key), 0);
    arrive();
    cr_expect_eq(fix.writes, 0);
    finish(WC_REM_ACCESS_ERR);
}

Test(rx_run, a_run_behind_a_gap_is_taken_packet_by_packet)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4); /* and is lost */
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4);
    arrive();
    cr_expect_eq(fix.writes, 0);
    cr_expect_eq(engine_counters(fix.e)->out_of_seq_request, 4);
    cr_assert_eq(send(), 1, "one NAK");
    arrive();
    cr_assert_geq(send(), 4);
    cr_expect_null(b.pkt[0].run, "packets that are sent again are single packets");
}

Test(rx_run, an_unreliable_qp_takes_it_packet_by_packet)
{
    begin(QPT_UC, 1, 1);
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4);
    cr_assert(b.pkt[0].run);
    arrive();
    cr_expect_eq(fix.writes, 4);
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 4 * MTU);
    finish(WC_SUCCESS);
}

/* The QP takes runs from no other QP than its peer, although the address is its own. */
Test(rx_run, a_run_of_another_qp_is_dropped)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4);
    b.pkt[0].src_qpn++;
    arrive();
    cr_expect_eq(fix.writes, 0);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_source_qp, 4);
}

Test(rx_run, packets_to_another_address_are_packets)
{
    begin(QPT_RC, 2, 1);
    post(WR_RDMA_WRITE, 4 * MTU);
    cr_assert_eq(send(), 4);
    cr_expect(b.runs == 0 && !b.pkt[0].run && !b.pkt[3].run);
}

Test(rx_run, nothing_is_a_run_if_somebody_looks)
{
    begin(QPT_RC, 1, 1);
    b.hand_over = false;
    post(WR_RDMA_WRITE, 4 * MTU);
    post(WR_RDMA_WRITE, 8);
    cr_assert_eq(send(), 5);
    cr_expect(b.runs == 0 && !b.pkt[0].run && !b.pkt[3].run);
    cr_expect_null(b.pkt[4].plain);
}

Test(rx_run, a_message_of_one_packet_is_not_encoded)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 8);
    cr_assert_eq(send(), 1);
    cr_assert(!b.pkt[0].run && b.pkt[0].plain);
    cr_expect(b.pkt[0].plain->opcode == OP_WRITE_ONLY && b.pkt[0].plain->ackreq);
    cr_expect_arr_eq(buf, fix.bytes, 8, "the payload without headers");
    arrive();
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 8);
    cr_assert_eq(send(), 1);
    cr_assert_not_null(b.pkt[0].plain, "nor is the ACK");
    arrive();
    finish(WC_SUCCESS);
}

/* A batch with room for six packets, because a GSO send of four more would not fit. */
static void full_after_six(void)
{
    b.buf = buf;
    b.cap = 2700;
    b.gso = (struct gso_run){.bytes = 65000, .pkts = 4};
    b.n = b.runs = b.acks = 0;
    b.used = 0;
}

/* A run finds as much room as its packets would. The engine sends the others in the next batch. The last packet in this batch
 * asks for an ACK. */
Test(rx_run, a_full_batch_cuts_a_run)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 10 * MTU);
    full_after_six();
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 6);
    cr_assert(b.pkt[0].run && b.pkt[0].run->n == 6);
    cr_expect(b.pkt[0].run->last.opcode == OP_WRITE_MIDDLE && b.pkt[0].run->last.ackreq);
    arrive();
    cr_expect_eq(fix.writes, 1);
    finish(WC_SUCCESS);
    cr_expect_arr_eq(fix.bytes + TO, fix.bytes, 10 * MTU);
}

Test(rx_run, responses_behind_a_gap_are_not_the_expected_ones)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_READ, 10 * MTU);
    cr_assert_eq(send(), 1);
    arrive();
    full_after_six();
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 6); /* and is lost */
    cr_assert_eq(send(), 4);
    cr_assert(b.pkt[0].run);
    arrive();
    cr_expect_eq(fix.writes, 0);
    cr_expect_null(engine_peek_completion(fix.e));
}

Test(rx_run, packets_that_are_sent_again_ask_at_the_end_of_a_full_batch)
{
    begin(QPT_RC, 1, 1);
    post(WR_RDMA_WRITE, 10 * MTU);
    cr_assert_eq(send(), 10); /* and is lost */
    post(WR_RDMA_WRITE, MTU);
    cr_assert_eq(send(), 1);
    arrive();
    cr_assert_eq(send(), 1, "a NAK");
    arrive();
    full_after_six();
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 6);
    for (int i = 0; i < 6; i++) {
        cr_assert(b.pkt[i].plain && !b.pkt[i].run && b.pkt[i].retransmit);
        cr_expect_eq(b.pkt[i].plain->ackreq, i == 5, "packet %d", i);
    }
}
