// SPDX-License-Identifier: BSD-2-Clause
/* The requester on a path that is slow or that loses packets: when it sends again, how much, and how its window
 * changes. tests/sim/slow.c measures whole paths. */
#include "tests/unit/core/one_qp.h"

#define US 1000u
#define MS 1000000u
#define COST 512u /* of a packet: 256 bytes and the overhead */
#define FIRST_WINDOW (32 * COST)

static uint32_t key;

static void setup(void)
{
    static const struct mem_ops ops = {.read = no_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = 1u << 20, .access = ACCESS_LOCAL_WRITE};
    fix_init(&fix);
    fix.cfg.first_window_bytes = FIRST_WINDOW;
    fix.cfg.path_silence_ns = 0;
    fix.e = engine_init(memset(fix.mem, 0, engine_size(&fix.cfg)), &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256 */
    fix.now = 1000 * MS;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(slow_path, .init = setup, .fini = teardown);

static void post(uint8_t opcode, uint32_t packets)
{
    struct sge sge = {FIX_VA, packets * 256, key};
    struct send_wr wr = {.opcode = opcode, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

/* Sends all that may leave now. Returns the number of packets. */
static uint32_t flush(void)
{
    uint32_t all = 0, n;
    while ((n = transmit()) > 0)
        all += n;
    return all;
}

static uint32_t pass(uint64_t ns)
{
    fix.now += ns;
    engine_expire(fix.e, fix.now);
    return flush();
}

/* One packet that is acknowledged after this time. */
static void round_trip(uint64_t ns)
{
    post(WR_RDMA_WRITE, 1);
    cr_assert_eq(flush(), 1);
    uint32_t psn = info().una_psn;
    fix.now += ns;
    ack(psn);
}

/* Waits for the timers until the QP goes back to its oldest packet. */
static void wait_until_it_goes_back(void)
{
    while (info().counters.probe_retrans + info().counters.timeout_retrans < 2) {
        fix.now = engine_deadline(fix.e);
        engine_expire(fix.e, fix.now);
        flush();
    }
}

Test(slow_path, a_new_destination_gets_a_small_window)
{
    post(WR_RDMA_WRITE, 1000);
    cr_expect_eq(flush(), FIRST_WINDOW / COST);
}

/* The packets need 16 ms, and the first probe would come after 1 ms. */
Test(slow_path, a_path_that_moves_gets_no_probes)
{
    post(WR_RDMA_WRITE, 32);
    cr_assert_eq(flush(), 32);
    for (uint32_t i = 0; i < 32; i++) {
        cr_expect_eq(pass(500 * US), 0, "packet %u", i);
        ack(200 + i);
    }
    cr_expect_eq(info().counters.probe_retrans, 0);
}

Test(slow_path, without_progress_a_probe_comes)
{
    post(WR_RDMA_WRITE, 2);
    cr_assert_eq(flush(), 2);
    fix.now += 1 * MS;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 201);
}

/* Karn's rule: the answer after a probe shows no round trip, so it does not show how long to wait. */
Test(slow_path, the_wait_stays_doubled_until_a_round_trip_is_known)
{
    post(WR_RDMA_WRITE, 1);
    flush();
    wait_until_it_goes_back(); /* after 1 and 2 ms */
    ack(200);
    cr_expect_eq(info().srtt_ns, 0);
    post(WR_RDMA_WRITE, 1);
    flush();
    cr_expect_geq(engine_deadline(fix.e), fix.now + 4 * MS);
    fix.now += 100 * US;
    ack(201);
    cr_expect_eq(info().srtt_ns, 100 * US);
    post(WR_RDMA_WRITE, 1);
    flush();
    cr_expect_leq(info().deadline, fix.now + 1 * MS);
}

Test(slow_path, after_two_probes_one_packet_leaves_and_the_window_is_small)
{
    round_trip(100 * US);
    post(WR_RDMA_WRITE, 32);
    cr_assert_eq(flush(), 32);
    uint64_t before = info().window_bytes;
    wait_until_it_goes_back();
    cr_expect_eq(info().next_psn, info().una_psn + 1, "one packet is in flight");
    cr_expect_leq(info().window_bytes, 2 * COST);
    cr_expect_gt(before, 2 * COST);
    fix.now += 100 * US;
    ack(201);
    uint32_t n = pass(500 * US);
    cr_expect(n >= 1 && n <= 3, "%u packets after the answer", n);
}

/* The peer was late with its answer to packets that were not sent again: the window is as before. */
Test(slow_path, an_answer_beyond_the_repeated_packet_restores_the_window)
{
    round_trip(100 * US);
    post(WR_RDMA_WRITE, 32);
    flush();
    uint64_t before = info().window_bytes;
    wait_until_it_goes_back();
    cr_assert_lt(info().window_bytes, before);
    fix.now += 1 * MS;
    ack(216);
    cr_expect_geq(info().window_bytes, before);
    cr_expect_eq(info().next_psn, info().max_psn, "it does not repeat the others");
}

/* The answer comes sooner than a packet can travel there and back: it is for the first transmission. */
Test(slow_path, an_early_answer_shows_that_nothing_was_lost)
{
    round_trip(100 * US);
    post(WR_RDMA_WRITE, 32);
    flush();
    wait_until_it_goes_back();
    fix.now += 10 * US;
    ack(201);
    cr_expect_eq(info().next_psn, info().max_psn, "it does not repeat the others");
    cr_expect_eq(info().inflight_bytes, 31 * COST);
    for (uint32_t i = 2; i < 33; i++)
        ack(200 + i);
    cr_expect_eq(info().inflight_bytes, 0);
}

/* A single packet may be answered faster than any packet of a full window. */
Test(slow_path, a_second_early_answer_shows_nothing)
{
    round_trip(100 * US);
    post(WR_RDMA_WRITE, 32);
    flush();
    wait_until_it_goes_back();
    fix.now += 10 * US;
    ack(201);
    cr_assert_eq(info().next_psn, info().max_psn);
    while (info().next_psn == info().max_psn) {
        fix.now = engine_deadline(fix.e);
        engine_expire(fix.e, fix.now);
        flush();
    }
    fix.now += 10 * US;
    ack(202);
    cr_expect_eq(info().next_psn, 203, "it repeats the others");
}

Test(slow_path, a_nak_at_the_moment_of_the_probe_is_an_answer)
{
    post(WR_RDMA_WRITE, 8);
    flush();
    fix.now += 1 * MS;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1, "the probe");
    nak(NAK_PSN_SEQUENCE, 200);
    cr_expect_eq(flush(), 8);
}

/* A loss reduces the window once. The next losses in the same round trip have the same cause. */
Test(slow_path, a_burst_of_losses_counts_once)
{
    round_trip(100 * US);
    post(WR_RDMA_WRITE, 32);
    flush();
    fix.now += 1 * MS; /* packets have waited on the path */
    ack(204); /* asked for by the fourth packet */
    uint64_t before = info().window_bytes;
    nak(NAK_PSN_SEQUENCE, 206);
    uint64_t after = info().window_bytes;
    nak(NAK_PSN_SEQUENCE, 208);
    cr_expect_lt(after, before);
    cr_expect_eq(info().window_bytes, after);
}

/* Packets that were sent again wait for their turn: their timeout does not run meanwhile. */
Test(slow_path, after_a_loss_packets_leave_at_the_pace_of_the_window)
{
    round_trip(1 * MS);
    post(WR_RDMA_WRITE, 32);
    cr_assert_eq(flush(), 32);
    fix.now += 2 * MS;
    ack(216); /* half of them; then one was lost */
    nak(NAK_PSN_SEQUENCE, 217);
    uint32_t burst = flush();
    cr_expect_lt(burst, 16, "%u packets at once", burst);
    uint32_t more = 0;
    for (int i = 0; i < 50; i++)
        more += pass(40 * US);
    cr_expect_eq(burst + more, 16, "%u packets", burst + more);
}

/* Otherwise a READ that is longer than the window would hold up all QPs: the pace counts many round trips for it. */
Test(slow_path, the_pace_holds_up_no_packet_when_none_is_in_flight)
{
    round_trip(1 * MS);
    post(WR_RDMA_WRITE, 32);
    flush();
    fix.now += 2 * MS;
    ack(216);
    nak(NAK_PSN_SEQUENCE, 217);
    cr_assert_gt(flush(), 0);
    cr_assert_eq(flush(), 0, "the others wait for the pace");
    ack(info().next_psn - 1);
    cr_expect_eq(flush(), 1);
    cr_expect_eq(flush(), 0);
}

/* A path of 1 s is slower than the timeout of the QP, but it answers. */
Test(slow_path, the_timeout_is_not_shorter_than_an_answer)
{
    struct qp_attr a = {.state = QPS_SQD};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, 0), 0);
    a.timeout = 10; /* 4 ms */
    a.retry_cnt = 0;
    cr_assert_eq(qp_modify(qp, &a, QPA_TIMEOUT | QPA_RETRY_CNT, 0), 0);
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, 0), 0);
    cr_expect_eq(info().timeout_ns, 4096ull << 10);
    round_trip(3 * MS);
    cr_expect_geq(info().timeout_ns, 6 * MS);
}

/* READs: the responses to one request leave in one burst. */
Test(slow_path, reads_ask_for_a_part_of_a_small_window)
{
    post(WR_RDMA_READ, 100);
    cr_assert_gt(transmit(), 1);
    cr_expect_leq(sent(0).reth.length, FIRST_WINDOW / COST / 2 * 256);
}
