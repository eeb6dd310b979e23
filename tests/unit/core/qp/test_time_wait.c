// SPDX-License-Identifier: BSD-2-Clause
/* A QP that its program closed or destroyed acknowledges duplicates of the packets that it had received, and nothing else. */
#include "tests/unit/core/core_fixture.h"

enum { PEER_QPN = 99, FIRST_PSN = 0xfffffe };

static const struct rx_meta from_peer = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 1}};
static struct fixture fix;
static uint8_t batch_buf[65536];
static struct tx_batch batch;

static void connect_qp(struct qp *qp)
{
    struct qp_attr a = {.state = QPS_INIT, .port = 1, .access = ACCESS_REMOTE_WRITE};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, NULL), 0);
    a = (struct qp_attr){
        .state = QPS_RTR, .path_mtu = 1, .dest_qpn = PEER_QPN, .rq_psn = FIRST_PSN, .av.dgid = {[15] = 2}};
    cr_assert_eq(qp_modify(qp, &a,
                           QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
                               QPA_MIN_RNR_TIMER,
                           NULL),
                 0);
}

/* An empty WRITE. It needs neither a key nor a receive request. */
static void write_arrives(uint32_t qpn, uint32_t psn)
{
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_WRITE_ONLY,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = qpn,
                    .psn = psn & PSN_MASK,
                    .ackreq = true};
    engine_rx(fix.e, &p, &from_peer, 1000);
}

static uint32_t transmit(void)
{
    batch.buf = batch_buf;
    batch.cap = sizeof(batch_buf);
    batch.used = batch.n = 0;
    return engine_tx(fix.e, &batch, 2000);
}

static void expect_ack(uint32_t psn)
{
    struct pkt p;
    cr_assert_eq(transmit(), 1);
    cr_assert_eq(pkt_decode(batch_buf + batch.pkt[0].off, batch.pkt[0].len, &p), PKT_OK);
    cr_assert_eq(p.opcode, OP_SERVICE_RC | OP_ACK);
    cr_assert_eq(p.aeth.syndrome, AETH_ACK | AETH_NO_CREDITS);
    cr_assert_eq(p.psn, psn & PSN_MASK);
    cr_assert_eq(p.dest_qpn, PEER_QPN);
    cr_assert_eq(batch.pkt[0].av->dgid[15], 2);
}

static void setup(void)
{
    fix_init(&fix);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(time_wait, .init = setup, .fini = teardown);

Test(time_wait, acknowledges_duplicates_across_the_psn_wrap)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    connect_qp(qp);
    for (uint32_t i = 0; i < 4; i++)
        write_arrives(qpn, FIRST_PSN + i);
    expect_ack(FIRST_PSN + 3);
    qp_destroy(qp);
    for (uint32_t i = 0; i < 4; i++) {
        write_arrives(qpn, FIRST_PSN + i);
        expect_ack(FIRST_PSN + 3);
    }
    cr_assert_eq(engine_counters(fix.e)->rx_time_wait, 4);
}

Test(time_wait, sends_the_ack_that_was_due)
{
    struct qp *qp = fix_qp(&fix);
    connect_qp(qp);
    write_arrives(qp_number(qp), FIRST_PSN);
    qp_destroy(qp);
    expect_ack(FIRST_PSN);
}

Test(time_wait, new_requests_get_no_answer)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    connect_qp(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    qp_destroy(qp);
    write_arrives(qpn, FIRST_PSN + 1);
    cr_assert_eq(transmit(), 0);
    cr_assert_eq(engine_counters(fix.e)->rx_unknown_qp, 1);
}

Test(time_wait, other_peers_and_reads_get_no_answer)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    connect_qp(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    qp_destroy(qp);
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_WRITE_ONLY,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = qpn,
                    .psn = FIRST_PSN};
    struct rx_meta stranger = {.src_gid = {[15] = 3}, .dst_gid = {[15] = 1}};
    engine_rx(fix.e, &p, &stranger, 1000);
    p.opcode = OP_SERVICE_RC | OP_READ_REQUEST;
    engine_rx(fix.e, &p, &from_peer, 1000);
    p.opcode = OP_SERVICE_UC | OP_WRITE_ONLY;
    engine_rx(fix.e, &p, &from_peer, 1000);
    cr_assert_eq(transmit(), 0);
}

Test(time_wait, an_ack_never_names_a_read)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    struct qp_attr a = {.access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE, .max_dest_rd_atomic = 1};
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_READ_REQUEST,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = qpn,
                    .psn = (FIRST_PSN + 1) & PSN_MASK};
    connect_qp(qp);
    a.state = QPS_RTS;
    a.access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE;
    cr_assert_eq(qp_modify(qp, &a,
                           QPA_STATE | QPA_ACCESS_FLAGS | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                               QPA_MAX_RD_ATOMIC,
                           NULL),
                 0);
    a.state = QPS_SQD;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE | QPA_MAX_DEST_RD_ATOMIC, NULL), 0);
    write_arrives(qpn, FIRST_PSN);
    engine_rx(fix.e, &p, &from_peer, 1000);
    cr_assert_eq(transmit(), 1);
    qp_destroy(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    write_arrives(qpn, FIRST_PSN + 1);
    cr_assert_eq(transmit(), 0);
}

Test(time_wait, sends_the_ack_that_was_delayed)
{
    static const uint8_t data[256];
    struct qp *qp = fix_qp(&fix);
    struct mr_init mr = {.pd = FIX_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE};
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_WRITE_FIRST,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = qp_number(qp),
                    .psn = FIRST_PSN,
                    .reth = {FIX_VA, 0, 300},
                    .payload = data,
                    .payload_len = 256};
    cr_assert_eq(mr_register(fix.e, &mr, &p.reth.rkey), 0);
    connect_qp(qp);
    engine_rx(fix.e, &p, &from_peer, 1000);
    cr_assert_eq(transmit(), 0);
    qp_destroy(qp);
    expect_ack(FIRST_PSN);
}

Test(time_wait, another_partition_gets_no_answer)
{
    struct qp *qp = fix_qp(&fix);
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_WRITE_ONLY,
                    .migreq = true,
                    .pkey = 0x1234,
                    .dest_qpn = qp_number(qp),
                    .psn = FIRST_PSN};
    connect_qp(qp);
    write_arrives(qp_number(qp), FIRST_PSN);
    expect_ack(FIRST_PSN);
    qp_destroy(qp);
    engine_rx(fix.e, &p, &from_peer, 1000);
    cr_assert_eq(transmit(), 0);
}

Test(time_wait, waits_for_room_in_the_batch)
{
    struct qp *qp = fix_qp(&fix);
    connect_qp(qp);
    write_arrives(qp_number(qp), FIRST_PSN);
    qp_destroy(qp);
    batch = (struct tx_batch){.buf = batch_buf, .cap = 10};
    cr_assert_eq(engine_tx(fix.e, &batch, 2000), 0);
    expect_ack(FIRST_PSN);
}

static void to_err(struct qp *qp)
{
    struct qp_attr a = {.state = QPS_ERR};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
}

/* rdma_disconnect moves the QP to ERR, and the program destroys it later. */
Test(time_wait, a_qp_that_its_program_moved_to_err_acknowledges_duplicates)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    connect_qp(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    to_err(qp);
    write_arrives(qpn, FIRST_PSN + 1);
    cr_expect_eq(transmit(), 0, "a new request");
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    to_err(qp);
    write_arrives(qpn, FIRST_PSN);
    qp_destroy(qp);
    expect_ack(FIRST_PSN);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    cr_expect_eq(engine_counters(fix.e)->rx_time_wait, 3);
}

Test(time_wait, reset_ends_it)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    struct qp_attr a = {.state = QPS_RESET};
    connect_qp(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    to_err(qp);
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    to_err(qp);
    write_arrives(qpn, FIRST_PSN);
    cr_expect_eq(transmit(), 0);
    qp_destroy(qp);
    write_arrives(qpn, FIRST_PSN);
    cr_expect_eq(transmit(), 0);
}

/* The engine moves the QP to ERR when it refuses a request. */
Test(time_wait, a_failed_qp_leaves_nothing)
{
    struct qp *qp = fix_qp(&fix);
    uint32_t qpn = qp_number(qp);
    struct pkt bad = {.opcode = OP_SERVICE_RC | OP_WRITE_MIDDLE,
                      .migreq = true,
                      .pkey = PKEY_DEFAULT,
                      .dest_qpn = qpn,
                      .psn = (FIRST_PSN + 1) & PSN_MASK};
    connect_qp(qp);
    write_arrives(qpn, FIRST_PSN);
    expect_ack(FIRST_PSN);
    engine_rx(fix.e, &bad, &from_peer, 1000);
    cr_assert_eq(transmit(), 1, "a NAK");
    to_err(qp);
    write_arrives(qpn, FIRST_PSN);
    cr_expect_eq(transmit(), 0);
    qp_destroy(qp);
    write_arrives(qpn, FIRST_PSN);
    cr_expect_eq(transmit(), 0);
}
