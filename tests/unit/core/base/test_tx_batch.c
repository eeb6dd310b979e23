// SPDX-License-Identifier: BSD-2-Clause
/* Batches end where GSO runs end. A run is packets of one length, the last of which may be shorter, and their owner
 * sends them at once. */
#include "tests/unit/core/core_fixture.h"

#define MIDDLE (256u + 16) /* a packet with only a BTH before its payload */
#define ROW 8u

static struct fixture fix;
static struct qp *qp;
static uint32_t key;
static uint8_t out[65536];
static struct tx_batch b;

static void setup(void)
{
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};

    fix_init(&fix);
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    fix.now = 1000000;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(rows, .init = setup, .fini = teardown);

static void post(uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {
        .opcode = WR_RDMA_WRITE, .flags = SEND_SIGNALED, .num_sge = 1, .remote_addr = 0x1000, .rkey = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* Returns how many packets of a WRITE are put into a batch with room for a FIRST packet and so many MIDDLE ones. row:
 * the maximum bytes of a run. */
static uint32_t send(uint32_t len, uint32_t room, uint32_t row)
{
    post(len);
    b = (struct tx_batch){.buf = out, .cap = 16 + (1 + room) * MIDDLE, .gso = {row, 64}};
    return engine_tx(fix.e, &b, fix.now);
}

static bool asks(uint32_t i)
{
    struct pkt p;
    cr_assert_eq(pkt_decode(out + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
    return p.ackreq;
}

/* The FIRST packet is longer, so the packet after it ends its run. */
Test(rows, a_run_that_does_not_fit_is_not_begun)
{
    cr_expect_eq(send(FIX_MEM, 1 + 2 * ROW + 7, ROW * MIDDLE), 2 + 2 * ROW, "%u packets", b.n);
    for (uint32_t i = 0; i < b.n; i++)
        cr_expect_eq(asks(i), i + 1 == b.n, "packet %u", i);
}

Test(rows, a_late_ack_request_gives_a_round_trip_time)
{
    struct qp_info info;
    uint32_t n = send(FIX_MEM, 1 + 2 * ROW + 7, ROW * MIDDLE);
    struct pkt ack = {.opcode = OP_ACK,
                      .dest_qpn = qp_number(qp),
                      .psn = b.pkt[n - 1].psn,
                      .aeth.syndrome = AETH_ACK | AETH_NO_CREDITS};
    fix.now += 5000;
    fix_rx(&fix, &ack);
    qp_info(qp, &info);
    cr_expect_eq(info.srtt_ns, 5000, "%llu ns", (unsigned long long)info.srtt_ns);
}

Test(rows, without_gso_nothing_is_held_back)
{
    cr_expect_gt(send(FIX_MEM, 1 + 2 * ROW + 7, 0), 2 + 2 * ROW, "%u packets", b.n);
}

Test(rows, a_batch_that_is_shorter_than_a_run_is_filled)
{
    cr_expect_eq(send(FIX_MEM, 1 + 5, ROW * MIDDLE), 2, "%u packets: the first is a row of two", b.n);
    b = (struct tx_batch){.buf = out, .cap = 6 * MIDDLE, .gso = {ROW * MIDDLE, 64}};
    cr_expect_geq(engine_tx(fix.e, &b, fix.now), 4, "%u packets", b.n);
}

/* With short packets, a run is limited by the number of packets of one send, not by its bytes. So a message of four
 * bytes still fits behind runs that have ended, where one of 256 bytes does not. */
Test(rows, short_packets_make_short_runs)
{
    const uint32_t rest = 64 * 36; /* 64 WRITEs of 4 bytes: with RETH, payload and ICRC */
    const uint32_t ended = 16 + 7 * MIDDLE + 116; /* the last packet is shorter */
    static const struct {
        uint32_t len, packets;
    } cases[] = {{4, 9}, {256, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i > 0)
            fix_fini(&fix), setup();
        post(7 * 256 + 100);
        post(cases[i].len);
        b = (struct tx_batch){.buf = out, .cap = ended + rest, .gso = {rest + 100, 64}};
        cr_expect_eq(engine_tx(fix.e, &b, fix.now), cases[i].packets, "%u bytes: %u packets", cases[i].len, b.n);
    }
}

/* 112 packets, and the first two of another message. A batch takes 128 packets, so the other 30 would be cut to less
 * than half a run. */
Test(rows, the_packet_limit_does_not_cut_a_run)
{
    for (unsigned i = 0; i < 4; i++)
        post(28 * 256);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    post(FIX_MEM);
    b = (struct tx_batch){.buf = out, .cap = sizeof out, .gso = {31 * MIDDLE, 64}};
    cr_expect_eq(engine_tx(fix.e, &b, fix.now), 4u * 28 + 2, "%u packets", b.n);
}

Test(rows, runs_of_read_responses_are_not_cut)
{
    struct pkt read = {
        .opcode = OP_READ_REQUEST, .dest_qpn = qp_number(qp), .psn = 100, .reth = {FIX_VA, key, FIX_MEM}};
    fix_rx(&fix, &read);
    b = (struct tx_batch){.buf = out, .cap = 4 + (2 + 2 * ROW + 7) * MIDDLE, .gso = {ROW * MIDDLE, 64}};
    cr_expect_eq(engine_tx(fix.e, &b, fix.now), 2 + 2 * ROW, "%u packets", b.n);
}
