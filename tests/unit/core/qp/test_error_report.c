// SPDX-License-Identifier: BSD-2-Clause
/* The engine's reports for the log, and the first cause of an error. */
#include "tests/unit/core/core_fixture.h"

static struct fixture fix;
static struct qp *qp;

static void setup(void)
{
    fix_init(&fix);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    fix.now = 5000000000u;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(report, .init = setup, .fini = teardown);

static struct report next(enum report_kind kind)
{
    struct report r;
    cr_assert(engine_pop_report(fix.e, &r), "no report");
    cr_assert_eq(r.kind, kind, "kind %u, not %u", r.kind, kind);
    return r;
}

static void nothing_more(void)
{
    struct report r;
    cr_assert_not(engine_pop_report(fix.e, &r), "one more report, of kind %u", r.kind);
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

static void post_write(uint32_t rkey)
{
    struct send_wr wr = {.opcode = WR_RDMA_WRITE,
                         .flags = SEND_SIGNALED | SEND_INLINE,
                         .inline_len = 4,
                         .remote_addr = 0xabc000,
                         .rkey = rkey};
    uint8_t buf[65536];
    struct pkt p[8];
    cr_assert_eq(qp_post_send(qp, &wr, NULL, "data"), 0);
    cr_assert(fix_tx(&fix, buf, p, 8) >= 1);
}

static void rx_nak(uint8_t syndrome, uint32_t psn)
{
    struct pkt p = {.opcode = OP_ACK, .dest_qpn = qp_number(qp), .psn = psn, .aeth = {.syndrome = syndrome}};
    fix_rx(&fix, &p);
}

Test(report, there_is_no_report_without_an_error)
{
    struct pkt write = {.opcode = OP_WRITE_ONLY, .dest_qpn = qp_number(qp), .psn = 100, .ackreq = true};
    fix_rx(&fix, &write);
    post_write(7);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 200);
    nothing_more();
    cr_expect_eq(info().failure.kind, REPORT_NONE);
}

Test(report, a_refused_write_names_psn_key_and_address)
{
    struct pkt write = {.opcode = OP_WRITE_ONLY,
                        .dest_qpn = qp_number(qp),
                        .psn = 100,
                        .ackreq = true,
                        .reth = {.va = 0x1234500, .rkey = 0x77700, .length = 4},
                        .payload = (const uint8_t *)"data",
                        .payload_len = 4};
    fix_rx(&fix, &write);
    struct report r = next(REPORT_NAK_SENT);
    cr_expect(r.syndrome == NAK_REMOTE_ACCESS && r.psn == 100 && r.has_key && r.key == 0x77700 && r.va == 0x1234500);
    cr_expect(r.qpn == qp_number(qp) && r.peer_qpn == 1234 && r.peer[15] == 2);
    cr_expect(r.has_packet && r.opcode == OP_WRITE_ONLY);
    r = next(REPORT_ERROR);
    cr_expect(r.cause == ERROR_REFUSED && r.syndrome == NAK_REMOTE_ACCESS && r.key == 0x77700 && r.psn == 100);
    nothing_more();
    struct report first = info().failure;
    cr_expect(first.kind == REPORT_ERROR && first.cause == ERROR_REFUSED && first.va == 0x1234500);
}

Test(report, a_nak_received_names_the_request_that_failed)
{
    post_write(0x4321);
    rx_nak(NAK_REMOTE_ACCESS, 200);
    struct report r = next(REPORT_NAK_RCVD);
    cr_expect(r.syndrome == NAK_REMOTE_ACCESS && r.psn == 200);
    r = next(REPORT_ERROR);
    cr_expect(r.cause == ERROR_PEER_NAK && r.status == WC_REM_ACCESS_ERR && r.syndrome == NAK_REMOTE_ACCESS);
    cr_expect(r.psn == 200 && r.has_key && r.key == 0x4321 && r.va == 0xabc000);
    nothing_more();
}

Test(report, the_first_cause_stays)
{
    post_write(0x4321);
    rx_nak(NAK_REMOTE_OPERATION, 200);
    cr_expect_eq(info().failure.cause, ERROR_PEER_NAK);
    fix_modify(qp, QPS_ERR);
    cr_expect_eq(info().failure.cause, ERROR_PEER_NAK, "what follows is no cause");
    cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
    cr_expect_eq(info().failure.kind, REPORT_NONE, "RESET forgets");
    fix_bring(qp, QPS_ERR);
    cr_expect_eq(info().failure.cause, ERROR_PROGRAM);
}

Test(report, timeouts_count_down_to_the_error)
{
    post_write(1);
    for (unsigned left = 5; left-- > 0;) {
        struct report r = {0};
        while (r.kind != REPORT_TIMEOUT) {
            fix.now = engine_deadline(fix.e);
            engine_expire(fix.e, fix.now);
            uint8_t buf[65536];
            struct pkt p[8];
            fix_tx(&fix, buf, p, 8);
            if (!engine_pop_report(fix.e, &r))
                r.kind = REPORT_NONE;
        }
        cr_expect(r.retries_left == left && r.psn == 200, "%u, not %u", r.retries_left, left);
    }
    struct report r = {0};
    while (!engine_pop_report(fix.e, &r)) {
        fix.now = engine_deadline(fix.e);
        engine_expire(fix.e, fix.now);
    }
    cr_expect(r.kind == REPORT_ERROR && r.cause == ERROR_RETRY && r.status == WC_RETRY_EXC_ERR);
}

Test(report, rnr_and_sequence_naks)
{
    struct pkt send = {.opcode = OP_SEND_ONLY, .dest_qpn = qp_number(qp), .psn = 100, .ackreq = true};
    fix_rx(&fix, &send);
    struct report r = next(REPORT_NAK_SENT);
    cr_expect((r.syndrome & AETH_KIND_MASK) == AETH_RNR && r.psn == 100);
    nothing_more();
    post_write(1);
    rx_nak(AETH_RNR | 12, 200);
    next(REPORT_NAK_RCVD);
    struct qp_info i = info();
    cr_expect(i.waiting_rnr && i.rnr_until == fix.now + rnr_timer_ns(12));
    rx_nak(NAK_PSN_SEQUENCE, 200);
    r = next(REPORT_NAK_RCVD);
    cr_expect_eq(r.syndrome, NAK_PSN_SEQUENCE);
}

Test(report, drops_have_their_reasons)
{
    struct pkt p = {.opcode = OP_SEND_ONLY, .dest_qpn = 0x9999, .psn = 5};
    fix_rx(&fix, &p);
    struct report r = next(REPORT_DROP);
    cr_expect(r.cause == DROP_UNKNOWN_QP && r.qpn == 0x9999 && r.psn == 5 && r.peer[15] == 2);
    p = (struct pkt){.opcode = OP_SERVICE_UC | OP_SEND_ONLY, .dest_qpn = qp_number(qp)};
    fix_rx(&fix, &p);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_OPCODE);
    struct rx_meta stranger = {.src_gid = {[15] = 3}, .dst_gid = {[15] = 1}};
    p = (struct pkt){.opcode = OP_SEND_ONLY, .dest_qpn = qp_number(qp), .pkey = PKEY_DEFAULT, .psn = 100};
    engine_rx(fix.e, &p, &stranger, fix.now);
    r = next(REPORT_DROP);
    cr_expect(r.cause == DROP_SOURCE && r.peer[15] == 3);
    struct rx_meta other_address = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 9}};
    engine_rx(fix.e, &p, &other_address, fix.now);
    r = next(REPORT_DROP);
    cr_expect(r.cause == DROP_DESTINATION && r.peer[15] == 2);
    struct rx_meta other_qp = {.src_gid = {[15] = 2}, .dst_gid = {[15] = 1}, .src_qpn = 0x4711};
    engine_rx(fix.e, &p, &other_qp, fix.now);
    r = next(REPORT_DROP);
    cr_expect(r.cause == DROP_SOURCE_QP && r.peer_qpn == 0x4711);
    p.pkey = 0x1111;
    engine_rx(fix.e, &p, &stranger, fix.now);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_PKEY);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 250);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_RESPONSE);
    fix_modify(qp, QPS_ERR);
    next(REPORT_ERROR);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 200);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_STATE);
    nothing_more();
}

Test(report, reports_that_are_not_fetched_are_counted)
{
    for (unsigned i = 0; i < REPORT_SLOTS + 5; i++) {
        struct pkt p = {.opcode = OP_SEND_ONLY, .dest_qpn = 0x9999, .psn = i};
        fix_rx(&fix, &p);
    }
    cr_expect_eq(engine_reports_lost(fix.e), 5);
    for (unsigned i = 0; i < REPORT_SLOTS; i++)
        cr_expect_eq(next(REPORT_DROP).psn, i);
    nothing_more();
}

/* --- what a QP waits for ----------------------------------------------------------------------- */

Test(report, a_full_window_is_reported)
{
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .flags = SEND_INLINE, .inline_len = 4};
    uint8_t buf[65536];
    struct pkt p[8];
    fix_fini(&fix);
    fix_init(&fix);
    free(fix.mem);
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    fix.cfg.window_pkts = 2;
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(qp_post_send(qp, &wr, NULL, "data"), 0);
    fix_tx(&fix, buf, p, 8);
    cr_expect_not(info().waiting_window, "there is nothing more to send");
    cr_assert_eq(qp_post_send(qp, &wr, NULL, "data"), 0);
    fix_tx(&fix, buf, p, 8);
    cr_expect(info().waiting_window);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 201);
    cr_expect_not(info().waiting_window);
}

Test(report, sqd_reports_outstanding_requests)
{
    post_write(1);
    cr_assert_eq(fix_modify(qp, QPS_SQD), 0);
    cr_expect(info().waiting_drain);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 200);
    cr_expect_not(info().waiting_drain);
}

/* --- the causes that are left: one of each that can be ----------------------------------------- */

static uint32_t region(void)
{
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    uint32_t key;
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    return key;
}

static void rx_datagram(struct qp *to, uint32_t qkey, uint32_t len)
{
    static const uint8_t data[256];
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .dest_qpn = qp_number(to),
                    .psn = 77,
                    .deth = {.qkey = qkey, .src_qpn = 0xabc},
                    .payload = data,
                    .payload_len = len};
    fix_rx(&fix, &p);
}

static void expect_drop(enum drop_cause cause, uint32_t peer_qpn)
{
    struct report r = next(REPORT_DROP);
    cr_expect_eq(r.cause, cause, "%u, not %u", r.cause, cause);
    cr_expect(r.psn == 77 && r.peer_qpn == peer_qpn && r.has_packet && r.peer[15] == 2);
}

Test(report, datagrams_are_dropped_for_reasons)
{
    struct qp *ud = fix_qp_of(&fix, QPT_UD);
    struct sge sge = {FIX_VA, 60, region()};
    struct recv_wr wr = {.num_sge = 1};
    fix_bring(ud, QPS_RTS);
    rx_datagram(ud, 0x999, 16);
    expect_drop(DROP_QKEY, 0xabc);
    rx_datagram(ud, 0x1234, 16);
    expect_drop(DROP_NO_RECV, 0xabc);
    cr_assert_eq(qp_post_recv(ud, &wr, &sge), 0);
    rx_datagram(ud, 0x1234, 256); /* longer than the receive buffer */
    expect_drop(DROP_REFUSED, 0xabc);
    nothing_more();
}

Test(report, unreliable_messages_are_dropped_for_reasons)
{
    struct qp *uc = fix_qp_of(&fix, QPT_UC);
    fix_bring(uc, QPS_RTS);
    struct pkt p = {.opcode = OP_SERVICE_UC | OP_SEND_ONLY, .dest_qpn = qp_number(uc), .psn = 77};
    fix_rx(&fix, &p);
    expect_drop(DROP_NO_RECV, 1234);
    p = (struct pkt){.opcode = OP_SERVICE_UC | OP_WRITE_ONLY,
                     .dest_qpn = qp_number(uc),
                     .psn = 77,
                     .reth = {.va = 0x99, .rkey = 0x1100, .length = 4},
                     .payload = (const uint8_t *)"data",
                     .payload_len = 4};
    fix_rx(&fix, &p);
    struct report r = next(REPORT_DROP);
    cr_expect(r.cause == DROP_REFUSED && r.has_key && r.key == 0x1100 && r.va == 0x99);
    nothing_more();
}

static struct report failure_after(enum report_kind before)
{
    if (before != REPORT_NONE)
        next(before);
    struct report r = next(REPORT_ERROR);
    cr_expect_eq(info().failure.cause, r.cause, "the queue pair keeps it");
    return r;
}

Test(report, rnr_naks_use_up_their_retries)
{
    post_write(1);
    for (unsigned i = 0; i < 6; i++) {
        uint8_t buf[65536];
        struct pkt p[8];
        rx_nak(AETH_RNR | 1, 200);
        next(REPORT_NAK_RCVD);
        fix.now += 1000000000u;
        engine_expire(fix.e, fix.now);
        fix_tx(&fix, buf, p, 8);
    }
    rx_nak(AETH_RNR | 1, 200);
    struct report r = failure_after(REPORT_NAK_RCVD);
    cr_expect(r.cause == ERROR_RNR_RETRY && r.status == WC_RNR_RETRY_EXC_ERR && r.psn == 200);
    nothing_more();
}

Test(report, a_local_request_with_a_bad_key)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1};
    struct sge sge = {0x5550000, 8, 0x6600};
    uint8_t buf[65536];
    struct pkt p[8];
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
    fix_tx(&fix, buf, p, 8);
    struct report r = failure_after(REPORT_NONE);
    cr_expect(r.cause == ERROR_LOCAL && r.status == WC_LOC_PROT_ERR && r.has_key && r.key == 0x6600 &&
              r.va == 0x5550000);
    nothing_more();
}

Test(report, a_response_that_does_not_fit)
{
    struct send_wr wr = {
        .opcode = WR_RDMA_READ, .flags = SEND_SIGNALED, .num_sge = 1, .remote_addr = 0xabc000, .rkey = 0x4321};
    struct sge sge = {FIX_VA, 16, region()};
    uint8_t buf[65536];
    struct pkt p[8];
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 8), 1);
    struct pkt answer = {.opcode = OP_READ_RESP_ONLY,
                         .dest_qpn = qp_number(qp),
                         .psn = 200,
                         .aeth = {.syndrome = AETH_ACK | AETH_NO_CREDITS},
                         .payload = (const uint8_t *)"12345678",
                         .payload_len = 8};
    fix_rx(&fix, &answer);
    struct report r = failure_after(REPORT_DROP);
    cr_expect(r.cause == ERROR_RESPONSE && r.status == WC_BAD_RESP_ERR && r.psn == 200);
    nothing_more();
}

Test(report, a_receive_request_that_is_too_short)
{
    static const uint8_t data[16];
    struct sge sge = {FIX_VA, 8, region()};
    struct recv_wr wr = {.num_sge = 1};
    struct pkt p = {.opcode = OP_SEND_ONLY,
                    .dest_qpn = qp_number(qp),
                    .psn = 100,
                    .ackreq = true,
                    .payload = data,
                    .payload_len = sizeof data};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
    fix_rx(&fix, &p);
    struct report r = failure_after(REPORT_NONE);
    next(REPORT_NAK_SENT);
    cr_expect(r.cause == ERROR_RECV && r.status == WC_LOC_LEN_ERR && r.psn == 100);
    nothing_more();
}

Test(report, unmapped_memory)
{
    uint32_t key = region();
    struct pkt p = {.opcode = OP_WRITE_ONLY,
                    .dest_qpn = qp_number(qp),
                    .psn = 100,
                    .reth = {.va = FIX_VA, .rkey = key, .length = 4},
                    .payload = (const uint8_t *)"data",
                    .payload_len = 4};
    fix_rx(&fix, &p);
    engine_mem_fault(fix.e, qp_number(qp), fix.now); /* the owner's deferred write failed */
    struct report r = {0};
    while (r.kind != REPORT_ERROR)
        cr_assert(engine_pop_report(fix.e, &r), "nothing of it is told");
    cr_expect_eq(r.cause, ERROR_MEMORY);
    cr_expect_eq(info().failure.cause, ERROR_MEMORY);
}
