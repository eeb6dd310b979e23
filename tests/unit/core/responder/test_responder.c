// SPDX-License-Identifier: BSD-2-Clause
/* The responder: the test sends it single packets, among them packets that the simulator's requester never sends, and
 * rare positions of the PSN. */
#include "tests/unit/core/one_qp.h"

static uint32_t key;

static void setup(void)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = FIX_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access =
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* expects PSN 100, sends from 200 */
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(responder, .init = setup, .fini = teardown);

static void expect_only(uint8_t syndrome, uint32_t psn)
{
    cr_assert_eq(transmit(), 1);
    struct pkt p = sent(0);
    cr_expect_eq(p.opcode, OP_ACK);
    cr_expect_eq(p.aeth.syndrome, syndrome, "%#x", p.aeth.syndrome);
    cr_expect_eq(p.psn, psn, "%u", p.psn);
}

static struct pkt empty_write(uint32_t psn)
{
    return (struct pkt){.opcode = OP_WRITE_ONLY, .psn = psn & PSN_MASK, .ackreq = true};
}

static struct pkt atomic_add(uint32_t psn, uint64_t n)
{
    return (struct pkt){
        .opcode = OP_FETCH_ADD, .psn = psn & PSN_MASK, .atomic = {.va = FIX_VA, .rkey = key, .swap_add = n}};
}

static void post_send(void)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED | SEND_INLINE, .inline_len = 1};
    cr_assert_eq(qp_post_send(qp, &wr, NULL, "x"), 0);
}

/* --- acknowledgements -------------------------------------------------------------------------- */

Test(responder, a_delayed_ack_is_sent_although_other_packets_were)
{
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 8}};
    struct pkt write = empty_write(101);
    write.ackreq = false;
    arrive(read);
    arrive(write);
    post_send();
    cr_assert_eq(transmit(), 2);
    cr_assert_eq(sent(0).opcode, OP_READ_RESP_ONLY);
    cr_assert_eq(sent(1).opcode, OP_SEND_ONLY);
    fix.now = fix.cfg.ack_delay_ns;
    engine_expire(fix.e, fix.now);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 101);
}

/* A thousand messages that ask for an ACK each, in batches of ten. */
Test(responder, one_ack_for_a_batch)
{
    struct qp_info info;
    for (uint32_t i = 0; i < 1000; i++) {
        arrive(empty_write(100 + i));
        if (i % 10 == 9)
            expect_only(AETH_ACK | AETH_NO_CREDITS, 100 + i);
    }
    qp_info(qp, &info);
    cr_expect_eq(info.counters.acks_sent, 100);
    cr_expect_eq(info.counters.ack_coalesced, 900);
}

Test(responder, a_packet_without_ackreq_is_acknowledged_within_the_delay)
{
    struct pkt p = empty_write(100);
    p.ackreq = false;
    arrive(p);
    cr_expect_eq(transmit(), 0);
    cr_assert_leq(engine_deadline(fix.e), fix.now + fix.cfg.ack_delay_ns);
    fix.now += fix.cfg.ack_delay_ns;
    engine_expire(fix.e, fix.now);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
    cr_expect_eq(engine_deadline(fix.e), NEVER);
}

Test(responder, the_delay_of_an_ack_may_change)
{
    struct pkt p = empty_write(100);
    p.ackreq = false;
    engine_set_timing(fix.e, 7000, 1000000);
    arrive(p);
    cr_assert_eq(transmit(), 0);
    cr_assert_leq(engine_deadline(fix.e), fix.now + 7000);
    fix.now += 7000;
    engine_expire(fix.e, fix.now);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
    engine_set_timing(fix.e, 0, 1000000);
    p.psn++;
    arrive(p);
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(engine_deadline(fix.e), NEVER, "without a delay, only the sender's wish brings an ACK");
}

/* The ACK has the newest PSN. */
Test(responder, a_duplicate_is_acknowledged_at_once)
{
    arrive(empty_write(100));
    arrive(empty_write(101));
    expect_only(AETH_ACK | AETH_NO_CREDITS, 101);
    struct pkt again = empty_write(100);
    again.ackreq = false;
    arrive(again);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 101);
}

/* An ACK that named the READ would tell some requesters that its response has come. */
Test(responder, an_ack_never_names_a_request_with_a_response)
{
    const struct pkt answered[] = {
        {.opcode = OP_READ_REQUEST, .reth = {FIX_VA, key, 600}},
        {.opcode = OP_FETCH_ADD, .atomic = {.va = FIX_VA, .rkey = key}},
        {.opcode = OP_ATOMIC_WRITE, .reth = {FIX_VA, key, 8}, .payload = (const uint8_t *)"12345678", .payload_len = 8},
    };
    uint32_t psn = 100;
    for (uint32_t i = 0; i < 3; i++) {
        struct pkt p = answered[i];
        uint32_t last = i == 0 ? psn + 3 : psn + 1;
        p.psn = psn + 1;
        arrive(empty_write(psn));
        arrive(p);
        cr_assert_eq(transmit(), last - psn, "the response acknowledges the WRITE");
        cr_expect_neq(sent(0).opcode, OP_ACK);
        arrive(empty_write(psn));
        expect_only(AETH_ACK | AETH_NO_CREDITS, psn);
        cr_expect_eq(sent(0).aeth.msn, 2 * i + 1);
        psn = last + 1;
    }
}

Test(responder, a_duplicate_at_the_psn_of_a_read_is_not_acknowledged)
{
    arrive(empty_write(100));
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 101, .reth = {FIX_VA, key, 8}});
    cr_assert_eq(transmit(), 1);
    arrive(empty_write(101));
    cr_expect_eq(transmit(), 0);
    arrive(empty_write(99)); /* older than the connection */
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
}

Test(responder, packets_received_before_err_are_acknowledged)
{
    arrive(empty_write(100));
    fix_bring(qp, QPS_ERR);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
    cr_expect_eq(transmit(), 0);
}

Test(responder, err_sends_no_response_and_no_ack_beyond_it)
{
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 8}};
    arrive(read);
    arrive(empty_write(101));
    fix_bring(qp, QPS_ERR);
    cr_expect_eq(transmit(), 0);
}

Test(responder, repeats_a_sequence_nak_if_the_newest_packet_comes_again)
{
    arrive(empty_write(102));
    expect_only(NAK_PSN_SEQUENCE, 100);
    arrive(empty_write(103));
    cr_expect_eq(transmit(), 0, "one NAK for each gap");
    arrive(empty_write(103)); /* the tail probe of a sender that the NAK did not reach */
    expect_only(NAK_PSN_SEQUENCE, 100);
}

Test(responder, a_failed_deferred_write_is_not_acknowledged_by_a_response)
{
    static const uint8_t data[4];
    struct pkt write = {
        .opcode = OP_WRITE_ONLY, .psn = 100, .reth = {FIX_VA, key, 4}, .payload = data, .payload_len = 4};
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 101, .reth = {FIX_VA, key, 8}};
    arrive(write);
    arrive(read);
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    expect_only(NAK_REMOTE_OPERATION, 100);
}

/* The NAK must not be older than what responses have acknowledged before. Otherwise the requester would drop it. */
Test(responder, the_nak_of_a_failed_deferred_write_follows_earlier_answers)
{
    static const uint8_t data[4];
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 600}}; /* 3 packets */
    struct pkt write = {
        .opcode = OP_WRITE_ONLY, .psn = 104, .reth = {FIX_VA, key, 4}, .payload = data, .payload_len = 4};
    arrive(read);
    arrive(atomic_add(103, 1));
    cr_assert_eq(transmit(), 4);
    arrive(write);
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    expect_only(NAK_REMOTE_OPERATION, 104);
}

Test(responder, a_memory_fault_of_a_reset_qp_is_ignored)
{
    struct qp *other = fix_qp(&fix);
    engine_mem_fault(fix.e, qp_number(other), fix.now);
    cr_expect_eq(qp_state(other), QPS_RESET);
    fix_bring(qp, QPS_ERR);
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    engine_mem_fault(fix.e, 0xabcdef, fix.now);
    cr_expect_eq(transmit(), 0);
}

Test(responder, drops_packets_of_other_services_and_partitions)
{
    struct pkt p = empty_write(100);
    struct rx_meta meta = {.src_gid = {[15] = 2}};
    p.dest_qpn = qp_number(qp);
    p.pkey = 0x1234;
    engine_rx(fix.e, &p, &meta, fix.now);
    p.pkey = PKEY_DEFAULT;
    p.opcode = OP_SERVICE_UC | OP_WRITE_ONLY;
    engine_rx(fix.e, &p, &meta, fix.now);
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_pkey, 1);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_opcode, 1);
}

/* --- plausible PSNs ---------------------------------------------------------------------------- */

#define PSN_WINDOW 65536u

Test(responder, a_psn_that_no_window_can_hold_has_no_effect)
{
    const uint32_t far[] = {PSN_WINDOW + 1, PSN_WINDOW * 2, 1u << 22, 1u << 23};
    for (unsigned i = 0; i < 4; i++) {
        arrive(empty_write(100 + far[i]));
        arrive(empty_write(100 - far[i]));
    }
    cr_expect_eq(transmit(), 0, "no NAK, and no ACK for a duplicate");
    cr_expect_eq(engine_counters(fix.e)->rx_bad_psn, 8);
    cr_expect_eq(engine_counters(fix.e)->out_of_seq_request, 0);
    cr_expect_eq(engine_counters(fix.e)->max_rcvd_window, 0);
    arrive(empty_write(100 - PSN_WINDOW));
    expect_only(AETH_ACK | AETH_NO_CREDITS, 99);
    arrive(empty_write(100 + PSN_WINDOW));
    expect_only(NAK_PSN_SEQUENCE, 100);
    arrive(empty_write(100));
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_psn, 8);
}

/* The QP has max_dest_rd_atomic 2. A lost READ leaves a gap of as many PSNs as its response has packets. */
Test(responder, the_window_of_psns_grows_with_the_peers_reads)
{
    const uint32_t packets = FIX_MEM / 256;
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, FIX_MEM}});
    cr_assert_eq(transmit(), packets);
    arrive(empty_write(100 + packets + PSN_WINDOW + 2 * packets + 1));
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_psn, 1);
    arrive(empty_write(100 + packets + PSN_WINDOW + 2 * packets));
    expect_only(NAK_PSN_SEQUENCE, 100 + packets);
}

/* --- READs and atomics ------------------------------------------------------------------------- */

Test(responder, own_requests_are_sent_between_responses)
{
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, FIX_MEM}};
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    fix.cfg.burst_bytes = 4096;
    memset(fix.mem, 0, engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM, .access = ACCESS_REMOTE_READ};
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    read.reth.rkey = key;
    arrive(read);
    post_send();
    cr_assert_gt(transmit(), 17u);
    cr_expect_eq(sent(0).opcode, OP_READ_RESP_FIRST);
    cr_expect_eq(sent(16).opcode, OP_SEND_ONLY, "after a burst of 4096 bytes");
}

Test(responder, a_repeated_atomic_gets_its_own_result_a_round_of_psns_later)
{
    struct pkt answer;
    uint8_t out[16384];
    struct pkt p = atomic_add(100, 5);
    p.dest_qpn = qp_number(qp);
    cr_assert_eq(fix_exchange(&fix, &p, out, &answer), 0);
    uint64_t first = answer.atomic_orig;
    for (uint32_t i = 1; i <= PSN_MASK; i++) {
        arrive(empty_write(100 + i));
        if (i % 4096 == 0)
            transmit();
    }
    transmit();
    p = atomic_add(100, 7);
    p.dest_qpn = qp_number(qp);
    for (int i = 0; i < 2; i++) { /* the second time it is a duplicate */
        cr_assert_eq(fix_exchange(&fix, &p, out, &answer), 0);
        cr_expect_eq(answer.atomic_orig, first + 5, "%llu", (unsigned long long)answer.atomic_orig);
    }
    cr_expect_eq(fix.atomics, 2);
}

Test(responder, a_read_may_be_repeated_in_part_but_not_changed)
{
    struct pkt read = {.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 1000}};
    arrive(read);
    cr_assert_eq(transmit(), 4);
    struct pkt part = {.opcode = OP_READ_REQUEST, .psn = 102, .reth = {FIX_VA + 512, key, 488}};
    struct pkt wrong[] = {part, part, part, part, part};
    wrong[0].reth.va++;
    wrong[1].reth.rkey++;
    wrong[2].reth.length++;
    wrong[3].reth.length = UINT32_MAX;
    wrong[4].psn = 99; /* no READ has this PSN */
    for (int i = 0; i < 5; i++) {
        arrive(wrong[i]);
        cr_expect_eq(transmit(), 0, "%d", i);
    }
    arrive(part);
    cr_assert_eq(transmit(), 2);
    cr_expect_eq(sent(0).opcode, OP_READ_RESP_FIRST);
    cr_expect_eq(sent(0).psn, 102);
    cr_expect_eq(sent(1).opcode, OP_READ_RESP_LAST);
}

/* The READ takes PSNs 100 … 119. */
static struct pkt part_of_read(uint32_t psn, uint32_t n)
{
    return (struct pkt){.opcode = OP_READ_REQUEST, .psn = psn, .reth = {FIX_VA + (psn - 100) * 256, key, n * 256}};
}

Test(responder, several_parts_of_a_read_are_repeated_one_after_the_other)
{
    static const uint32_t psn[] = {103, 107, 108, 111};
    arrive(part_of_read(100, 20));
    cr_assert_eq(transmit(), 20);
    arrive(part_of_read(103, 1));
    arrive(part_of_read(107, 2));
    arrive(part_of_read(108, 1)); /* it waits already */
    arrive(part_of_read(111, 1));
    cr_assert_eq(transmit(), 4);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(sent(i).psn, psn[i]);
    cr_expect_eq(sent(0).opcode, OP_READ_RESP_ONLY);
    cr_expect_eq(sent(1).opcode, OP_READ_RESP_FIRST);
    cr_expect_eq(sent(2).opcode, OP_READ_RESP_LAST);
    cr_expect_eq(transmit(), 0);
}

Test(responder, more_parts_than_places_are_repeated_with_what_is_between)
{
    arrive(part_of_read(100, 20));
    cr_assert_eq(transmit(), 20);
    for (uint32_t psn = 101; psn < 120; psn += 2)
        arrive(part_of_read(psn, 1)); /* ten; the first one has a place of its own, seven more follow */
    cr_assert_eq(transmit(), 12);
    cr_expect(sent(6).psn == 113 && sent(7).psn == 115 && sent(11).psn == 119);
}

Test(responder, a_part_does_not_stop_what_is_still_to_be_sent)
{
    arrive(part_of_read(100, 20));
    cr_assert_eq(transmit_up_to(8 * 300), 8);
    arrive(part_of_read(102, 1));
    cr_assert_eq(transmit(), 13);
    cr_expect(sent(0).psn == 108 && sent(11).psn == 119 && sent(12).psn == 102);
}

Test(responder, the_remote_address_of_an_atomic_must_be_aligned)
{
    struct mr_init shifted = {.pd = FIX_PD,
                              .space = 1,
                              .va = FIX_VA,
                              .iova = FIX_VA + 4,
                              .length = 64,
                              .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_ATOMIC};
    struct pkt p = atomic_add(100, 1);
    cr_assert_eq(mr_register(fix.e, &shifted, &p.atomic.rkey), 0);
    p.atomic.va = FIX_VA + 4;
    arrive(p);
    expect_only(NAK_INVALID_REQUEST, 100);
    cr_expect_eq(fix.atomics, 0);
}

/* The peer may have two such requests outstanding, so it has the response to the oldest one. */
Test(responder, a_new_request_takes_the_place_of_a_repeated_response)
{
    for (uint32_t i = 0; i < 16; i++) { /* the places of a QP with a max_dest_rd_atomic of 2 */
        arrive(atomic_add(100 + i, 1));
        cr_assert_eq(transmit(), 1);
    }
    arrive(atomic_add(100, 1)); /* a duplicate of the oldest one */
    arrive(atomic_add(116, 1));
    cr_expect_eq(fix.atomics, 17);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 116);
    cr_expect_eq(sent(0).opcode, OP_ATOMIC_ACK);
}

/* --- the owner's side -------------------------------------------------------------------------- */

Test(responder, answers_wait_for_room_in_the_batch)
{
    const struct pkt requests[] = {
        {.opcode = OP_WRITE_ONLY, .ackreq = true},
        {.opcode = OP_READ_REQUEST, .reth = {FIX_VA, key, 8}},
        {.opcode = OP_FETCH_ADD, .atomic = {.va = FIX_VA, .rkey = key}},
        {.opcode = OP_SEND_ONLY}, /* no receive request is posted: an RNR NAK */
    };
    for (uint32_t i = 0; i < 4; i++) {
        struct pkt p = requests[i];
        p.psn = 100 + i;
        arrive(p);
        cr_assert_eq(transmit_up_to(10), 0, "%u", i);
        cr_assert_eq(transmit(), 1, "%u", i);
        cr_expect_eq(sent(0).psn, 100 + i);
    }
}

/* As with a NIC, which has the pages pinned. */
Test(responder, unmapped_memory_is_no_error)
{
    struct qp_info info;
    fix.unmapped = true;
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 100, .reth = {FIX_VA, key, 8}});
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_READ_RESP_ONLY);
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 101, .reth = {FIX_VA, key, 1000}});
    cr_assert_eq(transmit(), 4);
    arrive(atomic_add(105, 1));
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_ATOMIC_ACK);
    cr_expect_eq(sent(0).atomic_orig, 0);
    engine_mem_unmapped(fix.e, qp_number(qp), 2);
    engine_mem_unmapped(fix.e, 0xabcdef, 1);
    qp_info(qp, &info);
    cr_expect_eq(info.counters.mem_unmapped, 5);
    cr_expect_eq(engine_counters(fix.e)->mem_unmapped, 5);
    cr_expect_eq(qp_state(qp), QPS_RTS);
}

Test(responder, memory_that_fails_is_an_operational_error)
{
    fix.gone = true;
    arrive(atomic_add(100, 1));
    expect_only(NAK_REMOTE_OPERATION, 100);
    struct event ev;
    cr_assert(engine_pop_event(fix.e, &ev));
    cr_expect_eq(ev.type, EVENT_QP_FATAL);
}

Test(responder, a_memory_fault_during_a_receive_completes_it_with_an_error)
{
    static const uint8_t data[256];
    struct sge sge = {FIX_VA, 1000, key};
    struct recv_wr wr = {.wr_id = 5, .num_sge = 1};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
    arrive((struct pkt){.opcode = OP_SEND_FIRST, .psn = 100, .payload = data, .payload_len = 256});
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    expect_only(NAK_REMOTE_OPERATION, 100);
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    cr_expect_eq(c->status, WC_LOC_PROT_ERR);
    cr_expect_eq(c->wr_id, 5);
}

/* engine_withhold_recv: the request is there, but the responder does not see it. */
Test(responder, withheld_receive_requests_are_not_there)
{
    static const uint8_t data[8];
    struct sge sge = {FIX_VA, 1000, key};
    struct recv_wr wr = {.wr_id = 5, .num_sge = 1};
    struct pkt send = {.opcode = OP_SEND_ONLY, .psn = 100, .ackreq = true, .payload = data, .payload_len = 8};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
    engine_withhold_recv(fix.e, true);
    arrive(send);
    engine_withhold_recv(fix.e, false);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).aeth.syndrome & AETH_KIND_MASK, AETH_RNR, "%#x", sent(0).aeth.syndrome);
    cr_expect_null(engine_peek_completion(fix.e));
    arrive(send);
    expect_only(AETH_ACK | AETH_NO_CREDITS, 100);
    cr_assert_not_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_peek_completion(fix.e)->wr_id, 5);
}

Test(responder, destroying_a_qp_keeps_the_events_of_other_qps)
{
    struct qp *other = fix_qp(&fix);
    struct event ev;
    uint32_t qpn = qp_number(qp);
    arrive((struct pkt){
        .opcode = OP_WRITE_ONLY, .psn = 100, .reth = {FIX_VA, key ^ 1, 8}, .payload = buf, .payload_len = 8});
    qp_destroy(other);
    cr_assert(engine_pop_event(fix.e, &ev));
    cr_expect_eq(ev.qpn, qpn);
    cr_expect_eq(ev.type, EVENT_QP_ACCESS_ERR);
}

/* --- lengths ----------------------------------------------------------------------------------- */

static const uint32_t too_long = ENGINE_MAX_MSG + 1;

static void expect_refused_length(uint8_t opcode)
{
    static const uint8_t data[256];
    struct mr_init huge = {.pd = FIX_PD,
                           .space = 1,
                           .va = FIX_VA,
                           .iova = FIX_VA,
                           .length = 1ull << 32,
                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ};
    struct pkt p = {.opcode = opcode, .psn = 100, .reth = {FIX_VA, 0, too_long}};
    cr_assert_eq(mr_register(fix.e, &huge, &p.reth.rkey), 0);
    if (opcode == OP_WRITE_FIRST) {
        p.payload = data;
        p.payload_len = sizeof data;
    }
    arrive(p);
    expect_only(NAK_INVALID_REQUEST, 100);
    cr_expect_eq(fix.writes, 0);
}

Test(responder, no_write_is_longer_than_2_gib)
{
    expect_refused_length(OP_WRITE_FIRST);
}

Test(responder, no_read_is_longer_than_2_gib)
{
    expect_refused_length(OP_READ_REQUEST);
}

/* Each is refused with an invalid-request NAK, and nothing is written. */
Test(responder, packets_out_of_sequence_within_a_message_are_refused)
{
    static const uint8_t data[512];
    const struct pkt cases[] = {
        {.opcode = OP_WRITE_MIDDLE, .payload = data, .payload_len = 256}, /* no message has begun */
        {.opcode = OP_SEND_LAST, .payload = data, .payload_len = 8},
        {.opcode = OP_WRITE_FIRST,
         .reth = {FIX_VA, key, 600},
         .payload = data,
         .payload_len = 512}, /* not the path MTU */
        {.opcode = OP_WRITE_FIRST,
         .reth = {FIX_VA, key, 256},
         .payload = data,
         .payload_len = 256}, /* no bytes are left for a last packet */
        {.opcode = OP_WRITE_ONLY, .reth = {FIX_VA, key, 9}, .payload = data, .payload_len = 8},
        {.opcode = OP_WRITE_ONLY, .reth = {FIX_VA, key, 7}, .payload = data, .payload_len = 8},
        {.opcode = OP_WRITE_ONLY, .reth = {FIX_VA, key, 512}, .payload = data, .payload_len = 512},
        {.opcode = OP_FLUSH},
        {.opcode = OP_ATOMIC_WRITE, .reth = {FIX_VA + 1, key, 8}, .payload = data, .payload_len = 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pkt p = cases[i];
        p.psn = 100;
        cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
        fix_bring(qp, QPS_RTS);
        arrive(p);
        cr_assert_eq(transmit(), 1, "case %zu", i);
        cr_expect_eq(sent(0).aeth.syndrome, NAK_INVALID_REQUEST, "case %zu: %#x", i, sent(0).aeth.syndrome);
        cr_expect_eq(qp_state(qp), QPS_ERR);
    }
    cr_expect_eq(fix.writes, 0);
}

/* 9.7.4.1.5: a MIDDLE packet is as long as the path MTU. A LAST packet has at least one byte, and is not longer than
 * the path MTU. */
Test(responder, the_lengths_of_a_messages_packets_follow_from_the_mtu)
{
    static const uint8_t data[512];
    static const struct {
        uint8_t opcode;
        uint32_t len, reth; /* len: of the second packet; reth: length in the RETH, 0 for a SEND */
        bool right;
    } cases[] = {
        {OP_SEND_LAST, 0, 0, false},        {OP_SEND_LAST, 1, 0, true},      {OP_SEND_LAST, 256, 0, true},
        {OP_SEND_LAST, 257, 0, false},      {OP_SEND_MIDDLE, 255, 0, false}, {OP_SEND_MIDDLE, 256, 0, true},
        {OP_SEND_MIDDLE, 257, 0, false},    {OP_WRITE_LAST, 256, 512, true}, {OP_WRITE_LAST, 300, 556, false},
        {OP_WRITE_MIDDLE, 100, 600, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sge sge = {FIX_VA, 1024, key};
        struct recv_wr rr = {.wr_id = 1, .num_sge = 1};
        cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
        fix_bring(qp, QPS_RTS);
        cr_assert_eq(qp_post_recv(qp, &rr, &sge), 0);
        arrive((struct pkt){.opcode = cases[i].reth ? OP_WRITE_FIRST : OP_SEND_FIRST,
                            .psn = 100,
                            .reth = {FIX_VA, key, cases[i].reth},
                            .payload = data,
                            .payload_len = 256});
        arrive((struct pkt){
            .opcode = cases[i].opcode, .psn = 101, .ackreq = true, .payload = data, .payload_len = cases[i].len});
        uint8_t syndrome = cases[i].right ? AETH_ACK | AETH_NO_CREDITS : NAK_INVALID_REQUEST;
        cr_assert_eq(transmit(), 1, "case %zu", i);
        cr_expect_eq(sent(0).aeth.syndrome, syndrome, "case %zu: %#x", i, sent(0).aeth.syndrome);
        while (engine_peek_completion(fix.e))
            engine_drop_completion(fix.e);
    }
}

Test(responder, a_message_must_not_begin_within_another)
{
    static const uint8_t data[256];
    struct pkt first = {
        .opcode = OP_WRITE_FIRST, .psn = 100, .reth = {FIX_VA, key, 600}, .payload = data, .payload_len = 256};
    arrive(first);
    arrive(empty_write(101));
    expect_only(NAK_INVALID_REQUEST, 101);
}
