// SPDX-License-Identifier: BSD-2-Clause
/* The requester: the test answers it packet by packet. */
#include "tests/unit/core/one_qp.h"

static uint32_t key;

#define PEER_WINDOW (2u << 20)

/* Creates an engine whose memory is never checked, and a region of 2 GiB. */
static void begin(uint32_t window_pkts)
{
    static const struct mem_ops ops = {.read = no_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = 1u << 31, .access = ACCESS_LOCAL_WRITE};
    fix_init(&fix);
    fix.cfg.peer_window_bytes = PEER_WINDOW;
    fix.cfg.burst_bytes = 16384;
    fix.cfg.window_pkts = window_pkts;
    memset(fix.mem, 0, engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, MTU 256 */
}
static void setup(void)
{
    begin(4096);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(requester, .init = setup, .fini = teardown);

static void post(uint8_t opcode, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    struct send_wr wr = {.opcode = opcode, .flags = SEND_SIGNALED, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static uint8_t take_status(void)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    uint8_t status = c->status;
    engine_drop_completion(fix.e);
    return status;
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

/* 2^31 bytes in packets of 256 bytes are 2^23 packets: half of all PSNs. */
Test(requester, a_message_may_take_half_of_all_psns, .timeout = 120)
{
    const uint32_t packets = 1u << 23;
    post(WR_RDMA_WRITE, 1u << 31);
    post(WR_RDMA_WRITE, 10 * 256);
    uint32_t first = info().next_psn, at = 0;
    while (at < packets - 100) { /* all but the tail */
        for (uint32_t n; (n = transmit()) > 0;)
            at = (batch.pkt[batch.n - 1].psn - first) & PSN_MASK;
        if (at < packets - 100)
            ack(first + at);
    }
    /* Now all of it is sent, and the second message or a part of it. */
    ack(first + packets - 50);
    while (transmit() > 0)
        ;
    cr_assert_eq(info().next_psn, (first + packets + 10) & PSN_MASK);
    cr_expect_eq(info().inflight_bytes, (49 + 10) * (256 + 256), "%llu", (unsigned long long)info().inflight_bytes);
    ack(first + packets - 2);
    cr_expect_eq(info().inflight_bytes, (1 + 10) * (256 + 256));
    ack(first + packets + 9);
    cr_expect_eq(info().inflight_bytes, 0);
    cr_expect_eq(take_status(), WC_SUCCESS);
    cr_expect_eq(take_status(), WC_SUCCESS);
}

Test(requester, the_tail_probe_of_such_a_message_is_its_last_packet, .timeout = 120)
{
    const uint32_t packets = 1u << 23;
    post(WR_RDMA_WRITE, 1u << 31);
    uint32_t first = info().next_psn, at = 0;
    while (at < packets - 1) {
        for (uint32_t n; (n = transmit()) > 0;)
            at = (batch.pkt[batch.n - 1].psn - first) & PSN_MASK;
        if (at < packets - 1)
            ack(first + at);
    }
    ack(first + packets - 2);
    fix.now = 10000000;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_WRITE_LAST);
    cr_expect_eq(sent(0).psn, (first + packets - 1) & PSN_MASK);
}

Test(requester, naks_without_progress_do_not_stop_the_timeout)
{
    post(WR_RDMA_WRITE, 1000);
    const uint64_t timeout = 4096ull << 14;
    cr_assert_eq(transmit(), 4);
    for (uint64_t end = 7 * timeout; fix.now < end && qp_state(qp) == QPS_RTS; fix.now += 100000) {
        arrive((struct pkt){.opcode = OP_ACK, .psn = 200, .aeth = {.syndrome = NAK_PSN_SEQUENCE}});
        if (engine_deadline(fix.e) <= fix.now)
            engine_expire(fix.e, fix.now);
        transmit();
    }
    cr_assert_eq(qp_state(qp), QPS_ERR);
    cr_expect_eq(take_status(), WC_RETRY_EXC_ERR);
}

Test(requester, drops_answers_that_make_no_sense)
{
    post(WR_SEND, 100);
    cr_assert_eq(transmit(), 1);
    const struct pkt cases[] = {
        {.opcode = OP_ACK, .psn = 201, .aeth = {.syndrome = AETH_ACK}}, /* PSN 201 was not sent */
        {.opcode = OP_ACK, .psn = 201, .aeth = {.syndrome = NAK_PSN_SEQUENCE}},
        {.opcode = OP_ACK, .psn = 200 + 0x400000, .aeth = {.syndrome = NAK_PSN_SEQUENCE}},
        {.opcode = OP_ACK, .psn = 200 + 0x400000, .aeth = {.syndrome = NAK_REMOTE_ACCESS}},
        {.opcode = OP_ACK, .psn = 200 + 0x400000, .aeth = {.syndrome = AETH_RNR}},
        {.opcode = OP_ACK, .psn = 200, .aeth = {.syndrome = AETH_RESERVED}},
        {.opcode = OP_ACK, .psn = 200, .aeth = {.syndrome = 0x80}},
        {.opcode = OP_ACK, .psn = 200, .aeth = {.syndrome = NAK_INVALID_RD}},
        {.opcode = OP_READ_RESP_ONLY, .psn = 200},
        {.opcode = OP_ATOMIC_ACK, .psn = 200},
    };
    const size_t n = sizeof cases / sizeof cases[0];
    for (size_t i = 0; i < n; i++)
        arrive(cases[i]);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_response, n);
    cr_expect_null(engine_peek_completion(fix.e));
    ack(199);
    nak(NAK_PSN_SEQUENCE, 200 - 0x400000);
    cr_expect_eq(engine_counters(fix.e)->old_acks, 2);
    cr_expect_eq(transmit(), 0, "nothing is sent again");
    ack(200);
    cr_expect_eq(take_status(), WC_SUCCESS);
}

Test(requester, a_response_of_the_wrong_length_is_an_error)
{
    static const uint8_t data[8];
    post(WR_RDMA_READ, 16);
    cr_assert_eq(transmit(), 1);
    arrive((struct pkt){.opcode = OP_READ_RESP_ONLY, .psn = 200, .payload = data, .payload_len = 8});
    cr_expect_eq(take_status(), WC_BAD_RESP_ERR);
    cr_expect_eq(qp_state(qp), QPS_ERR);
}

Test(requester, a_response_whose_memory_fails_later_fails_its_read)
{
    static const uint8_t data[256];
    post(WR_RDMA_READ, 600);
    cr_assert_eq(transmit(), 1);
    arrive((struct pkt){.opcode = OP_READ_RESP_FIRST, .psn = 200, .payload = data, .payload_len = 256});
    engine_mem_fault(fix.e, qp_number(qp), fix.now);
    cr_expect_eq(transmit(), 0, "a NAK, although the peer sent nothing");
    cr_expect_eq(take_status(), WC_LOC_PROT_ERR);
}

Test(requester, a_read_without_credit_is_a_local_error)
{
    struct qp_attr a = {.state = QPS_SQD};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    cr_assert_eq(qp_modify(qp, &a, QPA_MAX_RD_ATOMIC, NULL), 0); /* 0 */
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post(WR_RDMA_READ, 16);
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(take_status(), WC_LOC_QP_OP_ERR);
}

/* Returns how many bytes the first request of a READ of 1 MiB asks for. The QP may have max_rd_atomic READs
 * outstanding. */
static uint32_t asks_for(uint8_t max_rd_atomic)
{
    struct qp_attr a = {.state = QPS_SQD, .max_rd_atomic = max_rd_atomic};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    cr_assert_eq(qp_modify(qp, &a, QPA_MAX_RD_ATOMIC, NULL), 0);
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post(WR_RDMA_READ, 1 << 20);
    cr_assert_gt(transmit(), 0);
    cr_assert_eq(sent(0).opcode, OP_READ_REQUEST);
    return sent(0).reth.length;
}

/* A READ may ask for 640 KiB, half of which is headers with packets of 256 bytes. */
Test(requester, reads_ask_for_a_large_range_at_once)
{
    static const uint8_t cases[] = {1, 4, ENGINE_MAX_RD_ATOMIC};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i > 0)
            fix_fini(&fix), setup();
        cr_expect_eq(asks_for(cases[i]), 320 << 10, "max_rd_atomic %u", cases[i]);
    }
}

/* Half of the window, so that two READs are outstanding at a time. */
Test(requester, reads_ask_for_half_of_the_window_of_packets)
{
    fix_fini(&fix);
    begin(100);
    cr_expect_eq(asks_for(4), 50 * 256);
}

/* A loss reduces a window of which at least half was in use. */
Test(requester, reads_ask_for_less_after_a_loss)
{
    const uint32_t packets = PEER_WINDOW / 512 - 100;
    post(WR_RDMA_WRITE, packets * 256);
    while (transmit() > 0)
        ;
    nak(NAK_PSN_SEQUENCE, 200);
    ack(200 + packets - 1);
    cr_assert_eq(take_status(), WC_SUCCESS);
    cr_expect_eq(asks_for(1), 64 << 10);
}

/* Another QP has sent packets to the same peer. Each takes 512 bytes of the peer's window. */
static struct qp *last_other;
static void others_send(uint32_t packets)
{
    struct qp *this = qp;
    qp = last_other = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    post(WR_RDMA_WRITE, packets * 256);
    uint32_t n = 0;
    while (n < packets)
        n += transmit();
    qp = this;
}

/* But a READ asks for at least 128 KiB, even if the window is full. */
Test(requester, reads_use_the_free_part_of_the_peer_window)
{
    const uint32_t room = (uint32_t)(fix.cfg.peer_window_bytes / 512);
    const struct {
        uint32_t packets;
        uint32_t bytes;
    } cases[] = {{room - 2048, 320 << 10}, {room - 512, 128 << 10}, {room - 10, 64 << 10}, {room, 64 << 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i > 0)
            fix_fini(&fix), setup();
        others_send(cases[i].packets);
        cr_expect_eq(asks_for(1), cases[i].bytes, "%u packets of others", cases[i].packets);
    }
}

/* A packet takes at most 512 bytes of the peer's window. But a QP sends no less than a quarter of a burst of 64
 * packets, unless it has no more to send. */
Test(requester, sends_use_the_free_part_of_the_peer_window)
{
    static const struct {
        uint32_t left, wanted, sent; /* packets; one more is in flight */
    } cases[] = {{24, 40, 23}, {16, 40, 0}, {16, 15, 15}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i > 0)
            fix_fini(&fix), setup();
        others_send(PEER_WINDOW / 512 - cases[i].left);
        post(WR_RDMA_WRITE, 256);
        cr_assert_eq(transmit(), 1);
        post(WR_RDMA_WRITE, cases[i].wanted * 256);
        cr_expect_eq(transmit(), cases[i].sent, "case %zu: %u packets", i, batch.n);
        cr_expect_eq(transmit(), 0);
    }
}

/* A QP with one packet in flight and a hundred to send, which wait for the peer's window. */
static struct qp *one_that_waits(void)
{
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    post(WR_RDMA_WRITE, 256);
    cr_assert_eq(transmit(), 1);
    post(WR_RDMA_WRITE, 100 * 256);
    return qp;
}

/* Each time, a fifth of what the QPs want becomes free. That is less than a burst, so a QP that had its turn must
 * wait behind the other. */
Test(requester, qps_that_wait_for_the_peer_window_take_turns)
{
    struct qp *others, *waits[2];
    uint32_t had[2] = {0, 0};
    others_send(PEER_WINDOW / 512);
    others = last_other;
    for (unsigned i = 0; i < 2; i++) {
        waits[i] = one_that_waits();
        cr_assert_eq(transmit(), 0);
    }
    for (unsigned i = 1; i <= 4; i++) {
        qp = others;
        ack(200 + 22 * i - 1);
        while (transmit() != 0)
            for (unsigned j = 0; j < batch.n; j++)
                had[batch.pkt[j].src_qpn == qp_number(waits[1])]++;
    }
    cr_expect(had[0] > 20 && had[1] > 20, "%u and %u packets", had[0], had[1]);
}

/* Even if the peer's window is full. */
Test(requester, a_qp_with_nothing_in_flight_may_send_a_burst)
{
    const uint32_t burst = fix.cfg.burst_bytes / 256;
    uint32_t n = 0, now;
    others_send(PEER_WINDOW / 512);
    post(WR_RDMA_WRITE, 3 * fix.cfg.burst_bytes);
    while ((now = transmit()) != 0)
        n += now;
    cr_expect_eq(n, burst, "%u packets", n);
}

/* A QP of a user of its own. */
static struct qp *qp_of_user(struct sched_share *share)
{
    struct qp_init init = {.type = QPT_RC,
                           .pd = FIX_PD,
                           .caps = {4, 4, 2, 2, 32},
                           .send_cq = &fix,
                           .recv_cq = &fix,
                           .owner = &fix,
                           .share = share};
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &qp), 0);
    fix_bring(qp, QPS_RTS);
    return qp;
}

/* Packets of a QP among all that are sent now. */
static uint32_t transmit_all(const struct qp *of, uint32_t *all)
{
    uint32_t n = 0;
    *all = 0;
    while (transmit() != 0) {
        *all += batch.n;
        for (unsigned i = 0; i < batch.n; i++)
            n += batch.pkt[i].src_qpn == qp_number(of);
    }
    return n;
}

/* Otherwise a user with many QPs, each of which sends a burst as soon as its last one is acknowledged, would leave no
 * room to anybody else. */
Test(requester, a_burst_without_room_comes_after_another_user_who_waits)
{
    const uint32_t burst = fix.cfg.burst_bytes / 256;
    struct sched_share one, many;
    struct qp *others, *waits;
    uint32_t all;
    others_send(PEER_WINDOW / 512);
    others = last_other;
    engine_share_init(fix.e, &one);
    engine_share_init(fix.e, &many);
    waits = qp_of_user(&one);
    post(WR_RDMA_WRITE, 256);
    cr_assert_eq(transmit(), 1);
    post(WR_RDMA_WRITE, 60 * 256);
    cr_assert_eq(transmit(), 0);
    for (unsigned i = 0; i < 4; i++) {
        qp_of_user(&many);
        post(WR_RDMA_WRITE, 10 * fix.cfg.burst_bytes);
    }
    cr_expect_eq(transmit_all(waits, &all), 0);
    cr_expect_leq(all, burst, "%u packets: only until the user has had as much as the other one", all);
    qp = others;
    ack(200 + 2 * burst + 60);
    cr_expect_eq(transmit_all(waits, &all), 60, "of %u packets", all);
}

/* The other user's QP may be one that waits in vain. */
Test(requester, a_burst_without_room_does_not_wait_forever)
{
    struct sched_share one, many;
    struct qp *idle;
    uint32_t all;
    others_send(PEER_WINDOW / 512);
    engine_share_init(fix.e, &one);
    engine_share_init(fix.e, &many);
    qp_of_user(&one);
    post(WR_RDMA_WRITE, 256);
    cr_assert_eq(transmit(), 1);
    post(WR_RDMA_WRITE, 60 * 256);
    qp_of_user(&many);
    post(WR_RDMA_WRITE, 10 * fix.cfg.burst_bytes);
    transmit_all(qp, &all);
    idle = qp_of_user(&many);
    post(WR_RDMA_WRITE, 10 * fix.cfg.burst_bytes);
    cr_expect_eq(transmit_all(idle, &all), 0);
    fix.now += 30000000;
    engine_expire(fix.e, fix.now);
    cr_expect_geq(transmit_all(idle, &all), 1);
}

Test(requester, bytes_in_flight_move_to_the_new_destination)
{
    post(WR_SEND, 100);
    cr_assert_eq(transmit(), 1);
    struct qp_attr a = fix_attr();
    a.state = QPS_SQD;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    a.av.dgid[15] = 2;
    uint64_t before = info().inflight_bytes;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE | QPA_AV, NULL), 0);
    cr_expect_eq(info().inflight_bytes, before);
    ack(200);
    cr_expect_eq(info().inflight_bytes, 0);
    cr_expect_eq(take_status(), WC_SUCCESS);
}

Test(requester, the_engine_reports_why_a_qp_waits)
{
    post(WR_RDMA_READ, 16);
    struct send_wr fenced = {.opcode = WR_SEND, .flags = SEND_FENCE | SEND_INLINE, .inline_len = 1};
    cr_assert_eq(qp_post_send(qp, &fenced, NULL, "x"), 0);
    cr_assert_eq(transmit(), 1);
    cr_expect(info().waiting_fence);
    cr_expect_not(info().waiting_reads);
    cr_expect_eq(info().reads_outstanding, 1);
}

/* The counters of the windows. */
Test(requester, windows_are_counted)
{
    struct qp_info before = info();
    post(WR_RDMA_WRITE, 256 * (fix.cfg.window_pkts + 100));
    while (transmit() > 0)
        ;
    struct engine_counters c = info().counters;
    uint32_t out = (info().next_psn - before.next_psn) & PSN_MASK;
    cr_assert_gt(out, 1000);
    cr_expect_eq(c.max_sent_window, out);
    cr_expect_gt(c.window_full, 0);
    for (uint32_t i = 0; i < out; i += 100)
        ack(200 + i);
    cr_expect_eq(info().counters.max_sent_window, out, "it never shrinks");
    arrive((struct pkt){.opcode = OP_SEND_ONLY, .psn = 107}); /* 100 is expected */
    arrive((struct pkt){.opcode = OP_SEND_ONLY, .psn = 103});
    cr_expect_eq(info().counters.max_rcvd_window, 7);
}

/* No timeout is shorter than the configured minimum. RETRY_EXC comes after retry_cnt + 1 timeouts. */
Test(requester, short_timeouts_are_clamped)
{
    struct qp_attr a = {.state = QPS_SQD};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    a.timeout = 1; /* 8 us */
    a.retry_cnt = 3;
    cr_assert_eq(qp_modify(qp, &a, QPA_TIMEOUT | QPA_RETRY_CNT, NULL), 0);
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post(WR_SEND, 100);
    cr_assert_eq(transmit(), 1);
    uint64_t start = fix.now;
    while (qp_state(qp) == QPS_RTS) {
        fix.now = engine_deadline(fix.e);
        cr_assert_leq(fix.now, start + 100 * fix.cfg.min_timeout_ns);
        engine_expire(fix.e, fix.now);
        transmit();
    }
    cr_expect_eq(take_status(), WC_RETRY_EXC_ERR);
    cr_expect_eq(info().timeout_ns, fix.cfg.min_timeout_ns);
    cr_expect_geq(fix.now - start, 4 * fix.cfg.min_timeout_ns);
    cr_expect_leq(fix.now - start, 5 * fix.cfg.min_timeout_ns);
}

/* With a timeout of 0 there is none, however long the wait is. */
Test(requester, without_a_timeout_the_qp_retries_forever)
{
    struct qp_attr a = {.state = QPS_SQD};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    a.timeout = 0;
    cr_assert_eq(qp_modify(qp, &a, QPA_TIMEOUT, NULL), 0);
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    post(WR_SEND, 100);
    cr_assert_eq(transmit(), 1);
    for (const uint64_t end = fix.now + 3600000000000u; fix.now < end;) {
        uint64_t next = engine_deadline(fix.e);
        fix.now = next < fix.now + 1000000000u ? next : fix.now + 1000000000u;
        engine_expire(fix.e, fix.now);
        transmit();
    }
    cr_assert_eq(qp_state(qp), QPS_RTS);
    cr_expect_eq(info().counters.timeout_retrans, 0);
    cr_expect_gt(info().counters.probe_retrans, 1000, "the probes go on");
    ack(200);
    cr_expect_eq(take_status(), WC_SUCCESS);
}

/* Each message has rnr_retry retries. */
Test(requester, rnr_retries_start_anew_after_progress)
{
    const int retries = fix_attr().rnr_retry;
    for (uint32_t m = 0; m < 3; m++) {
        post(WR_SEND, 100);
        for (int i = 0; i < retries; i++) {
            cr_assert_eq(transmit(), 1, "message %u, attempt %d", m, i);
            nak(AETH_RNR | 1, 200 + m);
            cr_assert_eq(transmit(), 0);
            fix.now = engine_deadline(fix.e);
            engine_expire(fix.e, fix.now);
        }
        cr_assert_eq(transmit(), 1);
        ack(200 + m);
        cr_assert_eq(take_status(), WC_SUCCESS, "message %u", m);
    }
    post(WR_SEND, 100);
    for (int i = 0; i <= retries; i++) {
        cr_assert_eq(transmit(), 1, "attempt %d", i);
        nak(AETH_RNR | 1, 203);
        fix.now += 1000000;
        engine_expire(fix.e, fix.now);
    }
    transmit();
    cr_expect_eq(take_status(), WC_RNR_RETRY_EXC_ERR);
}
