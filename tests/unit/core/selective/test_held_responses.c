// SPDX-License-Identifier: BSD-2-Clause
/* The requester keeps responses that came before a missing one, and asks only for the missing ones again. */
#include "daemon/core/base/reorder.h"
#include "daemon/core/qp/engine_state.h"
#include "daemon/core/qp/qp.h"
#include "tests/unit/core/one_qp.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

#define SLOTS 16 /* of which a QP may take a half */

static uint32_t key;

/* Starts the engine of `fix`. */
static void restart(bool assumed, uint32_t slots)
{
    static const struct mem_ops ops = {.read = no_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM, .access = ACCESS_LOCAL_WRITE};
    fix.cfg.selective = true;
    fix.cfg.selective_assumed = assumed;
    fix.cfg.reorder_bytes = (uint32_t)(slots * reorder_slot_size(2048));
    free(fix.mem);
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256 */
    fix.now = 1000000000;
}
static void begin(bool assumed, uint32_t slots)
{
    fix_init(&fix);
    restart(assumed, slots);
}
static void setup(void)
{
    begin(true, SLOTS);
}
static void begin_with_credits(void)
{
    fix_init(&fix);
    fix.cfg.e2e_credits = true;
    restart(true, SLOTS);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(held_responses, .init = setup, .fini = teardown);

static void post(uint8_t opcode, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {.opcode = opcode, .flags = SEND_SIGNALED, .num_sge = 1, .compare_add = 3};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

/* A full response packet, whose bytes are its PSN. */
static void respond(uint32_t psn)
{
    static uint8_t data[256];
    memset(data, (int)psn, sizeof data);
    arrive((struct pkt){.opcode = OP_READ_RESP_MIDDLE, .psn = psn, .payload = data, .payload_len = sizeof data});
}
static void respond_range(uint32_t psn, uint32_t end)
{
    for (; psn < end; psn++)
        respond(psn);
}
/* The same as the last one of a response, which acknowledges what is before it. */
static void respond_last(uint32_t psn)
{
    static uint8_t data[256];
    memset(data, (int)psn, sizeof data);
    arrive((struct pkt){.opcode = OP_READ_RESP_LAST,
                        .psn = psn,
                        .aeth.syndrome = AETH_ACK | AETH_NO_CREDITS,
                        .payload = data,
                        .payload_len = sizeof data});
}

/* Packet i of those sent last is a READ request for packets [psn, psn + n). */
static void expect_read(uint32_t i, uint32_t psn, uint32_t n)
{
    struct pkt p = sent(i);
    cr_expect(p.opcode == OP_READ_REQUEST && p.psn == psn && p.reth.length == n * 256,
              "packet %u: opcode %#x, PSN %u, %u bytes", i, p.opcode, p.psn, p.reth.length);
}

/* The responder says that requests [start, end_of_gap) are missing, and that it has all others before PSN end. */
static void report_gap(uint32_t start, uint32_t end_of_gap, uint32_t end)
{
    uint8_t payload[SACK_LEN_MOST];
    struct sack s = {.requester = qp_number(qp),
                     .responder = 1234,
                     .expected = start,
                     .end = end,
                     .newest = end,
                     .gaps = 1,
                     .gap = {{start, end_of_gap}}};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = sack_len(&s)};
    sack_encode(&s, payload);
    fix_rx(&fix, &p);
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}
static const struct engine_counters *counters(void)
{
    return engine_counters(fix.e);
}
static void expect_done(void)
{
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    cr_expect_eq(info().inflight_bytes, 0);
    cr_expect_eq(info().reads_outstanding, 0);
    cr_expect_eq(transmit(), 0);
}

Test(held_responses, only_the_missing_ones_are_asked_for_again)
{
    post(WR_RDMA_READ, 10 * 256); /* 200 … 209 */
    cr_assert_eq(transmit(), 1);
    respond_range(200, 202);
    respond_range(203, 206);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 202, 1);
    respond(208);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 206, 2);
    respond_last(209);
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(fix.bytes[3 * 256], 0, "nothing is written early");
    cr_expect_eq(info().inflight_bytes, 3 * 512, "what is kept has left the window");
    respond(202);
    respond_range(206, 208);
    for (uint32_t i = 0; i < 10; i++)
        cr_expect_eq(fix.bytes[i * 256 + 7], 200 + i);
    expect_done();
    cr_expect(counters()->reordered_responses == 5 && counters()->selective_retrans == 2);
    cr_expect_eq(counters()->selective_unneeded, 0);
}

Test(held_responses, a_peer_that_does_not_understand_gets_the_rest_of_the_read)
{
    fix_fini(&fix);
    begin(false, SLOTS);
    post(WR_RDMA_READ, 10 * 256);
    cr_assert_eq(transmit(), 1);
    respond(200);
    respond_range(202, 206);
    cr_assert_eq(transmit(), 2);
    cr_expect_eq(sent(0).dest_qpn, PROBE_QPN, "it is asked, and has not answered yet");
    expect_read(1, 201, 9);
    cr_expect_eq(counters()->reordered_responses, 0);
    respond_range(201, 210);
    expect_done();
}

Test(held_responses, an_ack_shows_that_a_response_is_missing)
{
    post(WR_RDMA_READ, 3 * 256); /* 200 … 202 */
    post(WR_ATOMIC_FETCH_AND_ADD, 8); /* 203 */
    post(WR_RDMA_WRITE, 256); /* 204 */
    cr_assert_eq(transmit(), 3);
    respond(200);
    ack(204);
    cr_assert_eq(transmit(), 2);
    expect_read(0, 201, 2);
    cr_expect(sent(1).opcode == OP_FETCH_ADD && sent(1).psn == 203);
    arrive((struct pkt){.opcode = OP_ATOMIC_ACK, .psn = 203, .aeth.syndrome = AETH_ACK | AETH_NO_CREDITS});
    respond_range(201, 203);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    expect_done(); /* the WRITE, which the ACK named before */
}

Test(held_responses, a_response_that_is_lost_again)
{
    post(WR_RDMA_READ, 4 * 256); /* 200 … 203 */
    cr_assert_eq(transmit(), 1);
    respond(201);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 200, 1);
    post(WR_RDMA_READ, 2 * 256); /* 204, 205 */
    cr_assert_eq(transmit(), 1);
    respond_last(203);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 202, 1);
    respond_last(205); /* its request was sent after 200 was asked for again, but before 202 was */
    cr_assert_eq(transmit(), 2);
    expect_read(0, 200, 1);
    expect_read(1, 204, 1);
    respond(200);
    respond(202);
    respond(204);
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    expect_done();
}

Test(held_responses, what_comes_twice_shows_that_it_was_late)
{
    post(WR_RDMA_READ, 4 * 256);
    cr_assert_eq(transmit(), 1);
    respond_range(201, 203);
    cr_assert_eq(transmit(), 1);
    respond(200); /* late */
    respond(200); /* the answer */
    cr_expect_eq(counters()->selective_unneeded, 1);
    respond(200); /* made by the network */
    cr_expect_eq(counters()->selective_unneeded, 1);
    respond_last(203);
    expect_done();
}

Test(held_responses, a_response_from_before_shows_nothing)
{
    post(WR_RDMA_READ, 4 * 256);
    cr_assert_eq(transmit(), 1);
    respond(200);
    respond(202);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 201, 1);
    respond(200); /* made by the network */
    cr_expect_eq(counters()->selective_unneeded, 0);
    respond(201); /* late */
    respond(201); /* the answer */
    cr_expect_eq(counters()->selective_unneeded, 1);
}

/* The path reorders packets. 200 … 202 count as lost when 206 comes, and are still missing when 207 comes. */
Test(held_responses, a_loss_counts_once)
{
    for (int i = 0; i < 2; i++)
        post(WR_RDMA_READ, 4 * 256); /* 200 … 207 */
    cr_assert_eq(transmit(), 2);
    qp->peer->congestion.srtt = 100000;
    qp->peer->reordering.window = 1000;
    respond_last(203);
    fix.now += 2000;
    respond(206);
    cr_assert_eq(qp->peer->reordering.losses, 1);
    respond_last(207);
    cr_expect_eq(qp->peer->reordering.losses, 1);
}

/* The loss of 200 counts, and makes the window small: round trips were long of late. */
Test(held_responses, a_late_response_restores_the_window)
{
    struct congestion *c = &qp->peer->congestion;
    post(WR_RDMA_READ, 4 * 256);
    cr_assert_eq(transmit(), 1);
    *c = (struct congestion){.cwnd = 2048, .ssthresh = 2048, .srtt = 100000, .rtt_min = 10000, .sampled_at = fix.now};
    for (uint32_t i = 0; i < CONGESTION_RECENT; i++)
        c->recent[i] = 1000000;
    respond_range(201, 203);
    fix.now += 100000;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1);
    cr_expect_lt(c->cwnd, 2048);
    fix.now += 100000;
    respond(200); /* late */
    respond(200); /* the answer */
    cr_expect_geq(c->cwnd, 2048, "%lu bytes", (unsigned long)c->cwnd);
}

/* The queue of a QP has room for eight responses. */
Test(held_responses, without_room_the_oldest_ones_are_kept)
{
    post(WR_RDMA_READ, 20 * 256); /* 200 … 219 */
    cr_assert_eq(transmit(), 1);
    respond_range(210, 218);
    respond_range(201, 205); /* in place of 214 … 217 */
    cr_expect_eq(counters()->reorder_no_room, 0);
    cr_assert_eq(transmit(), 3);
    expect_read(0, 200, 1);
    expect_read(1, 205, 5);
    expect_read(2, 214, 4);
    respond(218);
    cr_expect_eq(counters()->reorder_no_room, 1);
    cr_assert_eq(transmit(), 1, "it goes back");
    expect_read(0, 200, 20);
    respond(200);
    respond_range(205, 210);
    cr_expect_eq(fix.bytes[13 * 256], 213);
    respond_range(214, 219);
    respond_last(219);
    expect_done();
}

/* The device uses end-to-end credits: the QP may send one message before the peer tells of more. The ACK of that message, with
 * credits for two more, comes before the response to the READ, and so does a newer one. */
Test(held_responses, credits_of_an_ack_are_taken_in_after_the_response_before_it)
{
    fix_fini(&fix);
    begin_with_credits();
    post(WR_RDMA_READ, 4 * 256); /* 200 … 203 */
    for (int i = 0; i < 3; i++)
        post(WR_SEND, 256); /* 204 … 206 */
    cr_assert_eq(transmit(), 2);
    respond_range(200, 203);
    nak(AETH_ACK | 1, 204);
    nak(AETH_ACK | 2, 204);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 203, 1);
    respond(203);
    cr_assert_eq(transmit(), 2);
    cr_expect(sent(0).psn == 205 && sent(1).psn == 206);
    cr_expect_eq(counters()->acks_rcvd, 2);
}

/* An ACK never names a READ (IBA C9-105). One that does is not kept. */
Test(held_responses, an_ack_of_a_read_is_no_response)
{
    post(WR_RDMA_READ, 4 * 256); /* 200 … 203 */
    post(WR_RDMA_READ, 256); /* 204 */
    cr_assert_eq(transmit(), 2);
    ack(204);
    cr_assert_eq(transmit(), 2);
    ack(200);
    respond_range(200, 205);
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    expect_done();
}

/* A response behind a WRITE acknowledges it, also after the QP has gone back. */
Test(held_responses, what_is_kept_acknowledges_what_is_before_it)
{
    post(WR_RDMA_READ, 2 * 256); /* 200, 201 */
    post(WR_RDMA_WRITE, 256); /* 202 */
    post(WR_RDMA_READ, 2 * 256); /* 203, 204 */
    cr_assert_eq(transmit(), 3);
    respond_range(203, 205);
    nak(NAK_PSN_SEQUENCE, 200);
    respond_range(200, 202);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    expect_done();
}

Test(held_responses, few_reads_are_outstanding_behind_a_gap)
{
    post(WR_RDMA_READ, 4 * 256); /* 200 … 203 */
    post(WR_RDMA_READ, 4 * 256); /* 204 … 207 */
    cr_assert_eq(transmit(), 2);
    respond_range(201, 204);
    post(WR_RDMA_READ, 4 * 256); /* 208 … 211 */
    cr_assert_eq(transmit(), 1, "the new one waits: eight packets have room");
    expect_read(0, 200, 1);
    respond(200);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 208, 4);
}

Test(held_responses, going_back_keeps_them)
{
    post(WR_RDMA_READ, 6 * 256); /* 200 … 205 */
    cr_assert_eq(transmit(), 1);
    respond_range(201, 204);
    cr_assert_eq(transmit(), 1);
    nak(NAK_PSN_SEQUENCE, 200);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 200, 6);
    respond(200); /* the others need not come again */
    respond(204);
    respond_last(205);
    expect_done();
}

/* 201 and 207 came before the QP went back, and their READ is under way again. When 203 and 202 come, nothing shows yet that 204
 * to 206 are missing. */
Test(held_responses, what_came_before_going_back_shows_no_gap)
{
    post(WR_RDMA_READ, 10 * 256); /* 200 … 209 */
    cr_assert_eq(transmit(), 1);
    respond(201);
    respond(207);
    transmit();
    nak(NAK_PSN_SEQUENCE, 200);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 200, 10);
    fix.now += 1000000;
    respond(203);
    respond(202);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 200, 1);
    respond(200);
    respond_range(204, 207);
    respond(208);
    respond_last(209);
    expect_done();
}

/* The responder reported that 202 is missing, and then carried out the READ. The response comes before the report. */
Test(held_responses, a_report_from_before_a_response_does_not_end_going_back)
{
    post(WR_RDMA_READ, 2 * 256); /* 200, 201 */
    post(WR_RDMA_WRITE, 4 * 256); /* 202 … 205 */
    cr_assert_eq(transmit(), 5);
    nak(NAK_PSN_SEQUENCE, 200);
    cr_assert_eq(transmit_up_to(330), 1);
    expect_read(0, 200, 2);
    fix.now += 1000000;
    respond_last(201);
    report_gap(200, 203, 205);
    cr_assert_eq(transmit(), 5);
    expect_read(0, 200, 1);
    for (uint32_t i = 1; i < 5; i++)
        cr_expect_eq(sent(i).psn, 201 + i);
}

/* The SACK says that a WRITE, a READ and another WRITE are missing: 200 … 205. */
static void miss_requests(void)
{
    post(WR_RDMA_WRITE, 256); /* 200 */
    post(WR_RDMA_READ, 4 * 256); /* 201 … 204 */
    post(WR_RDMA_WRITE, 256); /* 205 */
    post(WR_RDMA_WRITE, 256); /* 206 */
    cr_assert_eq(transmit(), 4);
    report_gap(200, 206, 207);
}

/* The missing requests are sent again, and the second response to the READ comes. So the READ has arrived, but the WRITE behind it may be missing. */
Test(held_responses, a_response_in_the_middle_of_missing_requests)
{
    miss_requests();
    cr_assert_eq(transmit(), 3);
    expect_read(1, 201, 4);
    respond(202);
    cr_assert_eq(transmit(), 1);
    expect_read(0, 201, 1);
    cr_expect_eq(info().inflight_bytes, 4 * 512, "201, 203, 204 and 205");
    post(WR_RDMA_WRITE, 256); /* 207 */
    cr_assert_eq(transmit(), 1);
    report_gap(205, 206, 208); /* 207 was sent later than 205 */
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 205);
}

/* The same, but the second response comes before anything was sent again: the READ was late. */
Test(held_responses, a_late_response_in_the_middle_of_missing_requests)
{
    miss_requests();
    respond(202);
    cr_assert_eq(transmit(), 2);
    expect_read(0, 201, 1);
    cr_expect_eq(sent(1).psn, 205);
}

/* The round trip of a WRITE ends when a READ behind it is answered, although a response before it is missing. */
Test(held_responses, a_response_ends_the_round_trip_of_a_request_before_it)
{
    post(WR_RDMA_READ, 2 * 256); /* 200, 201 */
    cr_assert_eq(transmit(), 1);
    fix.now += 80000;
    respond(200);
    cr_assert_eq(info().srtt_ns, 80000);
    post(WR_RDMA_WRITE, 256); /* 202 */
    post(WR_RDMA_READ, 256); /* 203 */
    cr_assert_eq(transmit(), 2);
    fix.now += 160000;
    respond_last(203);
    cr_expect_eq(info().srtt_ns, 90000, "%lu ns", (unsigned long)info().srtt_ns);
}

/* No list of missing responses tells of 202, before 200 comes and all of them are taken in. */
Test(held_responses, what_was_taken_in_is_no_news_later)
{
    post(WR_RDMA_READ, 4 * 256); /* 200 … 203 */
    cr_assert_eq(transmit(), 1);
    respond_range(201, 203);
    respond(200);
    cr_expect_eq(qp->req->held_cost, 0);
    respond_last(203);
    expect_done();
}

/* The scoreboard holds 32 gaps. */
Test(held_responses, gaps_beyond_the_scoreboard_are_judged_later)
{
    fix_fini(&fix);
    begin(true, 200);
    post(WR_RDMA_READ, 8192); /* 200 … 231 */
    post(WR_RDMA_READ, 8192); /* 232 … 263 */
    post(WR_RDMA_READ, 8192); /* 264 … 295 */
    cr_assert_geq(transmit(), 3);
    for (uint32_t psn = 201; psn < 294; psn += 2)
        respond(psn);
    respond_last(295);
    cr_assert_eq(transmit(), 32);
    for (uint32_t psn = 200; psn < 264; psn += 2)
        respond(psn);
    cr_assert_eq(transmit(), 16);
    expect_read(0, 264, 1);
}

Test(held_responses, responses_that_do_not_fit_are_dropped)
{
    static uint8_t data[256];
    post(WR_RDMA_READ, 2 * 256 + 10); /* 200 … 202 */
    post(WR_ATOMIC_FETCH_AND_ADD, 8); /* 203 */
    post(WR_RDMA_WRITE, 256); /* 204 */
    cr_assert_eq(transmit(), 3);
    arrive((struct pkt){.opcode = OP_READ_RESP_MIDDLE, .psn = 202, .payload = data, .payload_len = 256});
    arrive((struct pkt){.opcode = OP_READ_RESP_ONLY, .psn = 203, .payload = data, .payload_len = 8});
    arrive((struct pkt){.opcode = OP_ATOMIC_ACK, .psn = 202});
    arrive((struct pkt){.opcode = OP_READ_RESP_MIDDLE, .psn = 205, .payload = data, .payload_len = 256});
    cr_expect_eq(counters()->rx_bad_response, 4);
    cr_expect_eq(counters()->reordered_responses, 0);
    cr_expect_eq(transmit(), 0);
}

Test(held_responses, a_qp_in_err_gives_the_room_back)
{
    post(WR_RDMA_READ, 10 * 256);
    cr_assert_eq(transmit(), 1);
    respond_range(201, 209);
    fix_bring(qp, QPS_ERR);
    transmit();
    cr_expect_eq(fix.e->reorder.free, SLOTS);
}
