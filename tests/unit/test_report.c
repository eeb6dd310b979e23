// SPDX-License-Identifier: BSD-2-Clause
/* What the engine reports for the log, and the first cause of errors. */
#include "core_fixture.h"

static struct fixture fix;
static struct qp *qp;

static void setup(void)
{
    fix_init(&fix);
    qp = fix_qp(&fix);
    fix_bring(&fix, qp, QPS_RTS);
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
    cr_assert_eq(qp_post_send(qp, &wr, NULL, "data", fix.now), 0);
    cr_assert(fix_tx(&fix, buf, p, 8) >= 1);
}

static void rx_nak(uint8_t syndrome, uint32_t psn)
{
    struct pkt p = {.opcode = OP_ACK, .dest_qpn = qp_number(qp), .psn = psn, .aeth = {.syndrome = syndrome}};
    fix_rx(&fix, &p);
}

Test(report, nothing_is_said_while_nothing_is_wrong)
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
    fix_modify(&fix, qp, QPS_ERR);
    cr_expect_eq(info().failure.cause, ERROR_PEER_NAK, "what follows is no cause");
    cr_assert_eq(fix_modify(&fix, qp, QPS_RESET), 0);
    cr_expect_eq(info().failure.kind, REPORT_NONE, "RESET forgets");
    fix_bring(&fix, qp, QPS_ERR);
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
    p.pkey = 0x1111;
    engine_rx(fix.e, &p, &stranger, fix.now);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_PKEY);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 250);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_RESPONSE);
    fix_modify(&fix, qp, QPS_ERR);
    next(REPORT_ERROR);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 200);
    cr_expect_eq(next(REPORT_DROP).cause, DROP_STATE);
    nothing_more();
}

Test(report, what_nobody_takes_is_counted_and_does_no_harm)
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

/* --- what a QP waits for ------------------------------------------------------------------------------------------------ */

Test(report, a_full_window_is_seen)
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
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix);
    qp = fix_qp(&fix);
    fix_bring(&fix, qp, QPS_RTS);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(qp_post_send(qp, &wr, NULL, "data", fix.now), 0);
    fix_tx(&fix, buf, p, 8);
    cr_expect_not(info().waiting_window, "there is nothing more to send");
    cr_assert_eq(qp_post_send(qp, &wr, NULL, "data", fix.now), 0);
    fix_tx(&fix, buf, p, 8);
    cr_expect(info().waiting_window);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 201);
    cr_expect_not(info().waiting_window);
}

Test(report, sqd_waits_for_what_has_begun)
{
    post_write(1);
    cr_assert_eq(fix_modify(&fix, qp, QPS_SQD), 0);
    cr_expect(info().waiting_drain);
    rx_nak(AETH_ACK | AETH_NO_CREDITS, 200);
    cr_expect_not(info().waiting_drain);
}
