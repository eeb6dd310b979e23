// SPDX-License-Identifier: BSD-2-Clause
/* The requester sends again only what the responder reports as missing. */
#include "daemon/core/path/congestion.h"
#include "tests/unit/core/one_qp.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

static uint32_t key;
static uint32_t twice; /* what the responder has counted */
static uint32_t beyond; /* how far the newest packet is behind the end of a report */

static void setup(void)
{
    static const struct mem_ops ops = {.read = no_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = 1 << 20, .access = ACCESS_LOCAL_WRITE};
    fix_init(&fix);
    fix.cfg.selective = true;
    fix.cfg.reorder_bytes = 40000;
    free(fix.mem);
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256 */
    fix.now = 1000000000;
    twice = beyond = 0;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(selective_requester, .init = setup, .fini = teardown);

static void post(uint8_t opcode, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {.opcode = opcode, .flags = SEND_SIGNALED, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

/* Gaps are given as pairs of start and end; the last pair has start 0. */
static void report(uint32_t responder, uint32_t expected, uint32_t end, const uint32_t *gaps)
{
    uint8_t payload[SACK_LEN_MOST];
    struct sack s = {.requester = qp_number(qp),
                     .responder = responder,
                     .expected = expected,
                     .end = end,
                     .newest = end + beyond,
                     .twice = twice};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload};
    for (; gaps[0]; gaps += 2)
        s.gap[s.gaps++] = (struct sack_gap){gaps[0], gaps[1]};
    p.payload_len = sack_len(&s);
    sack_encode(&s, payload);
    fix_rx(&fix, &p);
}
#define REPORT(expected, end, ...) report(1234, expected, end, (const uint32_t[]){__VA_ARGS__, 0, 0})

static void expect_sent(const uint32_t *psns)
{
    uint32_t n = transmit();
    for (uint32_t i = 0; i < n; i++)
        cr_expect_eq(sent(i).psn, psns[i], "packet %u: PSN %u", i, sent(i).psn);
    cr_expect_eq(psns[n], 0, "%u packets", n);
}
#define EXPECT_SENT(...) expect_sent((const uint32_t[]){__VA_ARGS__, 0})
#define EXPECT_NOTHING cr_expect_eq(transmit(), 0)

Test(selective_requester, only_missing_packets_are_sent_again)
{
    post(WR_RDMA_WRITE, 10 * 256); /* 200 … 209 */
    cr_assert_eq(transmit(), 10);
    REPORT(202, 208, 202, 203, 205, 207);
    EXPECT_SENT(202, 205, 206);
    cr_expect_eq(sent(0).opcode, OP_WRITE_MIDDLE);
    EXPECT_NOTHING;
    REPORT(202, 208, 202, 203, 205, 207); /* it was under way when the packets were sent again */
    EXPECT_NOTHING;
    ack(204);
    EXPECT_NOTHING;
    ack(209);
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    cr_expect_eq(info().inflight_bytes, 0);
    cr_expect_eq(engine_counters(fix.e)->selective_retrans, 3);
    cr_expect_eq(engine_counters(fix.e)->fast_retrans, 3);
}

Test(selective_requester, what_has_arrived_leaves_the_window)
{
    post(WR_RDMA_WRITE, 10 * 256);
    cr_assert_eq(transmit(), 10);
    cr_expect_eq(info().inflight_bytes, 10 * 512);
    REPORT(201, 209, 201, 203); /* 200 and 203 … 208 have arrived, 201 and 202 are lost */
    cr_expect_eq(info().inflight_bytes, 1 * 512);
    EXPECT_SENT(201, 202);
    cr_expect_eq(info().inflight_bytes, 3 * 512);
    REPORT(202, 210, 202, 203);
    cr_expect_eq(info().inflight_bytes, 1 * 512);
}

Test(selective_requester, a_packet_that_is_lost_again)
{
    post(WR_RDMA_WRITE, 4 * 256); /* 200 … 203 */
    cr_assert_eq(transmit(), 4);
    REPORT(201, 203, 201, 202);
    EXPECT_SENT(201);
    post(WR_RDMA_WRITE, 256); /* 204 */
    EXPECT_SENT(204);
    REPORT(201, 204, 201, 202);
    EXPECT_NOTHING; /* 203 was sent before */
    REPORT(201, 205, 201, 202);
    EXPECT_SENT(201); /* 204 was sent behind it, and has arrived */
}

Test(selective_requester, the_tail_probe_finds_a_packet_that_is_lost_again)
{
    post(WR_RDMA_WRITE, 4 * 256);
    cr_assert_eq(transmit(), 4);
    REPORT(201, 204, 201, 203);
    EXPECT_SENT(201, 202);
    fix.now += 5000000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(203);
    REPORT(201, 204, 201, 203); /* the answer to the probe */
    EXPECT_SENT(201, 202);
    REPORT(201, 204, 201, 203);
    EXPECT_NOTHING;
}

/* The report behind 202 was lost. That of the probe says more of the wait for the probe than of the path. */
Test(selective_requester, an_answer_after_a_timer_shows_no_round_trip)
{
    post(WR_RDMA_WRITE, 256); /* 200 */
    cr_assert_eq(transmit(), 1);
    fix.now += 20000;
    ack(200);
    uint64_t srtt = info().srtt_ns;
    cr_assert_eq(srtt, 20000);
    post(WR_RDMA_WRITE, 2 * 256); /* 201, and 202, whose round trip is measured */
    post(WR_RDMA_WRITE, 2 * 256);
    cr_assert_eq(transmit(), 4);
    fix.now += 5000000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(204);
    fix.now += 20000;
    REPORT(201, 205, 201, 202);
    cr_expect_eq(info().srtt_ns, srtt, "%lu ns", (unsigned long)info().srtt_ns);
}

Test(selective_requester, a_later_retransmission_shows_that_an_earlier_one_is_lost)
{
    post(WR_RDMA_WRITE, 10 * 256); /* 200 … 209 */
    cr_assert_eq(transmit(), 10);
    REPORT(201, 209, 201, 202, 205, 207);
    EXPECT_SENT(201, 205, 206);
    REPORT(201, 209, 201, 202, 206, 207);
    EXPECT_SENT(201); /* 205 was sent behind it, and has arrived; 206 may be under way */
    REPORT(201, 209, 201, 202);
    EXPECT_NOTHING; /* 206 was sent before it */
}

/* The batch has room for one packet, so only 201 is sent again. Then 202 comes. */
Test(selective_requester, the_part_of_a_range_that_was_sent_again_is_not_due)
{
    post(WR_RDMA_WRITE, 10 * 256); /* 200 … 209 */
    cr_assert_eq(transmit(), 10);
    REPORT(201, 209, 201, 204);
    cr_assert_eq(transmit_up_to(400), 1);
    cr_assert_eq(sent(0).psn, 201);
    REPORT(201, 209, 201, 202, 203, 204);
    EXPECT_SENT(203);
    REPORT(201, 210, 201, 202);
    EXPECT_SENT(201); /* 203 was sent behind it, and has arrived */
}

Test(selective_requester, a_report_ends_going_back)
{
    post(WR_RDMA_WRITE, 256); /* 200 */
    EXPECT_SENT(200);
    fix.now += 100000;
    ack(200);
    post(WR_RDMA_WRITE, 10 * 256); /* 201 … 210 */
    cr_assert_eq(transmit(), 10);
    fix.now += 5000000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(210);
    fix.now += 50000000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(201);
    EXPECT_NOTHING;
    REPORT(201, 209, 201, 203, 206, 207);
    EXPECT_NOTHING; /* it was sent before 201 arrived */
    fix.now += 100000;
    REPORT(202, 209, 202, 203, 206, 207);
    EXPECT_SENT(202); /* after the timeout the window is small, and the pace slow */
    fix.now += 100000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(206, 209, 210);
    cr_expect_eq(info().inflight_bytes, 4 * 512);
    ack(210);
    cr_expect_eq(info().inflight_bytes, 0);
}

/* A message of 80 us, with PSN 200. */
static void know_round_trip(void)
{
    post(WR_RDMA_WRITE, 256); /* 200 */
    EXPECT_SENT(200);
    fix.now += 80000;
    ack(200);
}

/* A round trip of 80 us, and a packet that was sent again although it was only late: the window is 20 us. */
static void learn_reordering(void)
{
    know_round_trip();
    post(WR_RDMA_WRITE, 3 * 256); /* 201 … 203 */
    EXPECT_SENT(201, 202, 203);
    fix.now += 80000;
    REPORT(201, 203, 201, 202);
    EXPECT_SENT(201);
    fix.now += 80000;
    ack(203);
    post(WR_RDMA_WRITE, 6 * 256); /* 204 … 209 */
    EXPECT_SENT(204, 205, 206, 207, 208, 209);
    fix.now += 80000;
    twice = 1;
}

Test(selective_requester, a_packet_that_may_be_late_is_not_sent_again_at_once)
{
    learn_reordering();
    REPORT(204, 207, 204, 205);
    EXPECT_NOTHING;
    cr_expect_eq(engine_counters(fix.e)->selective_unneeded, 1);
    cr_expect_eq(info().inflight_bytes, 4 * 512, "it counts as in flight");
    fix.now += 10000;
    REPORT(205, 209, 205, 206, 207, 208); /* 204 was late, by 10 us; 207 is missing, too */
    engine_expire(fix.e, fix.now);
    EXPECT_NOTHING;
    fix.now += 10000;
    engine_expire(fix.e, fix.now);
    EXPECT_NOTHING;
    fix.now += 10000; /* the window is over. Then the two packets wait for the pace. */
    engine_expire(fix.e, fix.now);
    fix.now += 80000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(205, 207);
    ack(209);
    cr_expect_eq(info().inflight_bytes, 0);
    cr_expect_eq(engine_counters(fix.e)->probe_retrans, 0);
}

Test(selective_requester, a_retransmission_may_be_late_too)
{
    learn_reordering();
    REPORT(204, 207, 204, 205);
    fix.now += 30000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(204);
    post(WR_RDMA_WRITE, 256); /* 210 */
    EXPECT_SENT(210);
    fix.now += 80000;
    REPORT(204, 211, 204, 205);
    EXPECT_NOTHING;
    fix.now += 30000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(204);
}

Test(selective_requester, without_room_at_the_peer_nothing_waits)
{
    learn_reordering();
    REPORT(204, 208, 204, 205, 206, 208);
    EXPECT_SENT(204, 206, 207);
}

/* The packet of the probe comes twice, because only its answer was lost. */
Test(selective_requester, a_probe_that_comes_twice_shows_no_late_packet)
{
    know_round_trip();
    post(WR_RDMA_WRITE, 2 * 256); /* 201, 202 */
    EXPECT_SENT(201, 202);
    fix.now += 80000;
    REPORT(201, 203, 201, 202);
    EXPECT_SENT(201);
    fix.now += 5000000;
    engine_expire(fix.e, fix.now);
    EXPECT_SENT(202);
    fix.now += 80000;
    ack(202);
    post(WR_RDMA_WRITE, 3 * 256); /* 203 … 205 */
    EXPECT_SENT(203, 204, 205);
    fix.now += 80000;
    twice = 1;
    REPORT(203, 206, 203, 204);
    EXPECT_SENT(203);
    cr_expect_eq(engine_counters(fix.e)->selective_unneeded, 0);
}

Test(selective_requester, a_read_request_is_sent_again_as_a_whole)
{
    post(WR_RDMA_WRITE, 256); /* 200 */
    post(WR_RDMA_READ, 3 * 256); /* 201 … 203 */
    post(WR_RDMA_WRITE, 256); /* 204 */
    cr_assert_eq(transmit(), 3);
    REPORT(201, 205, 201, 204);
    EXPECT_SENT(201);
    struct pkt p = sent(0);
    cr_expect(p.opcode == OP_READ_REQUEST && p.reth.length == 3 * 256);
    cr_expect_eq(info().inflight_bytes, 3 * 512);
}

Test(selective_requester, atomics_and_requests_behind_them)
{
    struct sge sge = {FIX_VA, 8, key};
    struct send_wr wr = {.opcode = WR_ATOMIC_FETCH_AND_ADD, .flags = SEND_SIGNALED, .num_sge = 1, .compare_add = 3};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0); /* 200 */
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0); /* 201 */
    post(WR_RDMA_WRITE, 256); /* 202 */
    cr_assert_eq(transmit(), 3);
    REPORT(201, 203, 201, 202); /* the first atomic was carried out, and its response is under way */
    EXPECT_SENT(201);
    arrive((struct pkt){.opcode = OP_ATOMIC_ACK, .psn = 200, .aeth.syndrome = AETH_ACK | AETH_NO_CREDITS});
    arrive((struct pkt){.opcode = OP_ATOMIC_ACK, .psn = 201, .aeth.syndrome = AETH_ACK | AETH_NO_CREDITS});
    ack(202);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    EXPECT_NOTHING;
}

Test(selective_requester, a_nak_forgets_the_report)
{
    post(WR_RDMA_WRITE, 5 * 256); /* 200 … 204 */
    cr_assert_eq(transmit(), 5);
    REPORT(201, 204, 201, 202);
    nak(NAK_PSN_SEQUENCE, 201);
    EXPECT_SENT(201, 202, 203, 204);
    cr_expect_eq(info().inflight_bytes, 4 * 512);
}

Test(selective_requester, reports_that_do_not_fit_are_ignored)
{
    post(WR_RDMA_WRITE, 5 * 256);
    cr_assert_eq(transmit(), 5);
    REPORT(201, 206, 201, 202); /* 205 was never sent */
    report(1235, 201, 204, (const uint32_t[]){201, 202, 0}); /* from another QP */
    ack(202);
    REPORT(201, 204, 201, 202); /* an old one */
    EXPECT_NOTHING;
    beyond = 100;
    REPORT(203, 202 + (1 << 23), 203, 204); /* so far ahead that it seems to be behind */
    EXPECT_NOTHING;
    nak(NAK_PSN_SEQUENCE, 203);
    fix.now += 1000000000;
    REPORT(203, 202 + (1 << 23), 203, 204);
    EXPECT_SENT(203, 204);
    cr_expect_eq(engine_counters(fix.e)->sacks_rcvd, 0);
    cr_expect_eq(info().una_psn, 203);
}

Test(selective_requester, without_the_option_reports_are_for_nobody)
{
    fix_fini(&fix);
    fix_init(&fix);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    REPORT(200, 202, 200, 201);
    cr_expect_eq(engine_counters(fix.e)->rx_unknown_qp, 1);
}

/* With a small window, missing packets wait for room as others do, and go first. */
Test(selective_requester, missing_packets_keep_to_the_window)
{
    post(WR_RDMA_WRITE, 64 * 256); /* 200 … 263 */
    uint32_t n = 0, more;
    while ((more = transmit()) > 0)
        n += more;
    cr_assert_eq(n, 64);
    uint64_t before = info().inflight_bytes;
    fix.now += 100000;
    REPORT(200, 264, 200, 262);
    transmit();
    cr_expect_leq(info().inflight_bytes, before);
    cr_expect_eq(sent(0).psn, 200);
}

/* Sends at the pace of the path, and returns the PSN of the first packet. */
static uint32_t sent_again(void)
{
    fix.now += 100000;
    engine_expire(fix.e, fix.now);
    cr_assert_gt(transmit(), 0);
    return sent(0).psn;
}

/* Posts a WRITE with the PSNs 200 … 4199, and sends what the window allows. Returns the number of packets. */
static uint32_t fill_window(void)
{
    uint32_t n = 0, more;
    post(WR_RDMA_WRITE, 4000 * 256);
    while ((more = transmit()) > 0)
        n += more;
    return n;
}

/* With go-back-N, the window would become CWND_CAPACITY_MOST: it would repeat all that is behind a lost packet. */
Test(selective_requester, a_lost_packet_leaves_a_large_window)
{
    uint32_t n = fill_window();
    uint64_t before = info().window_bytes;
    cr_assert_gt(before, 2 * CWND_CAPACITY_MOST);
    cr_assert_gt(info().inflight_bytes, before / 2, "%u packets", n);
    fix.now += 100000;
    REPORT(200, 300, 200, 201);
    cr_expect_eq(info().window_bytes, min64(before, CWND_RANDOM));
}

/* The same, but the packet was only late: the peer gets it twice. */
Test(selective_requester, a_late_packet_does_not_change_a_large_window)
{
    uint32_t n = fill_window();
    uint64_t before = info().window_bytes;
    cr_assert(before > CWND_RANDOM && n < 3900, "%u packets", n);
    fix.now += 100000;
    REPORT(200, 200 + n, 200, 201);
    cr_expect_eq(sent_again(), 200);
    cr_expect_lt(info().window_bytes, before);
    fix.now += 100000;
    twice = 1;
    REPORT(200 + n, 202 + n, 200 + n, 201 + n);
    cr_expect_eq(info().window_bytes, before);
}
