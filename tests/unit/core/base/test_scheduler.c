// SPDX-License-Identifier: BSD-2-Clause
/* The order in which packets are sent: lost packets before new ones, and a burst of each QP in its turn. So neither
 * retransmissions nor bulk data delay the ACKs and requests of other QPs. */
#include "tests/unit/core/core_fixture.h"

#define MTU 256u /* as in fix_attr */
#define BURST 4096u

static struct fixture fix;
static struct qp *bulk, *other;
static uint32_t key;
static uint8_t out[65536];

static void setup_with(uint32_t max_resends)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};

    fix_init(&fix);
    free(fix.mem);
    fix.cfg.burst_bytes = BURST;
    fix.cfg.window_pkts = 1000;
    fix.cfg.max_resends = max_resends;
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    bulk = fix_qp(&fix);
    other = fix_qp(&fix);
    fix_bring(bulk, QPS_RTS);
    fix_bring(other, QPS_RTS);
    fix.now = 1000000;
}
static void setup(void)
{
    setup_with(16);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(scheduler, .init = setup, .fini = teardown);

static void post(struct qp *qp, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {
        .opcode = WR_RDMA_WRITE, .flags = SEND_SIGNALED, .num_sge = 1, .remote_addr = 0x1000, .rkey = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* Takes out one batch of at most cap bytes. */
static uint32_t batch(struct tx_batch *b, size_t cap)
{
    *b = (struct tx_batch){.buf = out, .cap = cap};
    return engine_tx(fix.e, b, fix.now);
}

static void sequence_nak(uint32_t psn)
{
    struct pkt p = {.opcode = OP_ACK, .dest_qpn = qp_number(bulk), .psn = psn, .aeth = {.syndrome = NAK_PSN_SEQUENCE}};
    fix_rx(&fix, &p);
}

/* Returns the index of the first packet of a QP; -1: there is none. */
static int first_of(const struct tx_batch *b, const struct qp *qp)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->pkt[i].src_qpn == qp_number(qp))
            return (int)i;
    return -1;
}

Test(scheduler, lost_packets_are_sent_before_new_ones)
{
    struct tx_batch b;
    for (int i = 0; i < 3; i++)
        post(bulk, MTU);
    cr_assert_eq(batch(&b, sizeof out), 3);
    sequence_nak(201);
    post(bulk, MTU);
    cr_assert_eq(batch(&b, sizeof out), 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(b.pkt[i].psn, 201 + i, "packet %u has PSN %u", i, b.pkt[i].psn);
}

Test(scheduler, retransmissions_are_a_burst_in_a_turn)
{
    struct tx_batch b;
    post(bulk, 30 * MTU);
    cr_assert_eq(batch(&b, sizeof out), 30);
    sequence_nak(200);
    post(other, MTU);
    cr_assert_geq(batch(&b, 24 * (MTU + 32)), 6);
    int at = first_of(&b, other);
    cr_expect(at >= 0 && at <= (int)(BURST / MTU), "the other's request is packet %d", at);
    cr_expect_neq(first_of(&b, bulk), -1);
}

/* Begins a new engine with this bound. */
static void restart(uint32_t max_resends)
{
    teardown();
    setup_with(max_resends);
}

/* A QP with much to send again takes turns with others, max_resends packets in each. */
Test(scheduler, a_turn_has_a_bound_for_packets_that_are_sent_again)
{
    static const uint32_t bounds[] = {1, 5};
    for (unsigned k = 0; k < 2; k++) {
        struct tx_batch b;
        restart(bounds[k]);
        post(bulk, 16 * MTU);
        cr_assert_eq(batch(&b, sizeof out), 16);
        sequence_nak(200);
        post(other, 40 * MTU);
        cr_assert_gt(batch(&b, sizeof out), 16);
        uint32_t again = 0, others = 0, in_a_row = 0, rows = 0, last = b.n;
        while (b.pkt[last - 1].src_qpn == qp_number(bulk))
            last--; /* alone at the end, it has no bound */
        for (uint32_t i = 0; i < last; i++) {
            bool it = b.pkt[i].src_qpn == qp_number(bulk);
            in_a_row = it ? in_a_row + 1 : 0;
            rows += in_a_row == 1;
            others += !it;
            again += it;
            cr_expect(!it || b.pkt[i].retransmit);
            cr_expect_leq(in_a_row, bounds[k], "packet %u is number %u of a turn", i, in_a_row);
        }
        cr_expect(rows >= 2 && others > again, "%u turns, %u packets again, %u of the other QP", rows, again, others);
        cr_expect_eq(again + b.n - last, 16, "all are sent again");
    }
}

Test(scheduler, without_that_bound_a_turn_is_a_burst)
{
    struct tx_batch b;
    restart(0);
    post(bulk, 30 * MTU);
    cr_assert_eq(batch(&b, sizeof out), 30);
    sequence_nak(200);
    post(other, MTU);
    cr_assert_eq(batch(&b, sizeof out), 31);
    cr_expect_eq(first_of(&b, other), (int)(BURST / MTU));
}

Test(scheduler, an_ack_does_not_wait_for_bulk_data)
{
    struct tx_batch b;
    struct pkt write = {.opcode = OP_WRITE_ONLY,
                        .dest_qpn = qp_number(other),
                        .psn = 100,
                        .ackreq = true,
                        .reth = {.va = FIX_VA, .rkey = key, .length = 4},
                        .payload = (const uint8_t *)"data",
                        .payload_len = 4};
    post(bulk, 30 * MTU);
    cr_assert_geq(batch(&b, 6 * (MTU + 64)), 5); /* the QP is now in the middle of its data */
    fix_rx(&fix, &write);
    cr_assert_geq(batch(&b, 24 * (MTU + 32)), 6);
    int at = first_of(&b, other);
    cr_assert(at >= 0, "the ACK is not in the next batch");
    struct pkt p;
    cr_assert_eq(pkt_decode(out + b.pkt[at].off, b.pkt[at].len, &p), PKT_OK);
    cr_expect(p.opcode == OP_ACK && at <= (int)(BURST / MTU), "the ACK is packet %d", at);
}

/* Three QPs with data, and a fourth that has only an ACK to send. The first batch is full before its turn. */
Test(scheduler, after_a_full_batch_the_acks_of_all_qps_go_first)
{
    struct tx_batch b;
    struct qp *busy[2] = {other, fix_qp(&fix)}, *quiet = fix_qp(&fix);
    struct pkt write = {.opcode = OP_WRITE_ONLY,
                        .dest_qpn = qp_number(quiet),
                        .psn = 100,
                        .ackreq = true,
                        .reth = {.va = FIX_VA, .rkey = key, .length = 4},
                        .payload = (const uint8_t *)"data",
                        .payload_len = 4};
    fix_bring(busy[1], QPS_RTS);
    fix_bring(quiet, QPS_RTS);
    post(bulk, 30 * MTU);
    post(busy[0], 30 * MTU);
    post(busy[1], 30 * MTU);
    fix_rx(&fix, &write);
    fix.now += 7000;
    cr_assert_geq(batch(&b, 20 * (MTU + 64)), 16);
    cr_assert_eq(first_of(&b, quiet), -1, "the bursts of two QPs fill the batch");
    cr_assert_geq(batch(&b, 20 * (MTU + 64)), 16);
    cr_expect_eq(first_of(&b, quiet), 0);
    cr_expect_eq(b.acks, 1u);
    cr_expect_eq(b.ack_due[0], fix.now - 7000);
}

/* All data is copied from client memory at once. */
Test(scheduler, a_single_qp_sends_more_than_a_burst)
{
    struct tx_batch b;
    cr_assert_eq(batch(&b, sizeof out), 0); /* no QP waits any more */
    post(bulk, 30 * MTU);
    cr_assert_eq(batch(&b, sizeof out), 30);
    cr_expect_eq(fix.reads, 1, "%u copies", fix.reads);
}

static struct pkt write_of_four_bytes(void)
{
    return (struct pkt){.opcode = OP_WRITE_ONLY,
                        .dest_qpn = qp_number(bulk),
                        .psn = 100,
                        .ackreq = true,
                        .reth = {.va = FIX_VA, .rkey = key, .length = 4},
                        .payload = (const uint8_t *)"data",
                        .payload_len = 4};
}

static bool is_ack(const struct tx_batch *b, uint32_t i)
{
    struct pkt p;
    return i < b->n && pkt_decode(out + b->pkt[i].off, b->pkt[i].len, &p) == PKT_OK && p.opcode == OP_ACK;
}

/* Bulk data and an ACK of the same QP. Takes out one batch of at most cap bytes. */
static void answer_amid_bulk_data(struct tx_batch *b, size_t cap)
{
    struct pkt write = write_of_four_bytes();
    cr_assert_eq(batch(b, sizeof out), 0); /* no QP waits any more */
    post(bulk, 30 * MTU);
    fix_rx(&fix, &write);
    batch(b, cap);
}

Test(scheduler, an_ack_goes_before_bulk_data_of_its_qp)
{
    struct tx_batch b;
    answer_amid_bulk_data(&b, 24 * (MTU + 32));
    cr_expect(is_ack(&b, 0));
}

Test(scheduler, an_ack_fits_into_a_batch_that_data_fill)
{
    struct tx_batch b;
    answer_amid_bulk_data(&b, 5 * (MTU + 64));
    cr_expect(is_ack(&b, 0));
    cr_expect_gt(b.n, 1);
}

Test(scheduler, an_ack_is_held_only_if_nothing_else_is_to_be_sent)
{
    struct pkt write = write_of_four_bytes();
    struct tx_batch b;
    fix_rx(&fix, &write);
    b = (struct tx_batch){.buf = out, .cap = sizeof out, .hold_acks = true};
    cr_expect_eq(engine_tx(fix.e, &b, fix.now), 0);
    cr_expect(b.held);
    post(bulk, 30 * MTU);
    b = (struct tx_batch){.buf = out, .cap = 24 * (MTU + 32), .hold_acks = true};
    engine_tx(fix.e, &b, fix.now);
    cr_expect(is_ack(&b, 0));
    cr_expect_not(b.held);
}

static struct pkt send_of_four_bytes(void)
{
    struct sge sge = {FIX_VA, 64, key};
    struct recv_wr wr = {.num_sge = 1};
    cr_assert_eq(qp_post_recv(bulk, &wr, &sge), 0);
    return (struct pkt){.opcode = OP_SEND_ONLY,
                        .dest_qpn = qp_number(bulk),
                        .psn = 100,
                        .ackreq = true,
                        .payload = (const uint8_t *)"data",
                        .payload_len = 4};
}

/* The place of the ACK of a request in a batch that has it and an answer of so many bytes; -1: the batch has no ACK. */
static int ack_beside(struct pkt *request, uint32_t length, struct gso_run gso)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out, .gso = gso};
    cr_assert_eq(batch(&b, sizeof out), 0);
    post(bulk, length);
    fix_rx(&fix, request);
    b = (struct tx_batch){.buf = out, .cap = sizeof out, .gso = gso};
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), (length + MTU - 1) / MTU + (length == 0) + 1);
    for (uint32_t i = 0; i < b.n; i++) {
        if (is_ack(&b, i))
            return (int)i;
    }
    return -1;
}

static int ack_beside_answer(uint32_t length, struct gso_run gso)
{
    struct pkt send = send_of_four_bytes();
    return ack_beside(&send, length, gso);
}

/* A program that polls its memory for a WRITE would keep the processor from the daemon that receives the answer. */
Test(scheduler, an_ack_of_a_write_goes_behind_a_short_answer)
{
    struct pkt write = write_of_four_bytes();
    cr_expect_eq(ack_beside(&write, 64, (struct gso_run){0}), 1);
}
Test(scheduler, an_ack_of_a_write_goes_before_an_answer_of_many_packets)
{
    struct pkt write = write_of_four_bytes();
    cr_expect_eq(ack_beside(&write, MTU + 1, (struct gso_run){0}), 0);
}

/* On a NIC, a request completes before the answer to it arrives. Programs rely on this order. */
Test(scheduler, an_ack_goes_before_the_answer)
{
    cr_expect_eq(ack_beside_answer(64, (struct gso_run){0}), 0);
}
Test(scheduler, an_ack_goes_before_the_answer_if_a_run_may_be_divided)
{
    cr_expect_eq(ack_beside_answer(64, (struct gso_run){.bytes = 65000, .pkts = 64}), 0);
}
Test(scheduler, an_ack_goes_behind_the_answer_if_both_arrive_at_once)
{
    cr_expect_eq(ack_beside_answer(64, (struct gso_run){.bytes = 65000, .pkts = 64, .whole = true}), 1);
}
Test(scheduler, an_ack_goes_before_an_answer_of_many_packets)
{
    cr_expect_eq(ack_beside_answer(MTU + 1, (struct gso_run){.bytes = 65000, .pkts = 64, .whole = true}), 0);
}
Test(scheduler, an_ack_goes_before_an_answer_that_is_shorter)
{
    cr_expect_eq(ack_beside_answer(0, (struct gso_run){.bytes = 65000, .pkts = 64, .whole = true}), 0);
}

/* A burst of the other QP fills the batch up to 232 bytes. */
Test(scheduler, a_probe_without_room_in_the_batch_stays_due)
{
    struct tx_batch b;
    post(bulk, MTU);
    cr_assert_eq(batch(&b, sizeof out), 1);
    post(other, 30 * MTU);
    fix.now = engine_deadline(fix.e);
    engine_expire(fix.e, fix.now);
    cr_assert_eq(batch(&b, (BURST / MTU) * (MTU + 16) + 16 + 232), BURST / MTU);
    cr_assert_eq(first_of(&b, bulk), -1);
    batch(&b, sizeof out);
    cr_assert_eq(first_of(&b, bulk), 0, "no probe");
    cr_expect_eq(b.pkt[0].psn, 200);
}

/* A QP that had no turn in one batch has the first turn in the next. */
Test(scheduler, every_qp_gets_its_turn_after_a_full_batch)
{
    struct tx_batch b;
    bool seen = false;
    cr_assert_eq(batch(&b, sizeof out), 0);
    struct qp *third = fix_qp(&fix);
    fix_bring(third, QPS_RTS);
    cr_assert_eq(batch(&b, sizeof out), 0);
    for (unsigned i = 0; i < 3; i++) { /* more than two bursts each */
        post(bulk, 30 * MTU);
        post(other, 30 * MTU);
        post(third, 30 * MTU);
    }
    for (unsigned i = 0; i < 2; i++) {
        batch(&b, 2 * (BURST / MTU) * (MTU + 16) + 100); /* two bursts */
        seen |= first_of(&b, third) != -1;
    }
    cr_expect(seen, "the third sends nothing");
}

/* A NAK is answered at once, and before the data of the same QP. */
Test(scheduler, a_nak_is_sent_before_the_data_of_its_qp)
{
    struct tx_batch b;
    struct pkt write = {.opcode = OP_WRITE_ONLY, .dest_qpn = qp_number(bulk), .psn = 105, .ackreq = true};
    post(bulk, 30 * MTU);
    cr_assert_geq(batch(&b, 6 * (MTU + 64)), 5);
    fix_rx(&fix, &write); /* 100 … 104 are missing */
    cr_assert_geq(batch(&b, 24 * (MTU + 32)), 6);
    struct pkt p;
    cr_assert_eq(pkt_decode(out + b.pkt[0].off, b.pkt[0].len, &p), PKT_OK);
    cr_expect(p.opcode == OP_ACK && p.aeth.syndrome == NAK_PSN_SEQUENCE && p.psn == 100, "opcode %02x", p.opcode);
}
