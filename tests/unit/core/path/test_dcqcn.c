// SPDX-License-Identifier: BSD-2-Clause
/* Explicit congestion notification (IBA A17.9). The receiver of a mark answers with a CNP, and the sender that
 * receives the CNP lowers its rate. */
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_traffic.h"
#include "tests/unit/core/core_fixture.h"

#define LINE 1000000000u /* bytes per second */
#define US 1000u
#define MS 1000000u

static struct fixture fix;
static struct qp *qp;
static uint32_t key;
static uint8_t out[1 << 18];

static void restart(bool ecn)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    fix.cfg.ecn = ecn;
    fix.cfg.line_rate = LINE;
    free(fix.mem);
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    fix.now = 1000 * MS;
}

/* The QP has sent nothing yet. */
static void start_idle(enum qp_type type)
{
    qp = fix_qp_of(&fix, type);
    fix_bring(qp, QPS_RTS);
}

/* The QP takes CNPs, as if it had just answered a READ. */
static void start(enum qp_type type)
{
    start_idle(type);
    qp_wake(qp);
    qp->resp->data_at = fix.now;
}

static void setup(void)
{
    fix_init(&fix);
    restart(true);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(cnp, .init = setup, .fini = teardown);

static void rx(uint8_t opcode, bool ce, uint8_t from)
{
    static uint8_t zero[64];
    struct rx_meta meta = {.src_gid = {[15] = from}, .dst_gid = {[15] = 1}, .ce = ce};
    struct pkt p = {.opcode = opcode, .pkey = PKEY_DEFAULT, .dest_qpn = qp_number(qp), .payload = zero};
    p.psn = 100; /* the expected PSN at first */
    p.payload_len = (opcode & OP_SERVICE_MASK) == OP_SERVICE_CNP ? PKT_CNP_LEN : 0;
    p.reth.rkey = key;
    p.deth.qkey = 0x1234;
    engine_rx(fix.e, &p, &meta, fix.now);
}

/* Returns the number of CNPs sent, and checks each. */
static uint32_t cnps(void)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out};
    uint32_t n = engine_tx(fix.e, &b, fix.now), found = 0;
    for (uint32_t i = 0; i < n; i++) {
        static const uint8_t zero[PKT_CNP_LEN];
        struct pkt p;
        cr_assert_eq(pkt_decode(out + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
        if (p.opcode != OP_CNP) {
            cr_expect_not(b.pkt[i].cnp);
            continue;
        }
        found++;
        cr_expect(p.becn && !p.fecn && !p.ackreq && p.migreq);
        cr_expect_eq(p.dest_qpn, 1234u);
        cr_expect(p.payload_len == PKT_CNP_LEN && memcmp(p.payload, zero, PKT_CNP_LEN) == 0);
        cr_expect_eq(b.pkt[i].av->dgid[15], 2);
        cr_expect(b.pkt[i].cnp);
    }
    return found;
}

/* --- the marked end ---------------------------------------------------------------------------- */

Test(cnp, a_mark_is_answered_but_not_too_often)
{
    start(QPT_UC);
    rx(OP_SERVICE_UC | OP_WRITE_ONLY, true, 2);
    cr_expect_eq(cnps(), 1u);
    for (int i = 0; i < 49; i++) {
        fix.now += US;
        rx(OP_SERVICE_UC | OP_WRITE_ONLY, true, 2);
        cr_expect_eq(cnps(), 0u, "after %d us", i + 1);
    }
    fix.now += US;
    rx(OP_SERVICE_UC | OP_WRITE_ONLY, true, 2);
    rx(OP_SERVICE_UC | OP_WRITE_ONLY, true, 2);
    cr_expect_eq(cnps(), 1u);
    cr_expect_eq(engine_counters(fix.e)->np_ecn_marked_roce_packets, 52u);
    cr_expect_eq(engine_counters(fix.e)->np_cnp_sent, 2u);
}

Test(cnp, no_mark_no_cnp)
{
    start(QPT_RC);
    rx(OP_SERVICE_RC | OP_WRITE_ONLY, false, 2);
    cr_expect_eq(cnps(), 0u);
    rx(OP_SERVICE_RC | OP_WRITE_ONLY, true, 2);
    cr_expect_eq(cnps(), 1u, "RC, too");
}

Test(cnp, packets_of_strangers_cnps_and_datagrams_are_not_answered)
{
    start(QPT_RC);
    rx(OP_SERVICE_RC | OP_WRITE_ONLY, true, 3);
    rx(OP_CNP, true, 2);
    cr_expect_eq(cnps(), 0u);
    start(QPT_UD);
    rx(OP_SERVICE_UD | OP_SEND_ONLY, true, 2);
    cr_expect_eq(cnps(), 0u);
    cr_expect_eq(engine_counters(fix.e)->np_ecn_marked_roce_packets, 0u);
}

Test(cnp, ecn_can_be_off)
{
    restart(false);
    start(QPT_UC);
    rx(OP_SERVICE_UC | OP_WRITE_ONLY, true, 2);
    cr_expect_eq(cnps(), 0u);
    cr_expect_eq(engine_counters(fix.e)->np_ecn_marked_roce_packets, 1u, "counted all the same");
}

/* --- the sending end --------------------------------------------------------------------------- */

static uint64_t rate(void)
{
    struct qp_info info;
    qp_info(qp, &info);
    return info.rate;
}

/* Takes the packets that are due. Returns their number. */
static uint32_t sends(void)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out};
    return engine_tx(fix.e, &b, fix.now);
}

static void post_write(uint32_t length)
{
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .remote_addr = 0x1000, .rkey = 1, .num_sge = 1};
    const struct sge sge = {FIX_VA, length, key};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* Anybody who can forge the peer's address can send a CNP, because it has no PSN. */
Test(cnp, a_qp_with_nothing_under_way_is_not_slowed)
{
    start_idle(QPT_RC);
    rx(OP_CNP, false, 2);
    cr_expect_eq(rate(), 0u, "nothing was sent yet");
    cr_expect_eq(engine_counters(fix.e)->rx_idle_cnp, 1u);
    post_write(256);
    cr_assert_eq(sends(), 1u);
    rx(OP_CNP, false, 3);
    cr_expect_eq(rate(), 0u, "a stranger");
    fix.now += 100 * US;
    struct rx_meta meta = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 1}};
    struct pkt ack = {.opcode = OP_ACK, .pkey = PKEY_DEFAULT, .dest_qpn = qp_number(qp), .psn = 200};
    ack.aeth.syndrome = 0x1f;
    engine_rx(fix.e, &ack, &meta, fix.now);
    fix.now += 11 * MS;
    rx(OP_CNP, false, 2);
    cr_expect_eq(rate(), 0u, "all is acknowledged");
    cr_expect_eq(engine_counters(fix.e)->rx_idle_cnp, 2u);
    cr_expect_eq(engine_counters(fix.e)->rp_cnp_handled, 0u);
    post_write(256);
    cr_assert_eq(sends(), 1u);
    fix.now += 11 * MS;
    rx(OP_CNP, false, 2);
    cr_expect_neq(rate(), 0u, "a packet is under way");
    cr_expect_eq(engine_counters(fix.e)->rp_cnp_handled, 1u);
}

/* Nothing acknowledges the packets of UC, and the responses to READs. */
Test(cnp, a_qp_without_acks_is_slowed_shortly_after_its_packets)
{
    start_idle(QPT_UC);
    post_write(256);
    cr_assert_eq(sends(), 1u);
    fix.now += 11 * MS;
    rx(OP_CNP, false, 2);
    cr_expect_eq(rate(), 0u);
    post_write(256);
    cr_assert_eq(sends(), 1u);
    fix.now += 9 * MS;
    rx(OP_CNP, false, 2);
    cr_expect_neq(rate(), 0u);

    start_idle(QPT_RC);
    struct rx_meta meta = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 1}};
    struct pkt read = {.opcode = OP_READ_REQUEST, .pkey = PKEY_DEFAULT, .dest_qpn = qp_number(qp), .psn = 100};
    read.reth.va = FIX_VA;
    read.reth.rkey = key;
    read.reth.length = 256;
    engine_rx(fix.e, &read, &meta, fix.now);
    cr_assert_eq(sends(), 1u);
    fix.now += 11 * MS;
    rx(OP_CNP, false, 2);
    cr_expect_eq(rate(), 0u);
    read.psn = 101;
    engine_rx(fix.e, &read, &meta, fix.now);
    cr_assert_eq(sends(), 1u);
    rx(OP_CNP, false, 2);
    cr_expect_neq(rate(), 0u);
}

/* Sends as fast as permitted for this time. Returns the bytes of payload. The destination accepts all at once. */
static uint64_t run(uint64_t ns)
{
    uint64_t end = fix.now + ns, bytes = 0;
    struct sge sge = {FIX_VA, 256, key};
    struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1};
    while (fix.now < end) {
        while (qp_send_room(qp)) {
            cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
        }
        struct tx_batch b = {.buf = out, .cap = 4096};
        engine_tx(fix.e, &b, fix.now);
        for (uint32_t i = 0; i < b.n; i++) {
            struct pkt p;
            cr_assert_eq(pkt_decode(out + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
            bytes += p.dest_qpn == 1234 ? p.payload_len + 256 : 0; /* with the cost of a packet beside its payload */
        }
        fix.now += 1 * US;
        if (engine_deadline(fix.e) <= fix.now) {
            engine_expire(fix.e, fix.now);
        }
    }
    return bytes;
}

Test(cnp, each_cnp_lowers_the_rate_and_time_restores_it)
{
    start(QPT_UC);
    cr_expect_eq(rate(), 0u);
    rx(OP_CNP, false, 2);
    uint64_t first = rate();
    cr_expect_eq(first, LINE / 2);
    for (int i = 0; i < 3; i++) {
        uint64_t before = rate();
        fix.now += 50 * US;
        rx(OP_CNP_ALT, false, 2);
        cr_expect(rate() < before && rate() > before / 3, "0x80 is one, too");
    }
    uint64_t low = rate(), bytes = run(2 * MS);
    cr_expect_gt(rate(), low, "it goes up again");
    cr_expect_lt(bytes, 2 * MS * (LINE / 1000000000u), "and is kept to");
    uint64_t last = rate();
    for (int i = 0; i < 200 && rate(); i++) {
        run(1 * MS);
        cr_expect(rate() == 0 || rate() >= last);
        last = rate();
    }
    cr_expect_eq(rate(), 0u, "to no limit at all");
    cr_expect_eq(engine_counters(fix.e)->rp_cnp_handled, 4u);
}

Test(cnp, the_qp_sends_at_the_rate_that_is_set)
{
    start(QPT_UC);
    fix.now += 10 * MS;
    for (int i = 0; i < 100; i++) {
        rx(OP_CNP, false, 2);
    }
    uint64_t low = rate();
    cr_expect_eq(low, LINE / 4000, "there is a lowest one");
    uint64_t bytes = run(290 * US); /* before the rate rises */
    uint64_t most = low * 290 / 1000000 + 2048 + 1024; /* with one burst */
    cr_expect(bytes <= most && bytes >= 512, "%llu of %llu", (unsigned long long)bytes, (unsigned long long)most);
    uint64_t before = rate();
    run(20 * US);
    cr_expect_geq(rate(), before);
}

/* With large steps, senders that share a port would fill its queue before the next mark reaches them. */
Test(cnp, the_rate_before_a_cut_is_passed_slowly_then_faster)
{
    start(QPT_UC);
    for (int i = 0; i < 6; i++) {
        rx(OP_CNP, false, 2);
    }
    uint64_t before = rate() * 2; /* the last cut was by half */
    for (int i = 0; i < 5; i++)
        run(300 * US);
    cr_expect(rate() > before * 9 / 10 && rate() <= before, "five steps go back");
    for (int i = 0; i < 45; i++)
        run(300 * US);
    cr_expect_gt(rate(), before);
    cr_expect_leq(rate(), before + 45 * (LINE / 8000), "45 steps go beyond it by 1/8000 of the line rate each");
    uint64_t slow = rate();
    for (int i = 0; i < 30; i++)
        run(300 * US);
    cr_expect_gt(rate(), slow * 5 / 4 + 30 * (LINE / 8000), "without congestion for so long, the steps become larger");
    uint64_t last = rate();
    for (int i = 0; i < 100 && rate(); i++, last = rate()) {
        run(300 * US);
        cr_expect(rate() == 0 || rate() <= last + last / 16, "but each is a small part of the rate: %llu after %llu",
                  (unsigned long long)rate(), (unsigned long long)last);
    }
}

Test(cnp, alpha_forgets_old_congestion)
{
    start(QPT_UC);
    for (int i = 0; i < 3; i++) {
        rx(OP_CNP, false, 2);
    }
    for (int i = 0; i < 30; i++) { /* 9 ms: too short to reach the state without a limit */
        run(300 * US);
    }
    uint64_t before = rate();
    cr_assert_gt(before, 0u);
    rx(OP_CNP, false, 2);
    cr_expect(rate() < before && rate() > before * 6 / 10, "%llu to %llu", (unsigned long long)before,
              (unsigned long long)rate());
}

/* All packets that wait in a long queue are marked. Each of their marks tells of the same queue. */
Test(cnp, there_is_one_cut_per_step)
{
    start(QPT_UC);
    for (int i = 0; i < 3; i++)
        rx(OP_CNP, false, 2);
    run(20 * MS);
    rx(OP_CNP, false, 2);
    uint64_t cut = rate();
    for (int i = 0; i < 5; i++) {
        fix.now += 50 * US;
        rx(OP_CNP, false, 2);
        cr_expect_eq(rate(), cut, "after %d us", 50 * (i + 1));
    }
    fix.now += 50 * US;
    rx(OP_CNP, false, 2);
    cr_expect_lt(rate(), cut);
    cr_expect_eq(engine_counters(fix.e)->rp_cnp_handled, 10u);
}

/* The part of its rate that a sender gives up for a CNP, after so many others. */
static double part_cut_after(int cnps)
{
    restart(true);
    start(QPT_UC);
    for (int i = 0; i < 3; i++)
        rx(OP_CNP, false, 2);
    run(20 * MS);
    for (int i = 0; i < cnps; i++)
        rx(OP_CNP, false, 2);
    run(310 * US);
    uint64_t before = rate();
    rx(OP_CNP, false, 2);
    return 1 - (double)rate() / (double)before;
}

Test(cnp, each_cut_is_deeper_while_congestion_lasts)
{
    double few = part_cut_after(1), many = part_cut_after(60);
    cr_expect(few > 0 && many > few * 1.2, "%f, %f", few, many);
}

/* The answer to a cut takes a round trip. */
Test(cnp, on_a_long_path_there_is_one_cut_per_round_trip)
{
    struct dcqcn c = {0};
    uint64_t now = 1000 * MS;
    for (int i = 0; i < 3; i++)
        dcqcn_cnp(&c, &fix.cfg, 2 * MS, now);
    now += 10 * MS;
    dcqcn_cnp(&c, &fix.cfg, 2 * MS, now);
    uint64_t cut = c.rate;
    uint32_t alpha = c.alpha;
    now += 1900 * US;
    dcqcn_cnp(&c, &fix.cfg, 2 * MS, now);
    cr_expect_eq(c.rate, cut);
    cr_expect_lt(c.alpha, alpha);
    now += 100 * US;
    dcqcn_cnp(&c, &fix.cfg, 2 * MS, now);
    cr_expect_lt(c.rate, cut);
}

/* A daemon that sleeps wakes late. Over time, the QP reaches its rate nevertheless, but not by long bursts. */
Test(cnp, a_sender_that_comes_late_makes_up_for_it)
{
    struct dcqcn c = {.rate = 100000000, .step_ns = 1000 * MS, .step_at = 1000 * MS, .alpha_at = 1000 * MS};
    uint64_t now = 1000 * MS, bytes = 0, most = 0;
    while (now < 1100 * MS) {
        uint64_t together = 0;
        uint32_t n;
        while ((n = dcqcn_allows(&c, &fix.cfg, now)) != 0) {
            dcqcn_sent(&c, n, now);
            together += n;
        }
        bytes += together;
        most = together > most ? together : most;
        now = dcqcn_deadline(&c) + 60 * US;
        cr_assert(dcqcn_expire(&c, now));
    }
    cr_expect(bytes > 9900000 && bytes < 10100000, "%llu", (unsigned long long)bytes);
    cr_expect_leq(most, 16384u);
    now += 10 * MS; /* late by more than it makes up for */
    bytes = 0;
    for (uint32_t n; (n = dcqcn_allows(&c, &fix.cfg, now)) != 0; bytes += n)
        dcqcn_sent(&c, n, now);
    cr_expect_leq(bytes, 20000u + 8192u);
}

Test(cnp, the_rate_starts_from_the_current_sending_rate)
{
    start(QPT_UC);
    for (int i = 0; i < 80; i++) { /* 51 MB/s */
        struct sge sge = {FIX_VA, 256, key};
        struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1};
        cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
        cnps();
        fix.now += 10 * US;
    }
    rx(OP_CNP, false, 2);
    cr_expect(rate() > 20000000u && rate() < 30000000u, "%llu", (unsigned long long)rate());
}

Test(cnp, cnps_of_strangers_do_not_lower_the_rate)
{
    start(QPT_RC);
    rx(OP_CNP, false, 3);
    cr_expect_eq(rate(), 0u);
    rx(OP_CNP, false, 2);
    cr_expect_gt(rate(), 0u);
    restart(false);
    start(QPT_RC);
    rx(OP_CNP, false, 2);
    cr_expect_eq(rate(), 0u, "nor anybody if it is off");
}

Test(cnp, the_rate_also_limits_read_responses)
{
    start(QPT_RC);
    for (int i = 0; i < 100; i++) {
        rx(OP_CNP, false, 2);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct pkt p = {.opcode = OP_SERVICE_RC | OP_READ_REQUEST, .dest_qpn = qp_number(qp), .psn = 100 + 32 * i};
        p.reth.va = FIX_VA;
        p.reth.rkey = key;
        p.reth.length = FIX_MEM;
        fix_rx(&fix, &p);
    }
    struct pkt r[64];
    uint32_t n = fix_tx(&fix, out, r, 64), rounds = 0;
    cr_expect_lt(n, 64u, "not all at once");
    while (n < 64 && rounds++ < 1000) {
        cr_assert_neq(engine_deadline(fix.e), NEVER);
        fix.now = engine_deadline(fix.e) > fix.now ? engine_deadline(fix.e) : fix.now;
        engine_expire(fix.e, fix.now);
        n += fix_tx(&fix, out, r, 64);
    }
    cr_expect_eq(n, 64u, "but all in the end");
}

Test(cnp, reset_forgets_the_rate)
{
    start(QPT_RC);
    rx(OP_CNP, false, 2);
    cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
    fix_bring(qp, QPS_RTS);
    cr_expect_eq(rate(), 0u);
}
