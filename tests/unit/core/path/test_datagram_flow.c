// SPDX-License-Identifier: BSD-2-Clause
/* Flow control for UC and UD, which have no acknowledgements. */
#include "tests/unit/core/core_fixture.h"
#include "wire/pumice/probe.h"

#define WINDOW 65536u
#define WAIT 1000000u /* ns */
#define COST (1024u + 256u) /* of each datagram below */
#define FILL (WINDOW / COST)
#define HOST 9u /* the destination */

static struct fixture fix;
static struct qp *ud;
static uint32_t key;
static uint8_t out[1 << 18];

static void setup(void)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    fix_init(&fix);
    free(fix.mem);
    fix.cfg.peer_window_bytes = WINDOW;
    fix.cfg.flow_wait_ns = WAIT;
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    ud = fix_qp_of(&fix, QPT_UD);
    fix_bring(ud, QPS_RTS);
    fix.now = 5000000000u;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(flow, .init = setup, .fini = teardown);

static struct { /* the result of one burst */
    uint32_t data, probes, answers;
    uint32_t sequence; /* of the last probe */
    uint32_t data_before_probe; /* datagrams before it in the batch */
    struct av to; /* of the last probe or answer */
} got;

static void pull(void)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out};
    uint32_t n = engine_tx(fix.e, &b, fix.now);
    for (uint32_t i = 0; i < n; i++) {
        struct pkt p;
        struct probe probe;
        cr_assert_eq(pkt_decode(out + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
        if (p.dest_qpn != PROBE_QPN) {
            got.data++;
            continue;
        }
        cr_assert(p.opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p.deth.qkey == PROBE_QKEY);
        cr_assert(probe_decode(p.payload, p.payload_len, &probe));
        got.to = *b.pkt[i].av;
        if (probe.kind == PROBE_ANSWER) {
            got.answers++;
        } else {
            got.probes++;
            got.sequence = probe.sequence;
            got.data_before_probe = got.data;
        }
    }
    while (engine_peek_completion(fix.e)) {
        engine_drop_completion(fix.e);
    }
}

/* Posts datagrams and transmits until no more are sent. Returns how many were sent. */
static uint32_t push(const uint8_t gid[16], uint32_t most)
{
    uint32_t before = got.data, posted = 0;
    struct sge sge = {FIX_VA, 1024, key};
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1};
    memcpy(wr.ud.av.dgid, gid, 16);
    wr.ud.av.traffic_class = 0x20;
    wr.ud.qpn = 99;
    for (;;) {
        uint32_t start = got.data;
        while (posted < most && qp_send_room(ud)) {
            cr_assert_eq(qp_post_send(ud, &wr, &sge, NULL), 0);
            posted++;
        }
        pull();
        if (got.data == start) {
            return got.data - before;
        }
    }
}
static uint32_t push_to(uint8_t host, uint32_t most)
{
    uint8_t gid[16] = {[15] = host};
    return push(gid, most);
}

static void answer(uint8_t from, uint32_t sequence)
{
    uint8_t payload[PROBE_LEN];
    struct probe probe = {.kind = PROBE_ANSWER, .sequence = sequence, .size = PROBE_LEN};
    struct rx_meta meta = {.src_gid = {[15] = from}, .dst_gid = {[15] = 1}};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = PROBE_LEN};
    probe_encode(&probe, payload);
    engine_rx(fix.e, &p, &meta, fix.now);
}

static void wait(uint64_t ns)
{
    uint64_t end = fix.now + ns;
    while (engine_deadline(fix.e) <= end) {
        fix.now = engine_deadline(fix.e) > fix.now ? engine_deadline(fix.e) : fix.now;
        engine_expire(fix.e, fix.now);
        pull();
    }
    fix.now = end;
}

Test(flow, a_probe_follows_every_quarter_of_the_window)
{
    uint32_t quarter = (WINDOW / 4 + COST - 1) / COST;
    cr_expect_eq(push_to(HOST, quarter - 1), quarter - 1);
    cr_expect_eq(got.probes, 0u);
    push_to(HOST, 1);
    cr_expect_eq(got.probes, 1u);
    cr_expect_eq(got.data_before_probe, quarter, "behind what it asks for");
    cr_expect_eq(got.to.dgid[15], HOST);
    cr_expect_eq(got.to.traffic_class, 0x20, "the same way as the data");
}

Test(flow, the_window_ends_and_an_answer_opens_it)
{
    uint32_t sent = push_to(HOST, 1000);
    cr_expect_eq(sent, FILL);
    cr_expect_geq(got.probes, 3u);
    uint32_t covered = got.data_before_probe;
    answer(HOST, got.sequence);
    pull();
    cr_expect_eq(got.data - sent, covered < 4 ? covered : 4, "what is queued (the queue has 4) goes on");
    cr_expect_eq(push_to(HOST, 1000), covered - 4, "as much as was released");
}

Test(flow, other_answers_open_nothing)
{
    uint32_t sent = push_to(HOST, 1000);
    answer(HOST + 1, got.sequence); /* from another host */
    answer(HOST, got.sequence + 1); /* an answer to no probe */
    answer(HOST, got.sequence + 0x80000000u);
    pull();
    cr_expect_eq(got.data, sent);
    answer(HOST, got.sequence);
    uint32_t more = push_to(HOST, 1000);
    cr_expect_gt(more, 0u);
    for (uint32_t i = 0; i < 10; i++) {
        answer(HOST, got.sequence - i);
    }
    more = push_to(HOST, 1000);
    for (uint32_t i = 0; i < 100; i++) { /* each answer counts only once */
        answer(HOST, got.sequence - got.probes);
        cr_expect_eq(push_to(HOST, 0), 0u);
    }
}

Test(flow, destinations_have_windows_of_their_own)
{
    cr_expect_eq(push_to(HOST, FILL), FILL);
    cr_expect_eq(push_to(HOST + 1, FILL), FILL);
}

Test(flow, unanswered_bytes_are_released_after_a_time)
{
    cr_expect_eq(push_to(HOST, 2), 2u);
    cr_expect_neq(engine_deadline(fix.e), NEVER);
    wait(WAIT + 20000);
    cr_expect_eq(engine_deadline(fix.e), NEVER);
    cr_expect_eq(got.probes, 0u);
    cr_expect_eq(push_to(HOST, 1000), FILL, "the whole window is there again");
}

Test(flow, an_address_that_never_answers_is_paced)
{
    push_to(HOST, 1000);
    for (int i = 0; i < 20; i++) { /* by now, the engine knows that the destination does not answer */
        wait(2 * WAIT);
        push_to(HOST, 1000);
    }
    uint32_t probes = got.probes, data = got.data;
    for (int i = 0; i < 40; i++) {
        wait(250000);
        push_to(HOST, 1000);
    }
    cr_expect_eq(got.probes, probes);
    uint32_t rate = (got.data - data) * COST / 40; /* bytes per quarter of a millisecond */
    cr_expect(rate >= WINDOW / 4 * 9 / 10 && rate <= WINDOW / 4 * 11 / 10, "%u", rate);
    wait(1000000000); /* it is probed again now and then, … */
    push_to(HOST, 1000);
    cr_expect_eq(got.probes, probes + 1);
    answer(HOST, got.sequence); /* … and meanwhile a Pumice device has replaced it */
    push_to(HOST, 1000);
    cr_expect_gt(got.probes, probes + 1);
}

Test(flow, the_sender_waits_for_an_address_that_has_answered)
{
    push_to(HOST, 1000);
    answer(HOST, got.sequence);
    uint32_t sent = push_to(HOST, 1000), probes = got.probes;
    cr_assert_gt(sent, 0u);
    sent = got.data;
    wait(3 * WAIT);
    cr_expect_eq(push_to(HOST, 1000), 0u, "it may have been away for a moment");
    cr_expect_gt(got.probes, probes, "or the answer was lost");
    answer(HOST, got.sequence);
    cr_expect_gt(push_to(HOST, 1000), FILL / 2, "the last answer does for all");
    for (int i = 0; i < 100; i++) {
        wait(2 * WAIT);
        cr_assert_eq(push_to(HOST, 1000), 0u, "it has not run for %d waits", 2 * i);
    }
    for (int i = 0; i < 200; i++)
        wait(2 * WAIT);
    cr_expect_gt(push_to(HOST, 1000), FILL / 2, "but not for ever");
}

Test(flow, groups_are_paced_and_never_probed)
{
    static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 224, [15] = 9};
    cr_expect_eq(push(group, 1000), FILL);
    wait(250000 + 20000);
    cr_expect_gt(push(group, 1000), 0u);
    wait(2000000000);
    push(group, 1000);
    cr_expect_eq(got.probes, 0u);
}

Test(flow, the_window_also_limits_uc)
{
    struct qp *uc = fix_qp_of(&fix, QPT_UC);
    struct qp_attr a = fix_attr();
    struct sge sge = {FIX_VA, 2048, key};
    struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1};
    fix_bring(uc, QPS_RTS);
    for (int i = 0; i < 100; i++) {
        if (qp_send_room(uc)) {
            cr_assert_eq(qp_post_send(uc, &wr, &sge, NULL), 0);
        }
        pull();
    }
    cr_expect_eq(got.data, WINDOW / (256 + 256), "packets of 256 bytes");
    cr_expect_geq(got.probes, 3u);
    answer(a.av.dgid[15], got.sequence);
    pull();
    cr_expect_gt(got.data, WINDOW / 512);
}

/* --- the other end ----------------------------------------------------------------------------- */

static void ask(uint8_t from, const uint8_t dst[16], uint32_t size, uint32_t qkey)
{
    static uint8_t payload[4096];
    struct probe probe = {.kind = PROBE_ASK, .purpose = PROBE_CHECK, .sequence = 7, .size = size, .token = 8};
    struct rx_meta meta = {.src_gid = {[15] = from}};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = qkey, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = size};
    memcpy(meta.dst_gid, dst, 16);
    probe_encode(&probe, payload);
    engine_rx(fix.e, &p, &meta, fix.now);
}

Test(flow, a_probe_is_answered_by_a_small_packet)
{
    static const uint8_t own[16] = {[15] = 1};
    struct pkt p;
    struct probe probe;
    ask(33, own, 2048, PROBE_QKEY);
    cr_assert_eq(fix_tx(&fix, out, &p, 1), 1);
    cr_assert(probe_decode(p.payload, p.payload_len, &probe));
    cr_expect(probe.kind == PROBE_ANSWER && probe.purpose == PROBE_CHECK);
    cr_expect(probe.sequence == 7 && probe.size == 2048 && probe.token == 8);
    cr_expect_eq(p.payload_len, PROBE_LEN);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0);
    cr_expect_eq(engine_deadline(fix.e), NEVER, "nothing is kept");
}

Test(flow, answers_go_to_the_prober_and_are_limited)
{
    static const uint8_t own[16] = {[15] = 1};
    for (int i = 0; i < 1000; i++) {
        ask(33, own, PROBE_LEN, PROBE_QKEY);
    }
    pull();
    cr_expect(got.answers >= 1 && got.answers <= 64, "%u", got.answers);
    cr_expect_eq(got.to.dgid[15], 33);
    pull();
    cr_expect_leq(got.answers, 64u);
}

Test(flow, other_packets_are_not_answered)
{
    static const uint8_t own[16] = {[15] = 1}, group[16] = {0xff, 2, [15] = 1};
    ask(33, own, PROBE_LEN, PROBE_QKEY + 1);
    ask(33, group, PROBE_LEN, PROBE_QKEY);
    answer(33, 1);
    pull();
    cr_expect_eq(got.answers, 0u);
}
