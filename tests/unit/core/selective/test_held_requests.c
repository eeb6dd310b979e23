// SPDX-License-Identifier: BSD-2-Clause
/* The responder keeps requests that came before a missing one, and reports what is missing. */
#include "daemon/core/base/reorder.h"
#include "daemon/core/qp/engine_state.h"
#include "daemon/core/qp/qp.h"
#include "tests/unit/core/one_qp.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

static uint32_t key;
static _Alignas(64) uint8_t held_mem[1 << 16]; /* the owner's memory for what is kept */
static const uint8_t *written; /* source of the last write */

static int note_write(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                      size_t len)
{
    written = src;
    return fix_write(ctx, qpn, dst, ndst, src, len);
}

static void begin(bool assumed)
{
    static const struct mem_ops ops = {.read = fix_read, .write = note_write, .atomic = fix_atomic};
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    fix_init(&fix);
    fix.cfg.selective = true;
    fix.cfg.selective_assumed = assumed;
    fix.cfg.reorder_bytes = (uint32_t)(16 * reorder_slot_size(2048));
    fix.cfg.reorder_mem = held_mem;
    cr_assert_leq(fix.cfg.reorder_bytes, sizeof held_mem);
    free(fix.mem);
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* expects PSN 100, MTU 256 */
}
static void setup(void)
{
    begin(true);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(selective_responder, .init = setup, .fini = teardown);

/* A WRITE of one byte, its PSN, to the byte of that number. */
static struct pkt write_of(uint32_t psn)
{
    static uint8_t byte[256];
    byte[psn & 255] = (uint8_t)psn;
    return (struct pkt){.opcode = OP_WRITE_ONLY,
                        .psn = psn,
                        .ackreq = true,
                        .reth = {FIX_VA + psn, key, 1},
                        .payload = &byte[psn & 255],
                        .payload_len = 1,
                        .pad = 3};
}

static struct pkt write_quietly(uint32_t psn)
{
    struct pkt p = write_of(psn);
    p.ackreq = false;
    return p;
}

static struct sack sack_in(uint32_t i)
{
    struct pkt p = sent(i);
    struct sack s;
    cr_assert_eq(p.opcode, OP_SERVICE_UD | OP_SEND_ONLY, "opcode %#x", p.opcode);
    cr_assert_eq(p.dest_qpn, PROBE_QPN);
    cr_assert(sack_decode(p.payload, p.payload_len, &s));
    cr_expect(s.requester == 1234 && s.responder == qp_number(qp));
    return s;
}

static const struct engine_counters *counters(void)
{
    return engine_counters(fix.e);
}

Test(selective_responder, what_comes_after_a_gap_is_carried_out_when_the_gap_is_filled)
{
    arrive(write_of(100));
    arrive(write_of(102));
    arrive(write_of(103));
    arrive(write_of(106));
    cr_expect_eq(fix.writes, 1);
    cr_assert_eq(transmit(), 2);
    struct sack s = sack_in(0);
    cr_expect(s.expected == 101 && s.end == 107 && s.gaps == 2);
    cr_expect(s.gap[0].start == 101 && s.gap[0].end == 102 && s.gap[1].start == 104 && s.gap[1].end == 106);
    cr_expect(sent(1).opcode == OP_ACK && sent(1).psn == 100 && sent(1).aeth.syndrome == (AETH_ACK | AETH_NO_CREDITS));
    arrive(write_of(101));
    cr_expect_eq(fix.writes, 4);
    for (uint32_t i = 100; i < 104; i++)
        cr_expect_eq(fix.bytes[i], i);
    cr_assert_eq(transmit(), 2);
    s = sack_in(0);
    cr_expect(s.expected == 104 && s.gaps == 1 && s.gap[0].start == 104 && s.gap[0].end == 106);
    cr_expect(sent(1).opcode == OP_ACK && sent(1).psn == 103 && sent(1).aeth.syndrome == (AETH_ACK | AETH_NO_CREDITS));
    cr_expect_eq(sent(1).aeth.msn, 4);
    arrive(write_of(104));
    arrive(write_of(105));
    cr_expect_eq(fix.writes, 7);
    cr_expect(counters()->reordered_requests == 3 && counters()->send_seq_err == 0);
}

/* No packet asks for an ACK, but the window of the peer is full of them. */
Test(selective_responder, a_part_of_a_gap_is_acknowledged_at_once)
{
    fix.e->cfg.ack_delay_ns = 1000000000;
    arrive(write_quietly(100));
    arrive(write_quietly(103));
    cr_assert_eq(transmit(), 1, "a report");
    arrive(write_quietly(101));
    cr_assert_eq(transmit(), 1, "one ACK, and no report without news");
    cr_expect(sent(0).opcode == OP_ACK && sent(0).psn == 101);
    arrive(write_quietly(102));
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).opcode == OP_ACK && sent(0).psn == 103);
    arrive(write_quietly(104));
    cr_expect_eq(transmit(), 0, "in order again");
}

/* The last request that an ACK can name was so many PSNs ago that it seems to be ahead. */
Test(selective_responder, a_read_that_fills_a_gap_is_not_acknowledged)
{
    qp->resp->plain_psn = psn_add(100, (1 << 23) + 100);
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 101, .reth = {FIX_VA, key, 1}});
    cr_assert_eq(transmit(), 1);
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 1}});
    cr_assert_eq(transmit(), 2);
    cr_expect(sent(0).opcode == OP_READ_RESP_ONLY && sent(1).opcode == OP_READ_RESP_ONLY);
}

Test(selective_responder, atomics_and_reads_keep_their_order)
{
    arrive((struct pkt){.opcode = OP_FETCH_ADD, .psn = 101, .atomic = {.va = FIX_VA, .rkey = key, .swap_add = 5}});
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 102, .reth = {FIX_VA, key, 600}}); /* 102 … 104 */
    arrive((struct pkt){.opcode = OP_FETCH_ADD, .psn = 101, .atomic = {.va = FIX_VA, .rkey = key, .swap_add = 5}});
    arrive(write_of(105));
    cr_expect_eq(fix.atomics, 0);
    cr_assert_eq(transmit(), 1);
    struct sack s = sack_in(0);
    cr_expect(s.gaps == 1 && s.expected == 100 && s.gap[0].end == 101 && s.end == 106);
    arrive(write_of(100));
    cr_expect_eq(fix.atomics, 1, "once, although it came twice");
    cr_assert_eq(transmit(), 5);
    cr_expect(sent(0).opcode == OP_ATOMIC_ACK && sent(0).psn == 101);
    cr_expect(sent(1).opcode == OP_READ_RESP_FIRST && sent(1).psn == 102);
    cr_expect_eq(sent(1).payload[0], 5, "the READ sees the atomic");
    cr_expect(sent(4).opcode == OP_ACK && sent(4).psn == 105);
}

Test(selective_responder, a_tail_probe_is_answered_by_a_report)
{
    arrive(write_of(101));
    cr_assert_eq(transmit(), 1);
    cr_assert_eq(transmit(), 0);
    arrive(write_of(101));
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sack_in(0).expected, 100);
    cr_expect_eq(counters()->duplicate_request, 1);
}

Test(selective_responder, packets_are_kept_in_the_memory_of_the_owner)
{
    arrive(write_of(101));
    arrive(write_of(100));
    cr_expect_eq(fix.writes, 2);
    cr_expect(written >= held_mem && written < held_mem + sizeof held_mem);
}

Test(selective_responder, the_report_counts_what_came_twice)
{
    arrive(write_of(100));
    arrive(write_of(102));
    transmit();
    cr_expect_eq(sack_in(0).twice, 0);
    arrive(write_of(100)); /* before the gap … */
    arrive(write_of(102)); /* … and behind it */
    transmit();
    cr_expect_eq(sack_in(0).twice, 2);
    arrive(write_of(101));
    arrive(write_of(101));
    arrive(write_of(104));
    transmit();
    cr_expect_eq(sack_in(0).twice, 3);
}

Test(selective_responder, a_request_that_is_refused_ends_what_is_held)
{
    struct pkt bad = write_of(101);
    bad.reth.rkey ^= 0x55;
    arrive(bad);
    arrive(write_of(102));
    transmit();
    arrive(write_of(100));
    cr_expect_eq(qp_state(qp), QPS_ERR);
    cr_expect_eq(fix.writes, 1);
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).opcode == OP_ACK && sent(0).psn == 101 && sent(0).aeth.syndrome == NAK_REMOTE_ACCESS);
}

Test(selective_responder, a_message_without_a_receive_request)
{
    struct pkt send = {.opcode = OP_SEND_ONLY, .psn = 101, .ackreq = true};
    arrive(send);
    arrive(write_of(102));
    transmit();
    arrive(write_of(100));
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).psn == 101 && (sent(0).aeth.syndrome & AETH_KIND_MASK) == AETH_RNR);
    cr_expect_eq(fix.writes, 1, "nothing overtakes the SEND");
    arrive(write_of(103));
    cr_expect_eq(transmit(), 0, "the peer knows that it has to come back");
    cr_assert_eq(qp_post_recv(qp, &(struct recv_wr){.wr_id = 1}, NULL), 0);
    arrive(send);
    cr_expect_eq(fix.writes, 2, "the WRITE behind it was kept");
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).opcode == OP_ACK && sent(0).psn == 102);
}

Test(selective_responder, packets_without_room_are_reported_as_missing)
{
    for (uint32_t i = 0; i < 10; i++)
        arrive(write_of(101 + i));
    cr_expect_eq(counters()->reordered_requests, 8);
    cr_expect_eq(counters()->reorder_no_room, 2);
    cr_assert_eq(transmit(), 1);
    struct sack s = sack_in(0);
    cr_expect(s.end == 111 && s.gaps == 2 && s.gap[1].start == 109 && s.gap[1].end == 111);
    arrive(write_of(100));
    cr_expect_eq(fix.writes, 9);
}

Test(selective_responder, packets_beyond_the_window_are_not_kept)
{
    arrive(write_of(100 + fix.cfg.window_pkts + 1));
    cr_expect_eq(counters()->reordered_requests, 0);
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).opcode == OP_ACK && sent(0).psn == 100 && sent(0).aeth.syndrome == NAK_PSN_SEQUENCE);
}

Test(selective_responder, a_reset_forgets_what_is_held)
{
    arrive(write_of(101));
    cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
    fix_bring(qp, QPS_RTS);
    arrive(write_of(100));
    cr_expect_eq(fix.writes, 1);
}

/* --- which peers get reports ------------------------------------------------------------------- */

static struct probe question(uint32_t i)
{
    struct pkt p = sent(i);
    struct probe probe;
    cr_assert(p.dest_qpn == PROBE_QPN && probe_decode(p.payload, p.payload_len, &probe));
    cr_assert(probe.kind == PROBE_ASK && probe.purpose == PROBE_FEATURES);
    return probe;
}

static void answer(struct probe probe, bool sacks)
{
    uint8_t payload[PROBE_LEN];
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = PROBE_LEN};
    probe.kind = PROBE_ANSWER;
    probe.sacks = sacks;
    probe_encode(&probe, payload);
    fix_rx(&fix, &p);
}

static void restart_unknown(void)
{
    fix_fini(&fix);
    begin(false);
    fix.now = 5000000000;
}

Test(selective_responder, the_first_gap_asks_the_peer)
{
    restart_unknown();
    arrive(write_of(100));
    cr_assert_eq(transmit(), 1, "nothing is asked while nothing is missing");
    arrive(write_of(102));
    cr_assert_eq(transmit(), 2);
    struct probe q = question(0);
    cr_expect(sent(1).opcode == OP_ACK && sent(1).aeth.syndrome == NAK_PSN_SEQUENCE);
    answer(q, true);
    arrive(write_of(103));
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sack_in(0).expected, 101);
}

Test(selective_responder, other_peers_get_what_they_got_before)
{
    restart_unknown();
    arrive(write_of(102));
    cr_assert_eq(transmit(), 2);
    struct probe q = question(0);
    answer(q, false);
    arrive(write_of(103));
    cr_expect_eq(transmit(), 0, "one NAK for a gap");
    cr_expect_eq(counters()->reordered_requests, 0);
}

Test(selective_responder, a_device_of_another_make_is_not_asked)
{
    restart_unknown();
    fix.other_device = true;
    arrive(write_of(102));
    cr_assert_eq(transmit(), 1);
    cr_expect(sent(0).opcode == OP_ACK && sent(0).aeth.syndrome == NAK_PSN_SEQUENCE);
    arrive(write_of(103));
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(counters()->reordered_requests, 0);
}

Test(selective_responder, the_device_says_that_it_understands_reports)
{
    uint8_t payload[PROBE_LEN];
    struct probe probe = {.kind = PROBE_ASK, .purpose = PROBE_FEATURES, .size = PROBE_LEN, .token = 9};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = PROBE_LEN};
    probe_encode(&probe, payload);
    fix_rx(&fix, &p);
    cr_assert_eq(transmit(), 1);
    cr_assert(probe_decode(sent(0).payload, sent(0).payload_len, &probe));
    cr_expect(probe.kind == PROBE_ANSWER && probe.sacks && probe.token == 9);
}
